"""The output layer of models that write: a `Decoder`'s and an `EncoderDecoder`'s."""

from typing import Any

from keras import ops

from bert_tf.backend import product_with_transposed
from bert_tf.layers import OutputLayer
from bert_tf.types import Config, Mixin, Policy, Tensor


class TokenOutput(Mixin):
    """Mixed into a `Backbone` that has an `embedding_table`: from its vectors to the logits of the next token.

    Attributes:
        output_layer: an `OutputLayer`; None for the token table.
    """

    output_layer: Any = None

    @staticmethod
    def make_output(config: Config, dtype: Policy) -> OutputLayer | None:
        """The `OutputLayer` of a configuration; None for the token table."""
        return None

    def add_output(self) -> None:
        """Adds the layer of `make_output`; for the end of a constructor."""
        if (output := self.make_output(self.config, self.dtype_policy)) is not None:
            self.output_layer = output

    @property
    def output_scale(self) -> float:
        """Factor of the vectors before the output layer."""
        return 1.0

    @property
    def output_table(self) -> Tensor:
        """The table of the output layer, a variable [V, H]."""
        return self.embedding_table if self.output_layer is None else self.output_layer.kernel

    @property
    def output_bias(self) -> Tensor:
        """The bias of the output layer, a variable [V]; None for none."""
        return None if self.output_layer is None else self.output_layer.bias

    def output_logits(self, x: Tensor) -> Tensor:
        """The logits of the next token: float [..., H] -> float32 [..., V]."""
        logits = ops.cast(product_with_transposed(*self._scaled(x)), "float32")
        return logits if self.output_bias is None else logits + ops.cast(self.output_bias, "float32")

    def output_factors(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """A pair of the compute dtype, whose product, with the second transposed, is logits.

        Args:
            x: float [..., H].

        Returns:
            float [..., H], float [V, H]; with a bias [..., H + 1] and [V, H + 1].
        """
        x, table = self._scaled(x)
        if self.output_bias is None:
            return x, table
        bias = ops.cast(self.output_bias, self.compute_dtype)[:, None]
        return ops.concatenate([x, ops.ones_like(x[..., :1])], axis=-1), ops.concatenate([table, bias], axis=-1)

    def _scaled(self, x):
        x = x if self.output_scale == 1.0 else x * self.output_scale
        return ops.cast(x, self.compute_dtype), ops.cast(self.output_table, self.compute_dtype)
