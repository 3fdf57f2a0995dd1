"""The feature-based approach: a frozen model and a mix of its layers, which a BiLSTM below a task's head reads.

Devlin et al. 2019, section 5.3 and table 7. A weighted sum is that of Peters et al. 2018 (ELMo), equation 1: the paper
names no other, and its code was not published.
"""

from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers import ScalarMix
from bert_tf.models.weights import with_output

#: `task.frozen_layers` -> (first, last) of the hidden states that are read, from the end where negative, and how they are put
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


#: The name of the outputs of a frozen model's layers in a batch that has them: float [B, S, layers that are read, H].
FROZEN_OUTPUTS = "frozen_outputs"


class LayerMix(ScalarMix):
    """One vector a token from the outputs of a model's layers.

    Args:
        features: a key of `MIXES`.
        num_layers: of the model.
        normalizes: of `ScalarMix`, for weighted sums.

    Call arguments:
        hidden_states: list of num_layers + 1 float [B, S, H], that of the embeddings first; or a dict of those that are
            read, by their numbers.
        padding_mask: bool [B, S], for `normalizes`.

    Returns:
        float32 [B, S, H], or [B, S, 4 H] of concatenated layers.

    Attributes:
        numbers: of the hidden states that are read.

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
        layers_needed = 4 if first == -4 else 1
        if len(self.numbers) < layers_needed or num_layers < layers_needed:
            raise ConfigError(
                f"task.frozen_layers.name={features} reads {layers_needed} layers, but the model has {num_layers}"
            )

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


def mixes_of(encoder, features):
    """(The same model with the outputs of its layers and frozen weights, the built `LayerMix`es that are read of it).

    Args:
        encoder: an encoder or decoder that gives the outputs of its layers.
        features: `Features`.

    Raises:
        ConfigError: a model with too few layers, or one that does not give the outputs of its layers.
    """
    encoder = with_hidden_states(encoder)
    names = {"input": ("mix",), "both": ("mix", "output_mix")}[features.mix_at]
    mixes = [LayerMix(features.layers, encoder.config.num_layers, features.mix_norm, name=name) for name in names]
    for mix in mixes:
        mix.build(None)
    encoder.trainable = False
    return encoder, mixes


def width_of_mix(features, hidden):
    """The width of a `LayerMix` of vectors of width `hidden`."""
    return 4 * hidden if MIXES[features.layers][1] == "concatenate" else hidden


def encode(backbone, mixes, inputs, training=False):
    """What a model returns for a batch; of a frozen one the outputs of its layers, where the batch has them.

    Args:
        backbone: the model.
        mixes: list of `LayerMix`es of its layers; [] for a model that is trained.
        inputs: what it reads, and `FROZEN_OUTPUTS` in some batches.
        training: of the whole model; a frozen one has no dropout.
    """
    if FROZEN_OUTPUTS not in inputs:
        return backbone(inputs, training=training and not mixes)
    outputs = inputs[FROZEN_OUTPUTS]
    return {"hidden_states": {number: outputs[:, :, place] for place, number in enumerate(mixes[0].numbers)}}


def token_vectors(encoded, mixes, lstms, mask, training=False):
    """What a BiLSTM computes of a model's last layer, or of the first of several mixes of its layers.

    Args:
        encoded: what the model returned.
        mixes: list of `LayerMix`; [] for the last layer.
        lstms: list of `BiLstm`.
        mask: bool [B, S].
        training: of the BiLSTM.

    Returns:
        A list: float32 [B, S, 2 units], and the other mixes, float32 [B, S, W].
    """
    if mixes:
        x, *others = (mix(encoded["hidden_states"], padding_mask=mask) for mix in mixes)
    else:
        x, *others = (ops.cast(encoded["sequence_output"], "float32"),)
    for lstm in lstms:
        x = lstm(x, mask=mask, training=training)
    return [x, *others]


def with_hidden_states(encoder):
    """The same model with `hidden_states` among its outputs; itself if it has them.

    Raises:
        ConfigError: a model that cannot give them.
    """
    model = None if encoder.structure == "encoder_decoder" else with_output(encoder, "output_hidden_states")
    if model is None:
        raise ConfigError(
            f"{type(encoder).__name__} does not give the outputs of its layers, which task.frozen_layers and the probes of layers read; "
            "remove task.frozen_layers, or probe an encoder or a decoder"
        )
    return model
