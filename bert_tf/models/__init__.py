"""The model families, one file each, and their published sizes. Pure Keras 3."""

from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.models.encoder import ENCODER_INPUTS, Encoder
from bert_tf.models.presets import PRESETS, Preset, preset
