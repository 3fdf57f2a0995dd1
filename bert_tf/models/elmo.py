"""ELMo (Peters et al. 2018, "Deep contextualized word representations"), as allenai/bilm-tf `model.py` has it."""

import dataclasses

import keras
from keras import ops

from bert_tf.backend import Dropout
from bert_tf.layers import LSTM, CharacterEmbeddings, ScalarMix
from bert_tf.models.backbone import policy
from bert_tf.models.config_map import REQUIRED, ConfigMap, number
from bert_tf.models.elmo_config import CHARACTERS, ElmoConfig
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.family import Maps
from bert_tf.models.weights import WeightMap


@keras.saving.register_keras_serializable("bert_tf")
class Elmo(Encoder):
    """Convolutions over the characters of each word, and LSTMs in both directions, which share nothing else.

    `token_ids` are the characters of each word, int [B, S, 50]: see `CharacterTokenizer`. `sequence_output` is a
    mix of all layers with trained weights (equation 1 of the paper), `hidden_states` on request the layers themselves:
    first the word's own vector twice side by side, then each layer's forward and backward outputs.

    The published LSTMs were trained with state that is carried from each batch to the next, and bilm-tf computes
    vectors
    so, too: the same text gets other vectors after other texts. A model call here starts each text from zeros, and each
    answer depends on its own text alone. `outputs_of_layers` carries state where it is asked to. Pretraining carries it
    inside a row, whose segments of `config.unroll` words are those batches.

    Args:
        config: an `ElmoConfig`.
        pooler: is not used: there is no pooled output.
        output_hidden_states: whether the result holds all layers' outputs.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model; None for that of its family.

    Call arguments:
        inputs: dict of `token_ids` int [B, S, max_characters], and where they are not the default `padding_mask` bool
            (all real), `sequence_ids` int (one text a row), [B, S]. `segment_ids` and `position_ids` are not read.
        training: whether dropout is active.

    Returns:
        dict: `sequence_output` [B, S, H]; on request `hidden_states`, a list of num_layers + 1 [B, S, H].

    Example:
        elmo = Elmo(ElmoConfig(hidden_size=16, units=32, character_size=4, filters=((1, 8), (2, 8)), highways=1))
        batch = CharacterTokenizer().pack(CharacterTokenizer().tokenize(["A film ."]), sequence_length=8)
        elmo({"token_ids": batch["token_ids"]})["sequence_output"]  # [1, 8, 16]
    """

    config_class = ElmoConfig

    def __init__(self, config, pooler=False, output_hidden_states=False, dtype=None, name=None, **kwargs):
        dtype = policy(dtype)

        # === Layers ===
        layers = ElmoLayers(
            embeddings=CharacterEmbeddings(
                config.vocabulary_size,
                config.character_size,
                config.filters,
                config.highways,
                config.hidden_size // 2,
                activation=config.activation,
                dtype=dtype,
                name="embeddings",
            ),
            blocks=[
                BidirectionalLayer(
                    config.units,
                    config.hidden_size // 2,
                    config.cell_clip,
                    config.projection_clip,
                    skips=config.skip_connections and i > 0,
                    dropout=config.dropout,
                    output_dropout=config.dropout if i == config.num_layers - 1 else 0.0,
                    unroll=config.unroll,
                    dtype=dtype,
                    name=f"lstm_layer_{i}",
                )
                for i in range(config.num_layers)
            ],
        )
        mix = ScalarMix(config.num_layers + 1, config.mix_norm, dtype=dtype, name="layer_mix")

        # === Functional model ===
        inputs = encoder_inputs()
        characters = (None, config.max_characters)
        inputs["token_ids"] = keras.Input(characters, dtype="int32", name="token_ids")
        hidden_states, _ = layers.encode(inputs)
        outputs = {"sequence_output": mix(hidden_states, padding_mask=inputs["padding_mask"])}
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states

        # === Configuration ===
        super().__init__(
            config,
            inputs,
            outputs,
            dtype=dtype,
            name=name,
            pooler=False,
            output_hidden_states=output_hidden_states,
            **kwargs,
        )
        self._elmo_layers = layers  # not a Keras layer, which would be counted a second time

    def blocks(self):
        return list(self._elmo_layers.blocks)

    def outputs_of_layers(self, inputs, state=None, training=False):
        """The outputs of all layers, and the state of the LSTMs after each row.

        Args:
            inputs: dict of the model's inputs.
            state: of the last call, whose rows these continue; None for zeros.
            training: whether dropout is active.

        Returns:
            A pair: list of num_layers + 1 float [B, S, H]; the state, for each layer the pairs (c [B, units],
            h [B, H / 2]) of both directions.

        Example:
            hidden_states, state = elmo.outputs_of_layers({"token_ids": first})
            hidden_states, state = elmo.outputs_of_layers({"token_ids": second}, state)
        """
        return self._elmo_layers.encode(self.complete(inputs), state, training)


