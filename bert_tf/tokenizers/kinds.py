"""The kinds of tokenizers: one record each, in one list that everything reads.

The functions of a record import what they call when they are called, so that the command line can check its settings
without TensorFlow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.registry import Registry
from bert_tf.tokenizers.special_tokens import GPT2_ROLES, SpecialToken
from bert_tf.types import StrPath

if TYPE_CHECKING:
    from bert_tf.tokenizers.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class VocabularyTrainer:
    """One way to train a vocabulary, `bert-tf vocab --kind NAME`.

    Attributes:
        name: of the choice.
        families: who uses it and for what, for the command's help.
        function: `function(texts, vocabulary_size, **settings)` returns a tokenizer.
        settings: dict, what this choice sets.
        cased: dict, what --cased sets; None where there is no choice.
        has_alphabet: whether the function takes `limit_alphabet`.
        has_special_tokens: whether the function takes `special_tokens`.
        has_corpus: whether there is a vocabulary to learn; without, the function takes neither texts nor a size.

    Example:
        from bert_tf.tokenizers import VocabularyTrainer, train_bpe

        trainer = VocabularyTrainer("sennrich", "BPE with an end mark", train_bpe, settings={"min_frequency": 1})
        trainer.train(["low lower lowest"], 40)
    """

    name: str
    families: str
    function: Callable[..., Tokenizer]
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    cased: dict[str, Any] | None = None
    has_alphabet: bool = False
    has_special_tokens: bool = False
    has_corpus: bool = True

    def train(
        self,
        texts: Iterable[str],
        vocabulary_size: int,
        cased: bool = False,
        limit_alphabet: int | None = None,
        special_tokens: Sequence[str | SpecialToken] = (),
    ) -> Tokenizer:
        """A tokenizer with a vocabulary learned from `texts`, an iterable of str; without `has_corpus` the one there is."""
        settings = self.settings | ((cased and self.cased) or {})
        if not self.has_corpus:
            return self.function(**settings)
        if self.has_alphabet:
            settings = settings | {"limit_alphabet": limit_alphabet}
        if special_tokens:
            settings = settings | {"special_tokens": special_tokens}
        return self.function(texts, vocabulary_size, **settings)


@dataclasses.dataclass(frozen=True)
class TokenizerKind:
    """A kind of tokenizer: its class, its trainers, and the files that it is stored in.

    Attributes:
        name: the class has it as `kind`, and fingerprints cover it.
        load: `load(path)` returns the tokenizer of a folder or of one file.
        files: the file names by which a folder is recognised, a tuple of names or patterns for each form; the first
            form is what `save` writes beside tokenizer_config.json.
        classes: the names in tokenizer_config.json, without "Fast".
        has_lowercase: whether `load` and `load_json` also take `lowercase`.
        suffixes: of single files that `load` takes.
        recognize: `recognize(folder)` decides where another kind has the same files.
        json_model: the `model.type` of a tokenizer.json that `load_json` reads, or None.
        load_json: `load_json(json_file)` returns the tokenizer of a `TokenizerJson`.
        trainers: tuple of `VocabularyTrainer`.

    Example:
        from bert_tf.tokenizers import KINDS, TokenizerKind

        KINDS["wordpiece"].files  # (("vocab.txt",),)
        def load_letters(folder):
            return WordPieceTokenizer(["[PAD]", "[UNK]", *(folder / "letters.txt").read_text()])

        KINDS.register(TokenizerKind("letters", load_letters, (("letters.txt",),)))
    """

    name: str
    load: Callable[..., Tokenizer]
    files: tuple[tuple[str, ...], ...]
    classes: tuple[str, ...] = ()
    has_lowercase: bool = False
    suffixes: tuple[str, ...] = ()
    recognize: Callable[[StrPath], bool] | None = None
    json_model: str | None = None
    load_json: Callable[..., Tokenizer] | None = None
    trainers: tuple[VocabularyTrainer, ...] = ()

    def has_files(self, folder: StrPath) -> bool:
        """Whether a folder holds files with the names of this kind's."""
        return any(all(any(Path(folder).glob(name)) for name in names) for names in self.files)

    def is_in(self, folder: StrPath) -> bool:
        """Whether a folder holds a tokenizer of this kind."""
        return self.has_files(folder) and (self.recognize is None or self.recognize(folder))


def trainers() -> dict[str, VocabularyTrainer]:
    """dict of name -> `VocabularyTrainer`, of all kinds."""
    return {trainer.name: trainer for kind in KINDS.values() for trainer in kind.trainers}


def _bpe_files():
    from bert_tf.tokenizers.files import bpe

    return bpe


def _train_unigram(*texts, **settings):
    from bert_tf.tokenizers.sentencepiece.training import train_unigram

    return train_unigram(*texts, **settings)


def _wordpiece_files():
    from bert_tf.tokenizers.files import wordpiece

    return wordpiece


def _wordpiece_training():
    from bert_tf.tokenizers.wordpiece import training

    return training


def _whole_words():
    from bert_tf.tokenizers.wordpiece import whole_words

    return whole_words


def _sentencepiece_files():
    from bert_tf.tokenizers.files import sentencepiece

    return sentencepiece


def _bpe_training():
    from bert_tf.tokenizers.bpe import training

    return training


def _byte_files():
    from bert_tf.tokenizers.files import byte

    return byte


def _byte():
    from bert_tf.tokenizers.byte import byte

    return byte


def _character_files():
    from bert_tf.tokenizers.files import characters

    return characters


def _characters():
    from bert_tf.tokenizers.characters import characters

    return characters


