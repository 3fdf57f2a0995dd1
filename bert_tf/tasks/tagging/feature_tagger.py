"""The feature-based approach: a frozen model, a mix of its layers, a BiLSTM and the output layer of the tags.

Devlin et al. 2019, section 5.3 and table 7. A weighted sum is that of Peters et al. 2018 (ELMo), equation 1: the paper
names no other, and its code was not published.
"""

from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import ScalarMix, bilstms
from bert_tf.models.task_heads import BERT_HEADS
from bert_tf.models.weights import by_path
from bert_tf.tasks.heads import Classifier, backbone_inputs

#: `task.features` -> (first, last) of the hidden states that are read, from the end where negative, and how they are put
#: together. Hidden state 0 is the output of the embeddings, i that of layer i.
MIXES = {
    "embeddings": ((0, 0), "one"),
    "second_to_last": ((-2, -2), "one"),
    "last": ((-1, -1), "one"),
    "weighted_sum_last_four": ((-4, -1), "sum"),
    "concatenate_last_four": ((-4, -1), "concatenate"),
    "weighted_sum_all": ((1, -1), "sum"),
    "scalar_mix": ((0, -1), "sum"),
}


class LayerMix(ScalarMix):
    """One vector a token from the outputs of a model's layers.

    Args:
        features: a key of `MIXES`.
        num_layers: of the model.
        normalizes: of `ScalarMix`, for weighted sums.

    Call arguments:
        hidden_states: list of num_layers + 1 float [B, S, H], that of the embeddings first.
        padding_mask: bool [B, S], for `normalizes`.

    Returns:
        float32 [B, S, H], or [B, S, 4 H] of concatenated layers.

    Raises:
        ConfigError: the model has too few layers.

    Example:
        LayerMix("weighted_sum_all", 2)([np.ones((1, 3, 4), "float32")] * 3)  # [1, 3, 4], of ones
    """

    def __init__(self, features, num_layers, normalizes=False, name="mix", **kwargs):
        (first, last), how = MIXES[features]
        numbers = list(range(num_layers + 1))[first : None if last == -1 else last + 1]
        super().__init__(len(numbers), normalizes, dtype="float32", name=name, **kwargs)
        self.how, self.numbers = how, numbers
        wanted = 4 if first == -4 else 1
        if len(self.numbers) < wanted or num_layers < wanted:
            raise ConfigError(f"task.features={features} reads {wanted} layers, but the model has {num_layers}")

    def build(self, shapes):
        if self.how == "sum":
            super().build(shapes)

    def call(self, hidden_states, padding_mask=None):
        chosen = [ops.cast(hidden_states[number], "float32") for number in self.numbers]
        if self.how == "concatenate":
            return ops.concatenate(chosen, axis=-1)
        if self.how == "one":
            return chosen[0]
        return super().call(chosen, padding_mask=padding_mask)


class FeatureTagger(Classifier):
    """Tags every token from the frozen outputs of a model's layers, by a BiLSTM.

    The model keeps its weights, and has no dropout.

    Args:
        encoder: an encoder or decoder that gives the outputs of its layers.
        units: the number of tags.
        features: a key of `MIXES`.
        lstm_layers, lstm_units: of the BiLSTM; units in each direction.
        mix_at: "input": the BiLSTM reads the mix; "both": another mix of the same kind stands beside its output, too, before
            the output layer (Peters et al. 2018, section 3.2).
        mix_norm: of `LayerMix`: whether each layer is normalized before it is mixed.
        mix_l2: the weight of the sum of squares of the mixes' weights in the training loss, which draws the layers'
            shares to their mean (Peters et al. 2018, section 3.3).
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

    def __init__(
        self,
        encoder,
        units,
        features,
        lstm_layers=2,
        lstm_units=768,
        dropout=None,
        mix_at="input",
        mix_norm=False,
        mix_l2=0.0,
        name="task",
        **options,
    ):
        encoder = with_hidden_states(encoder)
        head, hidden = BERT_HEADS["tagging"], encoder.config.hidden_size
        names = {"input": ("mix",), "both": ("mix", "output_mix")}[mix_at]
        mixes = [LayerMix(features, encoder.config.num_layers, mix_norm, name=own) for own in names]
        size = len(mixes[0].numbers) * hidden if mixes[0].how == "concatenate" else hidden
        of_head = 2 * lstm_units + size * (len(mixes) - 1)
        super().__init__(encoder, units, dropout, head=head, width=of_head, name=name, **options)
        self.mixes, self.mix_l2 = mixes, mix_l2
        for mix in mixes:
            mix.build(None)
        encoder.trainable = False
        self.lstms = bilstms(lstm_layers, lstm_units, size)

    def outputs(self, features, training=False):
        inputs = backbone_inputs(self.backbone, features)
        hidden_states = self.backbone(inputs, training=False)["hidden_states"]
        mask = ops.cast(inputs["padding_mask"], "bool")
        x, *others = (mix(hidden_states, padding_mask=mask) for mix in self.mixes)
        for lstm in self.lstms:
            x = lstm(x, mask=mask, training=training)
        return self.head(ops.concatenate([x, *others], axis=-1) if others else x, training=training)

    def loss_weights(self, features):
        return super().loss_weights(features) | ({"mix": ops.sum(features["label_weights"])} if self.mix_l2 else {})

    def loss_sums(self, features, training):
        losses, metrics = super().loss_sums(features, training)
        if self.mix_l2:
            squares = sum(ops.sum(ops.square(mix.weight)) for mix in self.mixes)
            losses["mix"] = self.mix_l2 * squares * ops.sum(features["label_weights"])
        return losses, metrics


def with_hidden_states(encoder):
    """The same model with `hidden_states` among its outputs; itself if it has them.

    Raises:
        ConfigError: a model that cannot give them.
    """
    settings = encoder.get_config()
    if "output_hidden_states" not in settings or encoder.kind == "encoder_decoder":
        raise ConfigError(
            f"{type(encoder).__name__} does not give the outputs of its layers, which task.features and the probes of layers read; "
            "remove task.features, or probe an encoder or a decoder"
        )
    if settings["output_hidden_states"]:
        return encoder
    whole, known = type(encoder).from_config(settings | {"output_hidden_states": True}), by_path(encoder)
    for path, variable in by_path(whole).items():
        variable.assign(known[path])
    return whole
