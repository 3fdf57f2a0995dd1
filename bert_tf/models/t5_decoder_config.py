"""The settings and the record of T5's decoder-only models. No Keras is imported."""

import dataclasses

from bert_tf.models.family import Family
from bert_tf.models.t5_encoder_config import T5StackConfig


@dataclasses.dataclass(frozen=True)
class T5DecoderConfig(T5StackConfig):
    """The settings of a decoder with T5's layers: "language model" and "prefix LM" in table 2 of the T5 paper.

    The token table is the output layer, too, with x / sqrt(H) before it.

    Args:
        prefix: whether the tokens of a source see each other in both directions ("prefix LM"), in training and, for
            the prompt, in generation. False: a token sees itself and the tokens before it ("language model").
        others: see `T5StackConfig`.

    Example:
        T5DecoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32, prefix=True)
    """

    prefix: bool = False


T5_DECODER = Family(
    name="t5_decoder",
    config=T5DecoderConfig,
    model="bert_tf.models.t5_decoder:T5Decoder",
    objective="denoising",
    kind="decoder",
)
