"""The kinds of tokenizers: one record each, in one list that everything reads.

Records refer to functions and classes as "module:attribute" (see `registry.resolve`), so that the command line can
check its settings without TensorFlow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.registry import Registry, resolve
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
    function: str
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
            return resolve(self.function)(**settings)
        if self.has_alphabet:
            settings = settings | {"limit_alphabet": limit_alphabet}
        if special_tokens:
            settings = settings | {"special_tokens": special_tokens}
        return resolve(self.function)(texts, vocabulary_size, **settings)


@dataclasses.dataclass(frozen=True)
class TokenizerKind:
    """A kind of tokenizer: its class, its trainers, and the files that it is stored in.

    Attributes:
        name: the class has it as `kind`, and fingerprints cover it.
        tokenizer: its class, a `Tokenizer`.
        load: `load(path)` returns the tokenizer of a folder or of one file.
        files: the file names by which a folder is recognised, a tuple of names or patterns for each form; the first
            form is what `save` writes beside tokenizer_config.json.
        classes: the names in tokenizer_config.json, without "Fast".
        has_lowercase: whether `load` and `load_json` also take `lowercase`.
        suffixes: of single files that `load` takes.
        recognize: `recognize(folder)` decides where another kind has the same files.
        json_model: the `model.type` of a tokenizer.json that `load_json` reads, or None.
        load_json: `load_json(whole)` returns the tokenizer of a `TokenizerJson`.
        trainers: tuple of `VocabularyTrainer`.

    Example:
        from bert_tf.tokenizers import KINDS, TokenizerKind

        KINDS["wordpiece"].files  # (("vocab.txt",),)
        # In a file that defines the class Letters and the function load_letters, registered by KINDS.register(kind):
        kind = TokenizerKind("letters", "my_letters:Letters", "my_letters:load_letters", (("letters.txt",),))
    """

    name: str
    tokenizer: str
    load: str
    files: tuple[tuple[str, ...], ...]
    classes: tuple[str, ...] = ()
    has_lowercase: bool = False
    suffixes: tuple[str, ...] = ()
    recognize: str | None = None
    json_model: str | None = None
    load_json: str | None = None
    trainers: tuple[VocabularyTrainer, ...] = ()

    def has_files(self, folder: StrPath) -> bool:
        """Whether a folder holds files with the names of this kind's."""
        return any(all(any(Path(folder).glob(name)) for name in names) for names in self.files)

    def is_in(self, folder: StrPath) -> bool:
        """Whether a folder holds a tokenizer of this kind."""
        return self.has_files(folder) and (self.recognize is None or resolve(self.recognize)(folder))


def trainers() -> dict[str, VocabularyTrainer]:
    """dict of name -> `VocabularyTrainer`, of all kinds."""
    return {trainer.name: trainer for kind in KINDS.values() for trainer in kind.trainers}


