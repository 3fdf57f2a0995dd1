"""XLNet (Yang et al. 2019, arXiv:1906.08237), as zihangdai/xlnet `modeling.py` has it."""

import dataclasses
from typing import Any

import keras

from bert_tf.backend import Dropout
from bert_tf.errors import DataError
from bert_tf.layers import (
    LastTokenPooler,
    RelativeBlock,
    RelativeContext,
    RelativePositions,
    SegmentMemory,
    SegmentsDiffer,
    StreamEmbeddings,
    StreamMask,
)
from bert_tf.models.encoder import Encoder, encoder_inputs
from bert_tf.models.stack import Stack, StackModel, StackOutputs, block_settings
from bert_tf.models.xlnet.config import XLNetConfig
from bert_tf.types import Function, Options, Policy, Settings, Tensor, Tensors


@keras.saving.register_keras_serializable("bert_tf")
class XLNetEncoder(StackModel, Encoder):
    """The content stream, as it is fine-tuned; `encode` runs both streams, with memory.

    Args:
        config: an `XLNetConfig`.
        pooler: whether there is a `pooled_output`: a tanh layer on the last real token, which in
            XLNet's layout is <cls>.
        output_hidden_states, output_attention_scores, dtype: as in `TransformerEncoder`.
        memory_length: M, how many positions of the text before are kept; with 0 there is neither
            an input nor an output of memory.
        reuse_length: only the first so many positions of a segment enter the memory; None for all.

    Call arguments:
        inputs: dict as in `BertEncoder`. Padding may be on either side. `position_ids` are ignored: only
            distances count, and in a packed sequence they are those of each text alone. With `memory_length`
            also `memory` float [B, L, M', H], the `memory` that the text before returned.
        training: whether dropout is active.

    Returns:
        dict as of `BertEncoder`; `attention_scores` are [B, n, S, M' + S]. With `memory_length` also `memory`
        [B, L, min(M, M' + S), H]. Padding in the memory is seen.

    Raises:
        DataError: as `BertEncoder`, or memory is given to a packed sequence.

    Example:
        encoder = XLNetEncoder(XLNetConfig(100, 16, 2, 2, 32), memory_length=8)
        first = encoder({"token_ids": np.array([[5, 6, 7]])})
        encoder({"token_ids": np.array([[8, 9]]), "memory": first["memory"]})["memory"]  # [1, 2, 5, 16]
    """

    config_class = XLNetConfig

    def __init__(
        self, config: XLNetConfig, *, memory_length: int = 0, reuse_length: int | None = None, **options: Options
    ) -> None:
        super().__init__(config, memory_length=memory_length, reuse_length=reuse_length, **options)

    @staticmethod
    def make_pooler(config: XLNetConfig, dtype: Policy) -> Function:
        pooler = LastTokenPooler(config.hidden_size, "tanh", config.initializer_range, dtype=dtype, name="pooler")
        return lambda x, inputs: pooler(x, padding_mask=inputs["padding_mask"])

    @staticmethod
    def make_inputs(config: XLNetConfig, dtype: Policy, **arguments: Options) -> Tensors:
        inputs = encoder_inputs()
        if arguments["memory_length"]:
            shape = (config.num_layers, None, config.hidden_size)
            inputs["memory"] = keras.Input(shape, dtype=dtype.compute_dtype, optional=True, name="memory")
        return inputs

    @staticmethod
    def more_outputs(stack_outputs: StackOutputs, inputs: Tensors, dtype: Policy, **arguments: Options) -> Tensors:
        if "memory" not in inputs:
            return {}
        length, reuse_length = arguments["memory_length"], arguments["reuse_length"]
        update = SegmentMemory(length, reuse_length, dtype=dtype, name="memory_update")
        return {"memory": update(stack_outputs.hidden_states[:-1], memory=inputs["memory"])}

    outputs_at = Encoder.outputs_at  # the last block computes all positions

    @staticmethod
    def make_stack(config: XLNetConfig, dtype: Policy) -> Stack:
        dropouts = {
            "content": Dropout(config.dropout, dtype=dtype, name="output_dropout"),
            "query": Dropout(config.dropout, dtype=dtype, name="query_output_dropout"),
        }

        def output_dropout(x, training):
            if not isinstance(x, dict):
                return dropouts["content"](x, training=training)
            return {name: dropouts[name](stream, training=training) for name, stream in x.items()}

        return XLNetStack(
            embeddings=StreamEmbeddings(
                vocabulary_size=config.vocabulary_size,
                size=config.hidden_size,
                dropout=config.dropout,
                initializer_range=config.initializer_range,
                dtype=dtype,
                name="embeddings",
            ),
            blocks=[
                RelativeBlock(i, block_settings(config), dtype=dtype, name=f"transformer_layer_{i}")
                for i in range(config.num_layers)
            ],
            contexts=RelativeContextLayers(
                positions=RelativePositions(
                    size=config.hidden_size,
                    clamp_length=config.clamp_length,
                    dropout=config.dropout,
                    dtype=dtype,
                    name="relative_positions",
                ),
                mask=StreamMask(dtype=dtype, name="stream_mask"),
                differs=SegmentsDiffer(dtype=dtype, name="segments_differ"),
            ),
            output_dropout=output_dropout,
        )

    def __call__(self, inputs: Any, *args: Options, **kwargs: Options) -> Any:
        if isinstance(inputs, dict):
            _check_memory(inputs, inputs.get("memory"))
        return super().__call__(inputs, *args, **kwargs)

    def encode(
        self,
        inputs: Tensors,
        memory: Tensor = None,
        permutation_order: Tensor = None,
        mask_positions: Tensor = None,
        backward: Tensor = None,
        training: bool | None = None,
    ) -> Tensors:
        """Both streams, in a factorization order, with memory: what pretraining runs.

        Args:
            inputs: dict of the encoder's [B, S] inputs.
            memory: float [B, L, M', H], of `SegmentMemory`, or None.
            permutation_order: int [B, S], the rank of each token: it sees those of lower or equal
                rank. None: everything is seen.
            mask_positions: int [B, P], the positions of the query stream, whose vectors know
                position and segment of the token there, and all tokens of lower rank, but not
                the token. None: no query stream.
            backward: bool [B], True for sequences whose tokens are in reverse order: their distances
                change sign. None: there are none.
            training: whether dropout is active.

        Returns:
            dict: `sequence_output` [B, S, H] and `hidden_states` of the content stream, and with
            `mask_positions` `query_output` [B, P, H] and `query_hidden_states`. All but the last
            of `hidden_states` are what `SegmentMemory` takes.

        Raises:
            DataError: memory is given to a packed sequence.
        """
        _check_memory(inputs, memory)
        streams = {"permutation_order": permutation_order, "mask_positions": mask_positions, "backward": backward}
        outputs = self._stack(inputs | {"memory": memory} | streams, training=training)
        if mask_positions is None:
            return {"sequence_output": outputs.last, "hidden_states": outputs.hidden_states}
        return {
            "sequence_output": outputs.last["content"],
            "hidden_states": [states["content"] for states in outputs.hidden_states],
            "query_output": outputs.last["query"],
            "query_hidden_states": [states["query"] for states in outputs.hidden_states],
        }


