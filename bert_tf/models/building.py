"""From a family's configuration to its encoder."""

from bert_tf.models.albert import AlbertEncoder
from bert_tf.models.bert import BertEncoder
from bert_tf.models.distilbert import DistilBertEncoder
from bert_tf.models.electra import ElectraEncoder
from bert_tf.models.modernbert import ModernBertEncoder
from bert_tf.models.roberta import RobertaEncoder
from bert_tf.models.section import build_config, describe, family_of  # noqa: F401
from bert_tf.models.spanbert import SpanBertEncoder
from bert_tf.models.xlnet import XLNetEncoder

_ENCODERS = (
    BertEncoder,
    RobertaEncoder,
    AlbertEncoder,
    DistilBertEncoder,
    ModernBertEncoder,
    ElectraEncoder,
    SpanBertEncoder,
    XLNetEncoder,
)
#: The name of each family: its configuration and its encoder.
FAMILIES = {encoder.family: (encoder.config_class, encoder) for encoder in _ENCODERS}


def build_encoder(config, **arguments):
    """The encoder of a configuration; `arguments` are the encoder's own, such as `pooler`."""
    return FAMILIES[family_of(config)][1](config, **arguments)
