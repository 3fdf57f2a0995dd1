"""The model families, one file each, and their published sizes. Pure Keras 3."""

from bert_tf.models.bert import ENCODER_INPUTS, BertConfig, BertEncoder
from bert_tf.models.presets import PRESETS, Preset, preset
