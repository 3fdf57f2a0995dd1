"""Training of SentencePiece unigram models: the same texts always give the same model."""

import io
from collections.abc import Iterable, Sequence
from typing import Any

import sentencepiece

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.character_tables import sentencepiece_characters
from bert_tf.tokenizers.sentencepiece.digit_commas import is_cut
from bert_tf.tokenizers.sentencepiece.families import check_family, family_tokens
from bert_tf.tokenizers.sentencepiece.model_file import parse_model
from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer
from bert_tf.tokenizers.special_tokens import SpecialToken, as_special_token

_MAX_BYTES = 4000  # the trainer leaves out longer sentences (its limit is 4192)
_RESERVED = "\u2585"  # the trainer leaves out sentences with it
# What google-research/albert names when it trains its vocabulary (README), and XLNet too.
_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")


def train_unigram(
    texts: Iterable[str],
    vocabulary_size: int,
    family: str = "albert",
    lowercase: bool | None = None,
    keep_accents: bool = False,
    character_coverage: float = 0.99995,
    special_tokens: Sequence[str | SpecialToken] = (),
    show_progress: bool = False,
) -> SentencePieceTokenizer:
    """Learns a unigram model and returns the `SentencePieceTokenizer` that applies it.

    Args:
        texts: iterable of str, read once; the trainer holds all sentences in memory.
        vocabulary_size: how many pieces at most, special tokens among them; T5's sentinels come on top. Pieces such as
            "2004,", which ALBERT's and XLNet's authors cut before the comma, are left out of these families' models.
        family, lowercase, keep_accents: see `SentencePieceTokenizer`; texts are cleaned as it does.
        character_coverage: which fraction of all characters gets pieces.
        special_tokens: further ones; those that the family has anyway are its own.
        show_progress: lets the trainer print what it does.

    Returns:
        The tokenizer; special tokens have the ids of the family's published models.

    Raises:
        DataError: the texts hold no word.
        ConfigError: an unknown family, or a vocabulary_size that cannot be reached or is too small.

    Source: Kudo, "Subword Regularization", 2018, as the `sentencepiece` package trains it; the settings of
    google-research/albert and zihangdai/xlnet.
    """
    default = check_family(family)
    cleaned, lower = default["cleaned"], default["lowercase"] if lowercase is None else lowercase
    table = str.maketrans(sentencepiece_characters(lower, keep_accents)) if cleaned else {}
    ids: dict[str, Any] = {
        "albert": dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"]),
        "xlnet": dict(unk_id=0, bos_id=1, eos_id=2, pad_id=5, control_symbols=["<cls>", "<sep>", "<mask>", "<eod>", "<eop>"]),
        "t5": dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1, control_symbols=[]),
    }[family]  # fmt: skip
    symbols = _SYMBOLS if cleaned else ()
    family_pieces = {*family_tokens(family), *ids["control_symbols"], *symbols}
    further = dict.fromkeys(as_special_token(token).content for token in special_tokens)
    ids["control_symbols"] += [token for token in further if token not in family_pieces]
    sentences = _Sentences(texts, table, cleaned)
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=content,
            vocab_size=vocabulary_size,
            model_type="unigram",
            character_coverage=character_coverage,
            pad_piece="<pad>",
            user_defined_symbols=list(symbols),
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=0 if show_progress else 2,
            **ids,
        )
    except (RuntimeError, OSError) as error:
        if sentences.error is not None:
            raise sentences.error from None
        if not sentences.count:
            raise DataError("cannot train a vocabulary: the corpus holds no text") from None
        raise ConfigError(f"vocabulary_size {vocabulary_size}: {error}") from None
    model = _without_digit_commas(content.getvalue()) if cleaned else content.getvalue()
    return SentencePieceTokenizer(model, family, lowercase, keep_accents, special_tokens=special_tokens)


def _without_digit_commas(model):
    """The model without the pieces that the family's authors cut again, so that there is nothing to cut."""
    proto = parse_model(model)
    uncut_pieces = [piece for piece in proto.pieces if not is_cut(piece.piece)]
    del proto.pieces[:]
    proto.pieces.extend(uncut_pieces)
    proto.trainer_spec.vocab_size = len(uncut_pieces)
    return proto.SerializeToString(deterministic=True)


class _Sentences:
    """The texts, cleaned and cut between words into what the trainer takes; overlong words between characters.

    Attributes:
        count: how many words were read.
        error: what stopped the reading, which the trainer makes a RuntimeError; or None.
    """

    def __init__(self, texts, table, cleaned):
        self.texts, self.table, self.cleaned = texts, table, cleaned
        self.count, self.error = 0, None

    def __iter__(self):
        try:
            for text in self.texts:
                yield from self._lines(text)
        except (Exception, KeyboardInterrupt) as error:
            self.error = error
            raise

    def _lines(self, text):
        text = text.encode("utf-8", "replace").decode("utf-8").replace(_RESERVED, " ")
        if self.cleaned:
            text = text.replace("``", '"').replace("''", '"').translate(self.table)
        line: list[str] = []
        size = 0
        for word in text.split():
            self.count += 1
            for part in _parts(word):
                length = len(part.encode("utf-8")) + 1
                if line and size + length > _MAX_BYTES:
                    yield " ".join(line)
                    line, size = [], 0
                line.append(part)
                size += length
        if line:
            yield " ".join(line)


def _parts(word):
    """The word, or where it is too long, as many characters at a time as surely fit."""
    step = _MAX_BYTES // 4  # no character has more bytes
    if len(word) <= step or len(word.encode("utf-8")) <= _MAX_BYTES:
        return [word]
    return [word[i : i + step] for i in range(0, len(word), step)]
