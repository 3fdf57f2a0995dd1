"""GPT-1's settings, size and record. No Keras is imported."""

import dataclasses

from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Positions, Positive, StackConfig, TokenId, published_sizes


@dataclasses.dataclass(frozen=True)
class GPT1Config(StackConfig):
    """The settings of a GPT-1.

    Args:
        max_positions: rows of the position table: the longest text.
        prefix: whether the tokens of a source see each other in both directions ("prefix LM"), in training and, for the
            prompt, in generation; the published model was trained without.
        dropout: on the embeddings and on both branches of each layer.
        skipped_id: classifiers read the last token that is not this one, as Hugging Face's do with their
            `pad_token_id`; None for the last token of all.
        others: as `StackConfig`.

    Example:
        GPT1Config(100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32, max_positions=64)
    """

    max_positions: Positions = 512
    prefix: bool = False
    layer_norm_epsilon: Positive = 1e-5
    skipped_id: TokenId | None = None


def _checkpoints():
    from bert_tf.models.gpt1 import checkpoints

    return {"hf": checkpoints.HF, "numpy": checkpoints.NUMPY}


GPT1 = Family(
    name="gpt1",
    config=GPT1Config,
    model="bert_tf.models.gpt1.model:GPT1Decoder",
    # openai/finetune-transformer-lm: 40,000 merges and what they begin with. The output layer is the token table.
    sizes={"gpt1": Preset(GPT1Config(40_478, **published_sizes(12, 768)), 116_534_784, 116_534_784)},
    checkpoints=_checkpoints,
    objective="causal_lm",
    structure="decoder",
)
