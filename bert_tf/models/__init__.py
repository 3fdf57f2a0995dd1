"""The model families, one file each, and their published sizes. Pure Keras 3."""

from bert_tf.models.albert import AlbertConfig, AlbertEncoder
from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.models.distilbert import DistilBertConfig, DistilBertEncoder
from bert_tf.models.encoder import ENCODER_INPUTS, Encoder
from bert_tf.models.modernbert import ModernBertConfig, ModernBertEncoder
from bert_tf.models.presets import PRESETS, Preset, preset
from bert_tf.models.roberta import RobertaConfig, RobertaEncoder
from bert_tf.models.xlnet import XLNetConfig, XLNetEncoder
