"""ModernBERT's settings, sizes and record. No Keras is imported."""

import dataclasses
from typing import Annotated, Any, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import Activation, Positions, Positive, Rate, StackConfig, published_sizes
from bert_tf.models.task_heads import TaskHead


@dataclasses.dataclass(frozen=True)
class ModernBertConfig(StackConfig):
    """The settings of a ModernBERT.

    Args:
        num_heads: attention heads; divides `hidden_size` into even parts.
        intermediate_size: I, the width of each half of the gated network.
        max_positions: the longest sequences it was trained on. Positions are rotations, so longer ones are
            computed, too.
        global_attention_every: n; layers 0, n, 2 n, ... see all tokens, the others near ones.
        local_attention: w; a local layer sees w // 2 tokens on each side.
        global_theta: the base of the rotary wavelengths in layers that see all tokens.
        local_theta: the base of the rotary wavelengths in layers that see near tokens.
        activation: of the gate and the masked LM head.
        dropout: on the embeddings and inside the gated networks. The released configurations have none.
        attention_dropout: on attention probabilities and on the attention's output.
        classifier_pooling: what fine-tuned classifiers read: "mean" over the tokens, as the released configurations
            say, or the first token, "cls".
        initializer_range: of the kernels whose results are added to the residual stream, and of the masked
            LM head, it is divided by sqrt(2 * num_layers).
        others: as `StackConfig`.

    Example:
        ModernBertConfig(100, 16, num_layers=3, num_heads=2, intermediate_size=32, local_attention=4)
    """

    activation: Activation = "gelu_erf"
    dropout: Rate = 0.0
    attention_dropout: Rate = 0.0
    layer_norm_epsilon: Positive = 1e-5
    max_positions: Positions = 8192
    global_attention_every: Annotated[int, Range(at_least=1)] = 3
    local_attention: Annotated[int, Range(at_least=1)] = 128
    global_theta: Positive = 160_000.0
    local_theta: Positive = 10_000.0
    classifier_pooling: Literal["cls", "mean"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        head_size = self.hidden_size // self.num_heads
        if head_size % 2:
            raise ConfigError(f"rotary positions need an even head size, got {head_size} = hidden_size / num_heads")

    @property
    def output_initializer_range(self) -> float:
        """Of the kernels that write to the residual stream."""
        return self.initializer_range / (2 * self.num_layers) ** 0.5


def _heads(config):
    """The heads of `modeling_modernbert.py`: the pretrained layers of the masked LM head, and the output layer."""
    pretrained = {"hidden/kernel": "masked_lm_head/dense/kernel", "layer_norm/gamma": "masked_lm_head/layer_norm/gamma"}
    layers = {
        "activation": config.activation,
        "hidden_bias": False,
        "norm_epsilon": config.layer_norm_epsilon,
        "dropout": 0.0,
        "pretrained": pretrained,
    }
    pooling: Any = {"cls": "first", "mean": "mean"}[config.classifier_pooling]
    return {"classification": TaskHead(pooling, **layers), "tagging": TaskHead("tokens", **layers)}


def _checkpoints():
    from bert_tf.models.modernbert import checkpoints

    return {"hf": checkpoints.HF}


MODERNBERT = Family(
    name="modernbert",
    config=ModernBertConfig,
    model="bert_tf.models.modernbert.model:ModernBertEncoder",
    sizes={
        # Answer.AI's and LightOn's releases.
        "modernbert_base": Preset(ModernBertConfig(50_368, **published_sizes(22, 768, 1152)), 149_014_272, 149_655_232),
        "modernbert_large": Preset(
            ModernBertConfig(50_368, **published_sizes(28, 1024, 2624)), 394_781_696, 395_881_664
        ),
    },
    checkpoints=_checkpoints,
    heads=_heads,
)