@dataclasses.dataclass(frozen=True)
class ElmoLayers:
    """The layers of an ELMo, in the order of their calls.

    Args:
        embeddings: from characters [B, S, C] to [B, S, H / 2].
        blocks: `BidirectionalLayer`s, bottom first.
    """

    embeddings: keras.Layer
    blocks: list

    def encode(self, inputs, state=None, training=None):
        """See `Elmo.outputs_of_layers`."""
        x = self.embeddings(inputs["token_ids"])
        both = ops.concatenate([x, x], axis=-1)
        hidden_states, after = [both], []
        where = {"padding_mask": inputs["padding_mask"], "sequence_ids": inputs["sequence_ids"]}
        for block, before in zip(self.blocks, state or [None] * len(self.blocks), strict=True):
            both, last = block(both, **where, state=before, training=training)
            hidden_states.append(both)
            after.append(last)
        return hidden_states, after


@keras.saving.register_keras_serializable("bert_tf")
class BidirectionalLayer(keras.layers.Layer):
    """A forward and a backward LSTM, each of which reads its own half of the vectors.

    Args:
        units, projection, cell_clip, projection_clip, unroll: of `LSTM`.
        skips: whether the input is added to the output.
        dropout: on the input of each LSTM.
        output_dropout: on the output, after the skip; bilm-tf has it in the last layer alone.

    Call arguments:
        x: float [B, S, 2 P]: the forward half, then the backward one.
        padding_mask, sequence_ids: of `LSTM`.
        state: the states of both directions, of the last call; None for zeros.
        training: whether dropout is active.

    Returns:
        A pair: float [B, S, 2 P]; the states ((c, h), (c, h)).

    Example:
        y, state = BidirectionalLayer(8, 4, 3.0, 3.0, skips=True, dropout=0.1, output_dropout=0.1)(np.ones((2, 5, 8), "float32"))

    Source: allenai/bilm-tf `training.py`, `_build`.
    """

    def __init__(
        self, units, projection, cell_clip, projection_clip, skips, dropout, output_dropout, unroll=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.skips, self.width = skips, projection
        self.lstms = [
            LSTM(
                units,
                projection,
                cell_clip,
                projection_clip,
                forget_bias=1.0,
                backwards=name == "backward",
                unroll=unroll,
                dtype=self.dtype_policy,
                name=name,
            )
            for name in ("forward", "backward")
        ]
        self.dropouts = [
            (
                Dropout(dropout, dtype=self.dtype_policy, name=f"{lstm.name}_input_dropout"),
                Dropout(output_dropout, dtype=self.dtype_policy, name=f"{lstm.name}_output_dropout"),
            )
            for lstm in self.lstms
        ]

    def build(self, x_shape):
        for lstm in self.lstms:
            lstm.build((*x_shape[:-1], self.width))

    def call(self, x, padding_mask=None, sequence_ids=None, state=None, training=None):
        halves, outputs, after = ops.split(x, 2, axis=-1), [], []
        for lstm, (before, behind), half, own in zip(self.lstms, self.dropouts, halves, state or (None, None)):
            half = before(half, training=training)
            y, last = lstm(half, padding_mask=padding_mask, sequence_ids=sequence_ids, state=own)
            outputs.append(behind(y + half if self.skips else y, training=training))
            after.append(last)
        return ops.concatenate(outputs, axis=-1), tuple(after)

    def compute_output_spec(self, x, padding_mask=None, sequence_ids=None, state=None, training=None):
        y = keras.KerasTensor((*x.shape[:2], 2 * self.width), dtype=self.compute_dtype)
        specs = [lstm.compute_output_spec(x)[1] for lstm in self.lstms]
        return y, tuple(specs)


# The names in bilm-tf's HDF5 files; `bert_tf.checkpoints.bilm` takes `W_0` apart.
_CELLS = {
    f"RNN_{number}/RNN/MultiRNNCell/Cell{{layer}}/LSTMCell/{theirs}": f"lstm_layer_{{layer}}/{direction}/{ours}"
    for number, direction in enumerate(("forward", "backward"))
    for theirs, ours in (
        ("W_0[input]", "input_kernel"),
        ("W_0[recurrent]", "steps/cell/recurrent_kernel"),
        ("W_P_0", "steps/cell/projection_kernel"),
        ("B", "bias"),
    )
}
_HIGHWAYS = {
    f"CNN_high_{{number}}/{theirs}_{kind}": f"embeddings/highway_{{number}}_{kind}/{ours}"
    for kind in ("carry", "transform")
    for theirs, ours in (("W", "kernel"), ("b", "bias"))
}
BILM_WEIGHTS = WeightMap(
    arrays={
        "char_embed": "embeddings/character_embeddings",
        "CNN/W_cnn_{number}": "embeddings/convolution_{number}_kernel",
        "CNN/b_cnn_{number}": "embeddings/convolution_{number}_bias",
        **_HIGHWAYS,
        "CNN_proj/W_proj": "embeddings/projection/kernel",
        "CNN_proj/b_proj": "embeddings/projection/bias",
        **_CELLS,
        "mix/weight": "layer_mix/weight",
        "mix/gamma": "layer_mix/gamma",
    },
    convolutions=("CNN/W_cnn_*",),
)


def _read_rest(theirs):
    highways = number(theirs, "char_cnn/n_highway", None)
    width = {"hidden_size": 2 * number(theirs, "lstm/projection_dim", 0), "highways": highways or 0}
    return width | {"skip_connections": bool(theirs.get("lstm/use_skip_connections"))}


def _write_rest(config):
    return {
        "lstm/projection_dim": config.hidden_size // 2,
        "char_cnn/n_highway": config.highways or None,
        "lstm/use_skip_connections": config.skip_connections,
    }


#: The keys of options.json, each below its section. Of those that only training reads, none changes the vectors.
BILM_CONFIG = ConfigMap(
    fields={
        "lstm/dim": ("units", REQUIRED),
        "lstm/n_layers": ("num_layers", REQUIRED),
        "lstm/cell_clip": ("cell_clip", None),
        "lstm/proj_clip": ("projection_clip", None),
        "char_cnn/embedding/dim": ("character_size", REQUIRED),
        "char_cnn/filters": ("filters", REQUIRED),
        "char_cnn/max_characters_per_token": ("max_characters", REQUIRED),
        "char_cnn/activation": ("activation", REQUIRED),
    },
    activations={"relu": "relu", "tanh": "tanh"},
    # Training counts 261: padding words came later.
    fixed={"char_cnn/n_characters": (CHARACTERS, CHARACTERS - 1)},
    checked={"bidirectional": (True,)},
    ignored=("lstm/projection_dim", "char_cnn/n_highway", "lstm/use_skip_connections", "all_clip_norm_val",
             "batch_size", "dropout", "n_epochs", "n_gpus", "n_negative_samples_batch", "n_tokens_vocab",
             "n_train_tokens", "sample_softmax", "unroll_steps"),
    assumed={"vocabulary_size": CHARACTERS, "mix_norm": False},
    derived=(_read_rest, _write_rest),
    file="options.json",
)  # fmt: skip
BILM = Maps(BILM_CONFIG, BILM_WEIGHTS)