_BPE_FILES = (
    ("vocab.json", "merges.txt"),
    ("encoder.json", "vocab.bpe"),
    ("encoder_bpe_40000.json", "vocab_40000.bpe"),
)
_BPE_JSON: dict[str, Any] = {
    "json_model": "BPE",
    "load_json": lambda json_file, **settings: _bpe_files().load_bpe_json(json_file, **settings),
}  # it decides which of the two
_UNIGRAM: dict[str, Any] = {"function": _train_unigram, "cased": {"lowercase": False, "keep_accents": True}}
#: A folder is searched for their files in this order.
KINDS = Registry(
    "tokenizer kind",
    "kind",
    [
        TokenizerKind(
            name="wordpiece",
            load=lambda path, **settings: _wordpiece_files().load_wordpiece(path, **settings),
            files=(("vocab.txt",),),
            classes=("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
            has_lowercase=True,
            json_model="WordPiece",
            load_json=lambda json_file, **settings: _wordpiece_files().load_wordpiece_json(json_file, **settings),
            trainers=(
                VocabularyTrainer(
                    "wordpiece",
                    "BERT, ELECTRA, DistilBERT, SpanBERT",
                    lambda *texts, **settings: _wordpiece_training().train_wordpiece(*texts, **settings),
                    cased={"lowercase": False},
                    has_alphabet=True,
                    has_special_tokens=True,
                ),
                VocabularyTrainer(
                    "words",
                    "whole words, the most frequent first, for LSTM language models and ELMo; others are [UNK]",
                    lambda *texts, **settings: _whole_words().train_words(*texts, **settings),
                    cased={"lowercase": False},
                    has_special_tokens=True,
                ),
            ),
        ),
        TokenizerKind(
            name="sentencepiece",
            load=lambda path, **settings: _sentencepiece_files().load_sentencepiece(path, **settings),
            files=(("spiece.model",), ("*.model",), ("*.spm",)),
            classes=("AlbertTokenizer", "XLNetTokenizer", "T5Tokenizer"),
            has_lowercase=True,
            suffixes=(".model", ".spm"),
            json_model="Unigram",
            load_json=lambda json_file, **settings: _sentencepiece_files().load_unigram_json(json_file, **settings),
            trainers=(
                VocabularyTrainer("unigram", "SentencePiece for ALBERT", settings={"family": "albert"}, **_UNIGRAM),
                VocabularyTrainer("unigram_xlnet", "SentencePiece for XLNet", settings={"family": "xlnet"}, **_UNIGRAM),
                VocabularyTrainer(
                    "unigram_t5", "SentencePiece for T5, 100 sentinels; keeps case", _train_unigram, {"family": "t5"}
                ),
            ),
        ),
        TokenizerKind(
            name="byte_level_bpe",
            load=lambda path, **settings: _bpe_files().load_byte_level_bpe(path, **settings),
            files=_BPE_FILES,
            classes=("RobertaTokenizer", "GPT2Tokenizer"),
            recognize=lambda folder: _bpe_files().spells_bytes(folder),
            **_BPE_JSON,
            trainers=(
                VocabularyTrainer(
                    "byte_level_bpe",
                    "RoBERTa, ModernBERT: every text in any script, no unknown tokens; keeps case",
                    lambda *texts, **settings: _bpe_training().train_byte_level_bpe(*texts, **settings),
                    has_special_tokens=True,
                ),
                VocabularyTrainer(
                    "byte_level_bpe_gpt2",
                    "GPT-2: the same with <|endoftext|> as the only special token, between documents",
                    lambda *texts, **settings: _bpe_training().train_byte_level_bpe(*texts, **settings),
                    settings={"role_tokens": GPT2_ROLES, "layout": "none", "normalization": None},
                    has_special_tokens=True,
                ),
            ),
        ),
        TokenizerKind(
            name="bpe",
            load=lambda path, **settings: _bpe_files().load_bpe(path, **settings),
            files=_BPE_FILES,
            classes=("OpenAIGPTTokenizer",),
            **_BPE_JSON,
            trainers=(
                VocabularyTrainer(
                    "bpe",
                    "GPT-1: lowercased words with an end mark",
                    lambda *texts, **settings: _bpe_training().train_bpe(*texts, **settings),
                    settings={"cleaning": "gpt1"},
                    has_alphabet=True,
                    has_special_tokens=True,
                ),
            ),
        ),
        TokenizerKind(
            name="byte",
            load=lambda path, **settings: _byte_files().load_byte(path, **settings),
            files=(("tokenizer_config.json",),),
            classes=("ByT5Tokenizer",),
            recognize=lambda folder: _byte_files().is_byte(folder),
            trainers=(
                VocabularyTrainer(
                    "byte",
                    "ByT5: the 256 bytes of every text in any script; needs no corpus",
                    lambda **settings: _byte().ByteTokenizer(**settings),
                    has_corpus=False,
                ),
                VocabularyTrainer(
                    "byte_extra_ids",
                    "the same with 125 sentinels apart from the bytes, which ByT5's checkpoints do not know",
                    lambda **settings: _byte().ByteTokenizer(**settings),
                    settings={"sentinels": "extra_ids"},
                    has_corpus=False,
                ),
            ),
        ),
        TokenizerKind(
            name="characters",
            load=lambda path, **settings: _character_files().load_characters(path, **settings),
            files=(("tokenizer_config.json",), ("*options.json", "*weights.hdf5")),
            classes=("CharacterTokenizer",),
            recognize=lambda folder: _character_files().is_characters(folder),
            trainers=(
                VocabularyTrainer(
                    "characters",
                    "ELMo: the characters of each word; needs no corpus",
                    lambda: _characters().CharacterTokenizer(),
                    has_corpus=False,
                ),
            ),
        ),
    ],
)
