"""The feature-based approach: a frozen model, a mix of its layers, a BiLSTM and the output layer of the tags.

Devlin et al. 2019, section 5.3 and table 7. A weighted sum is that of Peters et al. 2018 (ELMo), equation 1: the paper
names no other, and its code was not published.
"""

import keras
from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.models.task_heads import BERT_HEADS
from bert_tf.models.weights import by_path
from bert_tf.tasks.heads import INPUTS, Classifier

#: `task.features` -> (first, last) of the hidden states that are read, from the end where negative, and how they are put
#: together. Hidden state 0 is the output of the embeddings, i that of layer i.
MIXES = {
    "embeddings": ((0, 0), "one"),
    "second_to_last": ((-2, -2), "one"),
    "last": ((-1, -1), "one"),
    "weighted_sum_last_four": ((-4, -1), "sum"),
    "concatenate_last_four": ((-4, -1), "concatenate"),
    "weighted_sum_all": ((1, -1), "sum"),
}


class LayerMix(keras.layers.Layer):
    """One vector a token from the outputs of a model's layers.

    A weighted sum is gamma * sum of softmax(w)_j h_j, with w from 0 and gamma from 1, both trained.

    Args:
        features: a key of `MIXES`.
        num_layers: of the model.

    Call arguments:
        hidden_states: list of num_layers + 1 float [B, S, H], that of the embeddings first.

    Returns:
        float32 [B, S, H], or [B, S, 4 H] of concatenated layers.

    Raises:
        ConfigError: the model has too few layers.

    Example:
        LayerMix("weighted_sum_all", 2)([np.ones((1, 3, 4), "float32")] * 3)  # [1, 3, 4], of ones
    """

    def __init__(self, features, num_layers, name="mix", **kwargs):
        super().__init__(dtype="float32", name=name, **kwargs)
        (first, last), self.how = MIXES[features]
        self.numbers = list(range(num_layers + 1))[first : None if last == -1 else last + 1]
        wanted = 4 if first == -4 else 1
        if len(self.numbers) < wanted or num_layers < wanted:
            raise ConfigError(f"task.features={features} reads {wanted} layers, but the model has {num_layers}")

    def build(self, shapes):
        if self.how == "sum":
            self.weight = self.add_weight(shape=(len(self.numbers),), initializer="zeros", name="weight")
            self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")

    def call(self, hidden_states):
        chosen = [ops.cast(hidden_states[number], "float32") for number in self.numbers]
        if self.how == "concatenate":
            return ops.concatenate(chosen, axis=-1)
        if self.how == "one":
            return chosen[0]
        return self.gamma * ops.einsum("lbsh,l->bsh", ops.stack(chosen), ops.softmax(self.weight))


class FeatureTagger(Classifier):
    """Tags every token from the frozen outputs of a model's layers, by a BiLSTM.

    The model keeps its weights, and has no dropout.

    Args:
        encoder: an encoder or decoder that gives the outputs of its layers.
        units: the number of tags.
        features: a key of `MIXES`.
        lstm_layers, lstm_units: of the BiLSTM; units in each direction.
        dropout: before the output layer; None for 0.1.
        options: of `Classifier`: `class_weights`, `label_smoothing`.

    Returns:
        As `Classifier`: {"logits", "probabilities"}, float32 [B, S, C].

    Raises:
        ConfigError: a model with too few layers, or one that does not give the outputs of its layers.

    Example:
        model = FeatureTagger(encoder, units=3, features="last", lstm_units=8)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["logits"].shape  # [1, 8, 3]
    """

    def __init__(self, encoder, units, features, lstm_layers=2, lstm_units=768, dropout=None, name="task", **options):
        encoder = with_hidden_states(encoder)
        head, width = BERT_HEADS["tagging"], 2 * lstm_units
        super().__init__(encoder, units, dropout, head=head, width=width, name=name, **options)
        encoder.trainable = False
        self.head.supports_masking = True  # Keras hands on the mask of a BiLSTM, and the head treats each token alone
        hidden = encoder.config.hidden_size
        self.mix = LayerMix(features, encoder.config.num_layers)
        self.mix.build(None)
        size = len(self.mix.numbers) * hidden if self.mix.how == "concatenate" else hidden
        self.lstms = []
        for index in range(lstm_layers):
            # Without cuDNN's kernel, which XLA cannot compile into a training step.
            one = keras.layers.LSTM(lstm_units, return_sequences=True, use_cudnn=False, dtype="float32", name="lstm")
            both = keras.layers.Bidirectional(one, dtype="float32", name=f"bilstm_{index}")
            both.build((None, None, size))
            self.lstms.append(both)
            size = width

    def outputs(self, features, training=False):
        inputs = {name: features[name] for name in INPUTS}
        x = self.mix(self.backbone(inputs, training=False)["hidden_states"])
        mask = ops.cast(inputs["padding_mask"], "bool")
        for lstm in self.lstms:
            x = lstm(x, mask=mask, training=training)
        return self.head(x, training=training)


def with_hidden_states(encoder):
    """The same model with `hidden_states` among its outputs; itself if it has them.

    Raises:
        ConfigError: a model that cannot give them.
    """
    settings = encoder.get_config()
    if "output_hidden_states" not in settings or encoder.kind == "encoder_decoder":
        raise ConfigError(
            f"task.features reads the outputs of the layers, which {type(encoder).__name__} does not give; remove task.features"
        )
    if settings["output_hidden_states"]:
        return encoder
    whole, known = type(encoder).from_config(settings | {"output_hidden_states": True}), by_path(encoder)
    for path, variable in by_path(whole).items():
        variable.assign(known[path])
    return whole