class XLNetStack(Stack):
    """The layers of an XLNet: a `Stack` whose blocks compute one stream, or both of them, a dict.

    Its inputs are those of an encoder and of `XLNetEncoder.encode`.
    """

    def embed(self, inputs: Tensors, training: bool | None = None) -> Any:
        content = self.embeddings(inputs["token_ids"], training=training)
        if inputs.get("mask_positions") is None:
            return content
        return {"content": content, "query": self.embeddings(inputs["mask_positions"], queries=True, training=training)}


@dataclasses.dataclass(frozen=True)
class RelativeContextLayers:
    """The layers that make the `RelativeContext` of all blocks; as `ContextLayers`."""

    positions: RelativePositions
    mask: StreamMask
    differs: SegmentsDiffer

    def __call__(self, inputs: Tensors, place: Settings, memory: Tensor, training: bool | None) -> RelativeContext:
        token_ids, memory = inputs["token_ids"], inputs.get("memory")
        seen = {name: inputs.get(name) for name in ("padding_mask", "sequence_ids", "permutation_order")}
        seen, segments = seen | {"memory": memory}, {"segment_ids": inputs.get("segment_ids"), "memory": memory}
        context = RelativeContext(
            positions=self.positions(token_ids, memory=memory, training=training),
            mask=self.mask(token_ids, **seen),
            differs=self.differs(token_ids, **segments),
            memory=memory,
            backward=inputs.get("backward"),
        )
        queries = inputs.get("mask_positions")
        if queries is None:
            return context
        return context._replace(
            query_positions=queries,
            query_mask=self.mask(token_ids, query_positions=queries, **seen),
            query_differs=self.differs(token_ids, query_positions=queries, **segments),
        )


def _check_memory(inputs, memory):
    if memory is not None and inputs.get("sequence_ids") is not None:
        raise DataError("a packed sequence cannot have a memory: it would belong to all texts in it")
