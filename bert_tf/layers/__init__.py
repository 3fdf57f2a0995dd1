"""The layers that the model families are built from. Pure Keras 3.

Where all arguments of a constructor are numbers, strings or None, Keras keeps them, and there is no `get_config`.
"""

from bert_tf.layers.activations import activation
from bert_tf.layers.attention import Attention
from bert_tf.layers.attention_mask import AttentionMask
from bert_tf.layers.block_settings import AttentionSettings, BlockSettings, FeedForwardSettings, NormSettings
from bert_tf.layers.character_embeddings import CharacterEmbeddings
from bert_tf.layers.embeddings import Embeddings
from bert_tf.layers.heads import ClassificationHead, LastToken, LastTokenPooler, Pooler
from bert_tf.layers.parts import OutputLayer, RMSNormalization, range_of
from bert_tf.layers.positions import RelativePositionBias, RotaryPositions, SinusoidalPositions
from bert_tf.layers.pretraining_heads import DiscriminatorHead, LMHead, MaskedLMHead, SpanBoundaryHead
from bert_tf.layers.recurrent import LSTM, BiLstm, EndsOfDirections, bilstms
from bert_tf.layers.relative_attention import RelativeAttention, RelativePositions
from bert_tf.layers.relative_block import RelativeBlock, RelativeContext
from bert_tf.layers.scalar_mix import ScalarMix
from bert_tf.layers.streams import SegmentMemory, SegmentsDiffer, StreamEmbeddings, StreamMask
from bert_tf.layers.transformer_block import BlockContext, TransformerBlock
