"""GPT-2's settings, sizes and record. No Keras is imported."""

import dataclasses

from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Positions, Positive, StackConfig, TokenId, published_sizes
from bert_tf.models.task_heads import TaskHead


@dataclasses.dataclass(frozen=True)
class GPT2Config(StackConfig):
    """The settings of a GPT-2.

    Args:
        max_positions: rows of the position table: the longest text.
        dropout: on the embeddings and on both branches of each layer.
        initializer_range: standard deviation of kernels and of the token table. The kernels whose results are
            added to the residual stream have it divided by sqrt(2 * num_layers).
        position_initializer_range: of the position table.
        skipped_id: classifiers read the last token that is not this one, as Hugging Face's do with their
            `pad_token_id`; None for the last token of all.
        others: as `StackConfig`.

    Example:
        GPT2Config(100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32, max_positions=64)
    """

    max_positions: Positions = 1024
    layer_norm_epsilon: Positive = 1e-5
    position_initializer_range: Positive = 0.01
    skipped_id: TokenId | None = None

    @property
    def output_initializer_range(self) -> float:
        """Of the kernels that write to the residual stream (Radford et al. 2019, section 2.3)."""
        return self.initializer_range / (2 * self.num_layers) ** 0.5


def _size(num_layers, hidden_size, parameters):
    return Preset(GPT2Config(50_257, **published_sizes(num_layers, hidden_size)), parameters, parameters)


def _checkpoints():
    from bert_tf.models.gpt2 import checkpoints

    return {"hf": checkpoints.HF, "tf1": checkpoints.TF1, "keras_hub": checkpoints.HUB}


GPT2 = Family(
    name="gpt2",
    config=GPT2Config,
    model="bert_tf.models.gpt2.model:GPT2Decoder",
    sizes={
        # OpenAI's releases. The output layer is the token table.
        "gpt2_small": _size(12, 768, 124_439_808),
        "gpt2_medium": _size(24, 1024, 354_823_168),
        "gpt2_large": _size(36, 1280, 774_030_080),
        "gpt2_xl": _size(48, 1600, 1_557_611_200),
    },
    checkpoints=_checkpoints,
    objective="causal_lm",
    structure="decoder",
    # OpenAI published no fine-tuned GPT-2; this is Hugging Face's `score`.
    heads=lambda config: {"classification": TaskHead("pooled", dropout=0.0, bias=False)},
)
