"""ELMo (Peters et al. 2018, "Deep contextualized word representations"), as allenai/bilm-tf `model.py` has it.

Two one-directional transformers, concatenated: the transformer biLM of Peters et al. 2018 ("Dissecting Contextual
Word Embeddings: Architecture and Representation", arXiv:1808.08949).
"""

import dataclasses
from typing import Any

import keras
from keras import ops

from bert_tf.backend import Dropout, Layer
from bert_tf.errors import ConfigError
from bert_tf.layers import LSTM, AttentionMask, CharacterEmbeddings, EndsOfDirections, ScalarMix
from bert_tf.models.backbone import policy
from bert_tf.models.elmo.config import ElmoConfig, TransformerBiLMConfig
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.stack import ContextLayers, Stack, block_settings, token_embeddings, transformer_blocks
from bert_tf.types import Options, Policy, Settings, Shape, Tensor, Tensors


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
        pooler: False: there is no pooled output.
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

    def __init__(
        self,
        config: ElmoConfig,
        pooler: bool = False,
        output_hidden_states: bool = False,
        dtype: Policy = None,
        **options: Options,
    ) -> None:
        if pooler:
            raise ConfigError(
                "ELMo has no pooler: it has a vector for each word, and none for the text; set pooler=False"
            )
        dtype = policy(dtype)

        # === Layers ===
        half, clips = config.hidden_size // 2, (config.cell_clip, config.projection_clip)
        common = {"dropout": config.dropout, "unroll": config.unroll, "dtype": dtype}
        layers = ElmoLayers(
            embeddings=CharacterEmbeddings(
                config.vocabulary_size,
                config.character_size,
                config.filters,
                config.highways,
                half,
                activation=config.activation,
                dtype=dtype,
                name="embeddings",
            ),
            blocks=[
                BidirectionalLayer(
                    config.units,
                    half,
                    *clips,
                    skips=config.skip_connections and i > 0,
                    output_dropout=config.dropout if i == config.num_layers - 1 else 0.0,
                    name=f"lstm_layer_{i}",
                    **common,
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
        arguments: Settings = {"pooler": False, "output_hidden_states": output_hidden_states}
        super().__init__(config, inputs, outputs, dtype, **arguments, **options)
        self._elmo_layers = layers  # not a Keras layer, which would be counted a second time

    def blocks(self) -> list[keras.Layer]:
        return list(self._elmo_layers.blocks)

    def outputs_of_layers(
        self, inputs: Tensors, state: list[Any] | None = None, training: bool = False
    ) -> tuple[list[Tensor], Any]:
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
        return self._elmo_layers.encode(self.standardize_inputs(inputs), state, training)


@dataclasses.dataclass(frozen=True)
class ElmoLayers:
    """The layers of an ELMo, in the order of their calls.

    Args:
        embeddings: from characters [B, S, C] to [B, S, H / 2].
        blocks: `BidirectionalLayer`s, bottom first.
    """

    embeddings: keras.Layer
    blocks: list[keras.Layer]

    def encode(
        self, inputs: Tensors, state: list[Any] | None = None, training: bool | None = None
    ) -> tuple[list[Tensor], Any]:
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
class BidirectionalLayer(Layer):
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
        self,
        units: int,
        projection: int,
        cell_clip: float | None,
        projection_clip: float | None,
        skips: bool,
        dropout: float,
        output_dropout: float,
        unroll: int | None = None,
        **kwargs: Options,
    ) -> None:
        super().__init__(**kwargs)
        self.skips, self.width = skips, projection
        clips, options = (cell_clip, projection_clip), {"unroll": unroll, "dtype": self.dtype_policy}
        self.lstms = [
            LSTM(units, projection, *clips, backwards=name == "backward", name=name, **options)
            for name in ("forward", "backward")
        ]
        self.dropouts = [
            [
                Dropout(rate, dtype=self.dtype_policy, name=f"{lstm.name}_{place}_dropout")
                for place, rate in (("input", dropout), ("output", output_dropout))
            ]
            for lstm in self.lstms
        ]

    def build(self, x_shape: Shape) -> None:
        for lstm in self.lstms:
            lstm.build((*x_shape[:-1], self.width))

    def call(
        self,
        x: Tensor,
        padding_mask: Tensor = None,
        sequence_ids: Tensor = None,
        state: Tensor = None,
        training: bool | None = None,
    ) -> tuple[Tensor, tuple[Any, ...]]:
        halves, outputs, after = ops.split(x, 2, axis=-1), [], []
        for lstm, (before, behind), half, half_state in zip(self.lstms, self.dropouts, halves, state or (None, None)):
            half = before(half, training=training)
            y, last = lstm(half, padding_mask=padding_mask, sequence_ids=sequence_ids, state=half_state)
            outputs.append(behind(y + half if self.skips else y, training=training))
            after.append(last)
        return ops.concatenate(outputs, axis=-1), tuple(after)

    def compute_output_spec(self, x: Tensor, **options: Options) -> Any:
        y = keras.KerasTensor((*x.shape[:2], 2 * self.width), dtype=self.compute_dtype)
        specs = [lstm.compute_output_spec(x)[1] for lstm in self.lstms]
        return y, tuple(specs)


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBiLM(Encoder):
    """A left-to-right and a right-to-left transformer above one table of embeddings, ELMo's way.

    Neither direction reads the other's outputs; only the result holds both. The layers are GPT-1's, which are BERT's
    with attention to one side, so that models differ in direction alone. (The paper's have sinusoidal positions and
    read characters; its weights are not read.) Padding must be on the right.

    Args:
        config: a `TransformerBiLMConfig`.
        pooler: whether there is a `pooled_output`: the forward half of the last real token and the backward half of the
            first one. It has no weights.
        output_hidden_states: whether the result holds all layers' outputs.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model; None for that of its family.

    Call arguments, results: see `Encoder`. `segment_ids` are not read; `hidden_states` begin with the embeddings, twice
    side by side.

    Raises:
        ConfigError: when called: more tokens than `config.max_positions`, without `position_ids`.
        DataError: when called: see `Backbone`.

    Example:
        config = TransformerBiLMConfig(100, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64)
        TransformerBiLM(config)({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 32]
    """

    config_class = TransformerBiLMConfig

    def __init__(
        self,
        config: TransformerBiLMConfig,
        pooler: bool = True,
        output_hidden_states: bool = False,
        dtype: Policy = None,
        **options: Options,
    ) -> None:
        dtype = policy(dtype)

        # === Layers ===
        embeddings = token_embeddings(config, dtype, size=config.direction_size, max_positions=config.max_positions)
        settings = block_settings(config)
        stacks = [
            Stack(
                embeddings=embeddings,
                blocks=transformer_blocks(settings, config.num_layers, dtype, f"{direction}_layer"),
                contexts=ContextLayers(
                    AttentionMask(causal=True, backwards=backwards, dtype=dtype, name=f"{direction}_mask")
                ),
            )
            for direction, backwards in (("forward", False), ("backward", True))
        ]

        # === Functional model ===
        inputs = encoder_inputs()
        hidden_states = _hidden_states(stacks, inputs)
        outputs = {"sequence_output": hidden_states[-1]}
        if pooler:
            ends = EndsOfDirections(dtype=dtype, name="pooler")
            outputs["pooled_output"] = ends(hidden_states[-1], padding_mask=inputs["padding_mask"])
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states

        # === Configuration ===
        arguments: Settings = {"pooler": pooler, "output_hidden_states": output_hidden_states}
        super().__init__(config, inputs, outputs, dtype, **arguments, **options)
        self._directions = stacks

    @property
    def longest(self) -> int | None:
        return self.config.max_positions

    def blocks(self) -> list[keras.Layer]:
        return [block for pair in zip(*(stack.blocks for stack in self._directions)) for block in pair]

    def outputs_of_layers(self, inputs: Tensors, training: bool = False) -> tuple[list[Tensor], Any]:
        """The outputs of all layers, as of `Elmo`, and None, because there is no state.

        Example:
            hidden_states, _ = model.outputs_of_layers({"token_ids": np.array([[5, 6, 7]])})
        """
        return _hidden_states(self._directions, self.standardize_inputs(inputs), training), None


def _hidden_states(stacks, inputs, training=None):
    x = stacks[0].embed(inputs, training)
    directions = [stack.run(x, inputs, training=training).hidden_states for stack in stacks]
    return [ops.concatenate(pair, axis=-1) for pair in zip(*directions)]
