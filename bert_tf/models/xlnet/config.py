"""XLNet's settings, sizes and record. No Keras is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.models.family import Family, Preset
from bert_tf.models.model_config import StackConfig, published_sizes
from bert_tf.models.task_heads import TaskHead


@dataclasses.dataclass(frozen=True)
class XLNetConfig(StackConfig):
    """The settings of an XLNet.

    The three biases of attention are each layer's own (`untie_r` of the original, set in all published
    models), and attention is bidirectional (`attn_type` "bi").

    Args:
        hidden_size: H, even: half of it holds sines of the distance, half cosines.
        activation: the original code's flag has "relu" as its default, the published models say "gelu",
            which there is the tanh approximation.
        dropout: on embeddings, on the sinusoids, on both branches of each layer, inside the feed-forward
            network, and on the last layer's output. In the original code, too, one flag sets them all; table 7
            of the paper gives 0.0 inside the feed-forward network. Hugging Face's files have one rate, too: this
            one is written; another `attention_dropout` only counts here, which `bert_tf.save` says.
        initializer_range: standard deviation of the normal, not truncated, of kernels and tables. (The vector
            that stands for a token to be predicted is drawn from it, too; the original leaves that one to
            TensorFlow's default, Glorot.)
        clamp_length: distances beyond it count as it; None, as published, for no limit.
        others: as `StackConfig`.

    Example:
        XLNetConfig(vocabulary_size=100, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32)
    """

    has_query_stream: ClassVar[bool] = True
    reads_segments: ClassVar[bool] = True  # it compares them, without a table
    padding_side: ClassVar[str] = "left"  # the heads of Hugging Face's classes read the last token

    clamp_length: Annotated[int | None, Range(at_least=1)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % 2:
            raise ConfigError(f"hidden_size={self.hidden_size} must be even: half sines, half cosines")


def _checkpoints():
    from bert_tf.models.xlnet import checkpoints

    return {"hf": checkpoints.HF, "tf1": checkpoints.TF1, "keras_hub": checkpoints.HUB}


XLNET = Family(
    name="xlnet",
    config=XLNetConfig,
    model="bert_tf.models.xlnet.model:XLNetEncoder",
    sizes={
        # zihangdai/xlnet.
        "xlnet_base_cased": Preset(XLNetConfig(32_000, **published_sizes(12, 768)), 116_718_336, 116_750_336),
        "xlnet_large_cased": Preset(XLNetConfig(32_000, **published_sizes(24, 1024)), 360_268_800, 360_300_800),
    },
    checkpoints=_checkpoints,
    objective="permutation_lm",
    # The pooler is the summary of zihangdai/xlnet. `XLNetForTokenClassification` has no dropout beside the encoder's.
    heads=lambda config: {"tagging": TaskHead("tokens", dropout=0.0)},
)