_HERE = "bert_tf.tokenizers"
_BPE_FILES = (
    ("vocab.json", "merges.txt"),
    ("encoder.json", "vocab.bpe"),
    ("encoder_bpe_40000.json", "vocab_40000.bpe"),
)
_BPE_JSON: dict[str, Any] = {
    "json_model": "BPE",
    "load_json": f"{_HERE}.files.bpe:load_bpe_json",
}  # it decides which of the two
_TRAIN_UNIGRAM = f"{_HERE}.sentencepiece.training:train_unigram"
_UNIGRAM: dict[str, Any] = {"function": _TRAIN_UNIGRAM, "cased": {"lowercase": False, "keep_accents": True}}
#: A folder is searched for their files in this order.
KINDS = Registry(
    "tokenizer kind",
    "kind",
    [
        TokenizerKind(
            name="wordpiece",
            tokenizer=f"{_HERE}.wordpiece.wordpiece:WordPieceTokenizer",
            load=f"{_HERE}.files.wordpiece:load_wordpiece",
            files=(("vocab.txt",),),
            classes=("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
            has_lowercase=True,
            json_model="WordPiece",
            load_json=f"{_HERE}.files.wordpiece:load_wordpiece_json",
            trainers=(
                VocabularyTrainer(
                    "wordpiece",
                    "BERT, ELECTRA, DistilBERT, SpanBERT",
                    f"{_HERE}.wordpiece.training:train_wordpiece",
                    cased={"lowercase": False},
                    has_alphabet=True,
                    has_special_tokens=True,
                ),
                VocabularyTrainer(
                    "words",
                    "whole words, the most frequent first, for LSTM language models and ELMo; others are [UNK]",
                    f"{_HERE}.wordpiece.whole_words:train_words",
                    cased={"lowercase": False},
                    has_special_tokens=True,
                ),
            ),
        ),
        TokenizerKind(
            name="sentencepiece",
            tokenizer=f"{_HERE}.sentencepiece.sentencepiece:SentencePieceTokenizer",
            load=f"{_HERE}.files.sentencepiece:load_sentencepiece",
            files=(("spiece.model",), ("*.model",), ("*.spm",)),
            classes=("AlbertTokenizer", "XLNetTokenizer", "T5Tokenizer"),
            has_lowercase=True,
            suffixes=(".model", ".spm"),
            json_model="Unigram",
            load_json=f"{_HERE}.files.sentencepiece:load_unigram_json",
            trainers=(
                VocabularyTrainer("unigram", "SentencePiece for ALBERT", settings={"family": "albert"}, **_UNIGRAM),
                VocabularyTrainer("unigram_xlnet", "SentencePiece for XLNet", settings={"family": "xlnet"}, **_UNIGRAM),
                VocabularyTrainer(
                    "unigram_t5", "SentencePiece for T5, 100 sentinels; keeps case", _TRAIN_UNIGRAM, {"family": "t5"}
                ),
            ),
        ),
        TokenizerKind(
            name="byte_level_bpe",
            tokenizer=f"{_HERE}.bpe.byte_level_bpe:ByteLevelBPETokenizer",
            load=f"{_HERE}.files.bpe:load_byte_level_bpe",
            files=_BPE_FILES,
            classes=("RobertaTokenizer", "GPT2Tokenizer"),
            recognize=f"{_HERE}.files.bpe:spells_bytes",
            **_BPE_JSON,
            trainers=(
                VocabularyTrainer(
                    "byte_level_bpe",
                    "RoBERTa, ModernBERT: every text in any script, no unknown tokens; keeps case",
                    f"{_HERE}.bpe.training:train_byte_level_bpe",
                    has_special_tokens=True,
                ),
                VocabularyTrainer(
                    "byte_level_bpe_gpt2",
                    "GPT-2: the same with <|endoftext|> as the only special token, between documents",
                    f"{_HERE}.bpe.training:train_byte_level_bpe",
                    settings={"role_tokens": GPT2_ROLES, "layout": "none", "normalization": None},
                    has_special_tokens=True,
                ),
            ),
        ),
        TokenizerKind(
            name="bpe",
            tokenizer=f"{_HERE}.bpe.bpe:BPETokenizer",
            load=f"{_HERE}.files.bpe:load_bpe",
            files=_BPE_FILES,
            classes=("OpenAIGPTTokenizer",),
            **_BPE_JSON,
            trainers=(
                VocabularyTrainer(
                    "bpe",
                    "GPT-1: lowercased words with an end mark",
                    f"{_HERE}.bpe.training:train_bpe",
                    settings={"cleaning": "gpt1"},
                    has_alphabet=True,
                    has_special_tokens=True,
                ),
            ),
        ),
        TokenizerKind(
            name="byte",
            tokenizer=f"{_HERE}.byte.byte:ByteTokenizer",
            load=f"{_HERE}.files.byte:load_byte",
            files=(("tokenizer_config.json",),),
            classes=("ByT5Tokenizer",),
            recognize=f"{_HERE}.files.byte:is_byte",
            trainers=(
                VocabularyTrainer(
                    "byte",
                    "ByT5: the 256 bytes of every text in any script; needs no corpus",
                    f"{_HERE}.byte.byte:ByteTokenizer",
                    has_corpus=False,
                ),
                VocabularyTrainer(
                    "byte_extra_ids",
                    "the same with 125 sentinels apart from the bytes, which ByT5's checkpoints do not know",
                    f"{_HERE}.byte.byte:ByteTokenizer",
                    settings={"sentinels": "extra_ids"},
                    has_corpus=False,
                ),
            ),
        ),
        TokenizerKind(
            name="characters",
            tokenizer=f"{_HERE}.characters.characters:CharacterTokenizer",
            load=f"{_HERE}.files.characters:load_characters",
            files=(("tokenizer_config.json",), ("*options.json", "*weights.hdf5")),
            classes=("CharacterTokenizer",),
            recognize=f"{_HERE}.files.characters:is_characters",
            trainers=(
                VocabularyTrainer(
                    "characters",
                    "ELMo: the characters of each word; needs no corpus",
                    f"{_HERE}.characters.characters:CharacterTokenizer",
                    has_corpus=False,
                ),
            ),
        ),
    ],
)
