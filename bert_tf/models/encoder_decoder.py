"""What every encoder-decoder has: two texts by name, and a cache for generation."""

from typing import Any

import keras
from keras import ops

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.models.backbone import Backbone, as_tensor, policy, symbolic_inputs
from bert_tf.models.stack import Memory, Stack
from bert_tf.models.token_output import TokenOutput
from bert_tf.types import Config, Options, Policy, Tensor, Tensors

#: The features an encoder-decoder reads; the two `token_ids` are required. Tasks hand over `segment_ids` to every
#: backbone; encoder-decoders have no segments and do not read them.
ENCODER_DECODER_INPUTS = (
    "token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids",
    "decoder_token_ids", "decoder_padding_mask", "decoder_sequence_ids", "decoder_position_ids",
)  # fmt: skip


class EncoderDecoder(TokenOutput, Backbone):
    """The base of a model that reads a text and writes another, token by token.

    A family says with `make_stacks` what it consists of, and with `make_output` whether it has an output layer of its own.

    Args:
        config: an instance of `config_class`.
        pooler: False; there is none.
        output_hidden_states: whether the result holds all layers' outputs.
        dtype: a Keras dtype policy; None for the global one.
        name: of the model; None for that of its family.

    Call arguments:
        inputs: dict: `token_ids` int [B, S] and `decoder_token_ids` int [B, T], the written text moved to the right
            by a start token; where they are not the default `padding_mask`, `decoder_padding_mask` (bool, all real)
            and, for several texts in a row, `sequence_ids` and `decoder_sequence_ids` (text k of one belongs to text
            k of the other) and `position_ids` and `decoder_position_ids`, which restart with each text.
            `segment_ids` are not read, nor are positions by a model with relative ones (T5).
        training: whether dropout is active.

    Returns:
        dict: `sequence_output` [B, T, H], of the decoder; `encoder_output` [B, S, H]; on request
        `encoder_hidden_states` and `hidden_states`, lists with the embeddings first.

    Raises:
        ConfigError: a pooler is asked for.
        DataError: when called: see `Backbone`; or one of the two `sequence_ids` without the other.

    Example:
        model = T5(T5Config(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        source = np.array([[5, 6, 1]])
        outputs = model({"token_ids": source, "decoder_token_ids": np.array([[0, 7]])})
        model.output_logits(outputs["sequence_output"])  # [1, 2, 100]: what comes after each token

        sources, cache = model.sources(model.encode(source)), model.empty_cache(batch=1, length=8)
        x, cache = model.decode(np.array([[0]]), cache, 0, sources)  # the same, token by token
    """

    structure = "encoder_decoder"

    @staticmethod
    def make_stacks(config: Config, dtype: Policy) -> tuple[Stack, Stack]:
        """The `Stack`s of encoder and decoder, which share their embeddings; a family defines it."""
        raise NotImplementedError("an EncoderDecoder must define make_stacks(config, dtype)")

    def __init__(
        self,
        config: Config,
        pooler: bool = False,
        output_hidden_states: bool = False,
        dtype: Policy = None,
        **options: Options,
    ) -> None:
        if pooler:
            raise ConfigError(
                f"{type(self).__name__} is an encoder-decoder, which has no pooler; set ",
                Advice("task.kind", "text_to_text"),
                " to fine-tune it",
            )
        # === Layers ===
        dtype = policy(dtype)
        encoder, decoder = self.make_stacks(config, dtype)

        # === Functional model ===
        inputs = symbolic_inputs(ENCODER_DECODER_INPUTS)
        encoded = encoder(inputs)
        of_decoder = {key.removeprefix("decoder_"): inputs[key] for key in inputs if key.startswith("decoder_")}
        memory = Memory(encoded.last, inputs["padding_mask"], inputs["sequence_ids"])
        decoded = decoder(of_decoder, memory=memory)
        outputs = {"sequence_output": decoded.last, "encoder_output": encoded.last}
        if output_hidden_states:
            outputs |= {"hidden_states": decoded.hidden_states, "encoder_hidden_states": encoded.hidden_states}

        # === Configuration ===
        super().__init__(config, inputs, outputs, dtype, output_hidden_states=output_hidden_states, **options)
        self._encoder, self._decoder = encoder, decoder  # not Keras layers, which would be counted a second time
        self.add_output()

    def standardize_inputs(self, inputs: Any) -> Tensors:
        inputs = super().standardize_inputs(inputs)
        packed = [name for name in ("sequence_ids", "decoder_sequence_ids") if inputs[name] is not None]
        if len(packed) == 1:
            raise DataError(f"there is '{packed[0]}' alone; give 'sequence_ids' and 'decoder_sequence_ids', or neither")
        return inputs

    def blocks(self) -> list[keras.Layer]:
        """The transformer layers of the encoder, bottom first, then those of the decoder."""
        return [*self._encoder.blocks, *self._decoder.blocks]

    @property
    def embedding_table(self) -> Tensor:
        """The token table, a variable [V, H]."""
        return self._encoder.embeddings.token_table

    def encode(self, token_ids: Tensor, padding_mask: Tensor = None) -> Tensor:
        """The encoder alone: int [B, S], bool [B, S] -> float [B, S, H]."""
        return self._encoder({"token_ids": as_tensor(token_ids), "padding_mask": as_tensor(padding_mask)}).last

    def sources(self, encoder_output: Tensor) -> list[Tensor]:
        """What every layer of the decoder needs of the encoder's output: a pair of float [B, h, S, d] each."""
        return [block.cross_attention.keys_and_values(encoder_output) for block in self._decoder.blocks]

    def empty_cache(self, batch: Tensor, length: int) -> list[Tensor]:
        """A cache for `decode`: a pair (keys, values) for each layer, each zeros [batch, h, length, d]."""
        return self._decoder.empty_cache(batch, length)

    def decode(
        self,
        token_ids: Tensor,
        cache: list[Tensor],
        cache_position: Tensor,
        sources: list[Tensor],
        source_mask: Tensor = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Computes the next tokens of texts whose earlier tokens are in a cache; without dropout.

        Args:
            token_ids: int [B, Q], tokens number `cache_position` to `cache_position` + Q - 1.
            cache: of `empty_cache` or of the last call.
            cache_position: int scalar, the tokens that the cache holds so far.
            sources: of `sources`.
            source_mask: bool [B, S], False at padding of the encoder's input; None for no padding.

        Returns:
            A pair: `sequence_output` float [B, Q, H]; the new cache.
        """
        token_ids, source_mask = as_tensor(token_ids), as_tensor(source_mask)
        position_ids = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None] + cache_position
        outputs = self._decoder(
            {"token_ids": token_ids, "position_ids": position_ids},
            memory=Memory(list(sources), source_mask),
            cache=cache,
            cache_position=cache_position,
        )
        return outputs.last, outputs.cache
