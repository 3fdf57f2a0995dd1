"""Text to token ids and back, as graph ops: training of vocabularies and their application.

`KINDS` lists the kinds of tokenizers; each has a folder. `tokenizer.py` is what all kinds share. Names are
imported when they are first used (PEP 562), so that the list of kinds is there without TensorFlow.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "bpe.bpe": ["BPETokenizer"],
    "bpe.byte_level_bpe": ["ByteLevelBPETokenizer"],
    "bpe.training": ["train_bpe", "train_byte_level_bpe"],
    "byte.byte": ["ByteTokenizer"],
    "characters.characters": ["CharacterTokenizer"],
    "files.loading": ["load_tokenizer"],
    "frame": ["Frame"],
    "kinds": ["KINDS", "TokenizerKind", "VocabularyTrainer"],
    "layout": ["Layout"],
    "sentencepiece.sentencepiece": ["SentencePieceTokenizer"],
    "sentencepiece.training": ["train_unigram"],
    "special_tokens": ["SpecialToken"],
    "tokenizer": ["Tokenizer"],
    "wordpiece.training": ["train_wordpiece"],
    "wordpiece.whole_words": ["train_words", "whole_word_tokenizer"],
    "wordpiece.wordpiece": ["WordPieceTokenizer"],
})  # fmt: skip
