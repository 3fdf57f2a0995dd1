"""The layers that the model families are built from. Pure Keras 3."""

from bert_tf.layers.activations import activation
from bert_tf.layers.attention import Attention
from bert_tf.layers.attention_mask import AttentionMask
from bert_tf.layers.embeddings import Embeddings, embedding_projection
from bert_tf.layers.heads import ClassificationHead, Pooler
from bert_tf.layers.last_token_pooler import LastToken, LastTokenPooler
from bert_tf.layers.lm_head import LMHead
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.layers.relative_attention import RelativeAttention, RelativePositions
from bert_tf.layers.relative_block import RelativeBlock
from bert_tf.layers.relative_position_bias import RelativePositionBias
from bert_tf.layers.rotary import RotaryPositions
from bert_tf.layers.segment_memory import SegmentMemory
from bert_tf.layers.stream_embeddings import StreamEmbeddings
from bert_tf.layers.stream_mask import SegmentsDiffer, StreamMask
from bert_tf.layers.transformer_block import TransformerBlock
