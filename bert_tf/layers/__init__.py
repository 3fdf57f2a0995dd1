"""The layers that the model families are built from. Pure Keras 3."""

from bert_tf.layers.activations import activation
from bert_tf.layers.attention import SelfAttention
from bert_tf.layers.attention_mask import AttentionMask
from bert_tf.layers.embeddings import Embeddings, embedding_projection
from bert_tf.layers.heads import ClassificationHead, Pooler
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.pre_norm_block import PreNormBlock
from bert_tf.layers.rotary import RotaryPositions
from bert_tf.layers.rotary_attention import RotaryAttention
from bert_tf.layers.transformer_block import TransformerBlock
