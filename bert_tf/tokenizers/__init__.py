"""Text to token ids and back, as graph ops: training of vocabularies and their application."""

from bert_tf.tokenizers.bpe import BPETokenizer
from bert_tf.tokenizers.bpe_training import train_bpe, train_byte_level_bpe
from bert_tf.tokenizers.byte_level_bpe import ByteLevelBPETokenizer
from bert_tf.tokenizers.layout import Layout
from bert_tf.tokenizers.loading import load_tokenizer
from bert_tf.tokenizers.sentencepiece import SentencePieceTokenizer
from bert_tf.tokenizers.special_tokens import SpecialToken
from bert_tf.tokenizers.unigram_training import train_unigram
from bert_tf.tokenizers.wordpiece import WordPieceTokenizer
from bert_tf.tokenizers.wordpiece_training import train_wordpiece
