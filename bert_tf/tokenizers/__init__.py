"""Text to token ids and back, as graph ops: training of vocabularies and their application."""

from bert_tf.tokenizers.loading import load_tokenizer
from bert_tf.tokenizers.wordpiece import WordPieceTokenizer
from bert_tf.tokenizers.wordpiece_training import train_wordpiece
