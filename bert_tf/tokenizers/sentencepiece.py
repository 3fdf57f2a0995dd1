"""SentencePiece models in graph ops, each family with the cleaning of its authors."""

import functools
import hashlib
from pathlib import Path

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text
from google.protobuf.message import DecodeError
from tokenizers import decoders

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers.bpe_files import write_config
from bert_tf.tokenizers.cleaning import sentencepiece_characters, white_space
from bert_tf.tokenizers.merging import join_bytes
from bert_tf.tokenizers.normalizer_model import build_normalizer_model
from bert_tf.tokenizers.special_tokens import SpecialToken
from bert_tf.tokenizers.split_tokenizer import SplitTokenizer, row_ids
from bert_tf.tokenizers.unigram_characters import (
    CONVENTIONS,
    blank_characters,
    composed_characters,
    lowercase_characters,
)
from bert_tf.tokenizers.word_starts import sentencepiece_word_starts

SPACE = "\u2581"
# Of one byte, as what it stands for is; SentencePiece's usual normalization drops both.
_DROPPED, _OTHER = "\x01", "\x02"
# FastBertNormalizer drops U+FFFD itself, so that it travels as what Unicode calls a noncharacter.
_UNREADABLE, _STAND_IN = "\ufffd", "\ufdd0"

# What each family's authors set. `cleaned`: white space, quotes and accents are seen to first.
FAMILIES = {
    "albert": {
        "class": "AlbertTokenizer", "cleaned": True, "lowercase": True, "extra_ids": 0, "layout": "bert",
        "roles": {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
        "special": (),
    },
    "xlnet": {
        "class": "XLNetTokenizer", "cleaned": True, "lowercase": False, "extra_ids": 0, "layout": "xlnet",
        "roles": {"pad": "<pad>", "unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"},
        "special": ("<s>", "</s>", "<eod>", "<eop>"),
    },
    "t5": {
        "class": "T5Tokenizer", "cleaned": False, "lowercase": False, "extra_ids": 100, "layout": "t5",
        "roles": {"pad": "<pad>", "unk": "<unk>", "sep": "</s>"}, "special": (),
    },
}  # fmt: skip


class SentencePieceTokenizer(SplitTokenizer):
    """Text to the pieces of a SentencePiece model (unigram or BPE), with the model's own ids.

    Special tokens spelled in the text are one id each; ALBERT's and XLNet's mask token swallows the
    white space before it. What lies between them is, for "albert" and "xlnet", cleaned as by
    their authors (white space made blanks, `` and '' made ", accents dropped, lowercased), and
    given to SentencePiece, whose own normalization is part of the model.

    Bytes that are no UTF-8 act as U+FFFD, as in Python's `decode(errors="replace")`.

    Where two ways to cut a word have the same score ("111" is 11 and 1, or 1 and 11), the operator
    may take another than the `sentencepiece` package from 0.2 on.

    Args:
        model: bytes, the content of a .model or .spm file.
        family: "albert", "xlnet" or "t5": which special tokens, layout and cleaning.
        lowercase: default True for "albert", else False.
        keep_accents: for "albert" and "xlnet".
        split_digit_commas: cut a piece that ends with a digit and a comma before the comma, as
            ALBERT's and XLNet's authors do ("2004," is "2004" and ","); Hugging Face's
            implementations on `tokenizers` do not. Default True for these two families.
        extra_ids: so many sentinels <extra_id_0>, ... follow the pieces, the last first. Default 100
            for "t5", else 0.
        conventions: "authors", whose code this follows; or what a tokenizer.json has, so that ids are
            those of the `tokenizers` package: "words" are cut at any white space; blanks alone part
            them, and white space at the end is "stripped", or is a piece more, the "last_blank".
            There marks are dropped that the authors keep, and white space goes by SentencePiece's
            table.
        special_tokens: further ones to recognise in text, str or `SpecialToken`.

    Raises:
        DataError: no SentencePiece model, or one without a special token of the family.
        ConfigError: an unknown family, or a setting that it does not have.

    Source: google-research/albert tokenization.py; zihangdai/xlnet prepro_utils.py; T5's sentinels
    as in seqio's SentencePieceVocabulary (ids) and Hugging Face's T5Tokenizer (spelling).
    """

    def __init__(
        self,
        model,
        family,
        lowercase=None,
        keep_accents=False,
        split_digit_commas=None,
        extra_ids=None,
        special_tokens=(),
        conventions="authors",
    ):
        if family not in FAMILIES:
            raise ConfigError(f"unknown family '{family}'{nearest(family, FAMILIES)}")
        default = FAMILIES[family]
        self.model, self.family = bytes(model), family
        self.lowercase = default["lowercase"] if lowercase is None else bool(lowercase)
        self.keep_accents = bool(keep_accents)
        if conventions not in CONVENTIONS:
            raise ConfigError(f"unknown conventions '{conventions}'{nearest(conventions, CONVENTIONS)}")
        self.conventions = conventions
        own = default["cleaned"] and conventions == "authors"
        self.split_digit_commas = own if split_digit_commas is None else bool(split_digit_commas)
        self.extra_ids = default["extra_ids"] if extra_ids is None else extra_ids
        if not default["cleaned"] and (self.lowercase or self.keep_accents or self.split_digit_commas):
            raise ConfigError(f"family '{family}' does not clean: no lowercase, keep_accents or split_digit_commas")
        parsed = _parse(self.model)
        if default["cleaned"] and not parsed.normalizer_spec.remove_extra_whitespaces:
            raise ConfigError(f"a model for '{family}' removes extra white space; this one keeps it")
        pieces = [piece.piece for piece in parsed.pieces]
        sentinels = [f"<extra_id_{i}>" for i in reversed(range(self.extra_ids))]
        roles = default["roles"]
        mask = [SpecialToken(roles["mask"], lstrip=True)] if "mask" in roles else []
        further = [t for t in default["special"] if t in pieces]
        super().__init__(
            pieces + sentinels, roles, (*mask, *further, *sentinels, *special_tokens), default["layout"]
        )

        with tf.init_scope():
            charsmap = parsed.normalizer_spec.precompiled_charsmap
            content, table = self.model, b""
            if default["cleaned"] and conventions != "authors" and not self.keep_accents:
                # The model's table is then part of the cleaning, and must not be applied again.
                parsed.normalizer_spec.precompiled_charsmap = b""
                content, table, charsmap = parsed.SerializeToString(), charsmap, b""
            self._pieces = tf_text.SentencepieceTokenizer(content, out_type=tf.int32)
            resources = [self._pieces]
            self._normalizer = None
            if default["cleaned"]:
                self._normalizer = tf_text.FastBertNormalizer(
                    model_buffer=tf.constant(_cleaning_model(self.lowercase, self.keep_accents, conventions, table))
                )
                resources.append(self._normalizer)
            self._prepare_blanks(charsmap)
            self._white_space = tf.constant(sorted(map(ord, white_space())), tf.int32)
            self._is_split = None
            if self.split_digit_commas:
                self._prepare_splits(pieces)
        self._encoder_resources = tuple(resources)
        self._blank_id = self._ids.get(SPACE, self.unk_id)

    def _prepare_blanks(self, charsmap):
        """What SentencePiece does not do of the conventions: replacements in what it is given, a piece more."""
        self._replacements, self._last_blank = [], None
        if self.conventions == "authors":
            return
        blanks, dropped, kept = blank_characters(charsmap)
        if self.conventions == "words":  # of as many bytes, so that places stay
            for length in (1, 2, 3):
                some = "".join(c for c in kept if len(c.encode()) == length)
                self._replacements += [(_one_of(some), " " * length)] * bool(some)
        elif self.conventions == "stripped" and kept:
            self._replacements = [(f"{_one_of(blanks + dropped + kept)}+$", "")]
        elif self.conventions == "last_blank":
            self._last_blank = rf"(?s)\C*{_one_of(blanks)}" + f"{_one_of(dropped)}*" * bool(dropped)

    def _prepare_splits(self, pieces):
        """Tables of the pieces that end with a digit and a comma: their new ids, and each's bytes."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        ids, lengths, sizes = [], [], []
        for i, piece in enumerate(pieces):
            parts = [piece]
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
                parts = processor.encode_as_pieces(piece[:-1].replace(SPACE, ""))
                if piece[0] != SPACE and parts[0][0] == SPACE:
                    parts = parts[1:] if len(parts[0]) == 1 else [parts[0][1:], *parts[1:]]
                parts.append(",")
            new = [i] if parts == [piece] else [processor.piece_to_id(part) for part in parts]
            ids += new
            lengths += [len(part.replace(SPACE, "").encode()) for part in parts]
            sizes.append(len(new))
        sizes += [1] * self.extra_ids
        ids += range(len(pieces), len(pieces) + self.extra_ids)
        lengths += [0] * self.extra_ids
        self._is_split = tf.constant([size > 1 for size in sizes])
        self._split_ids = tf.RaggedTensor.from_row_lengths(np.array(ids, np.int32), np.array(sizes, np.int32))
        self._split_lengths = tf.constant(lengths, tf.int32)

    def _encode(self, text, with_offsets):
        cleaned, origins = text, None
        if self._normalizer:
            cleaned = _replace_quotes(text)
            if with_offsets:
                cleaned, origins = self._normalizer.normalize_with_offsets(cleaned)
            else:
                cleaned = self._normalizer.normalize(cleaned)
        for pattern, result in self._replacements:
            cleaned = tf.strings.regex_replace(cleaned, pattern, result)
        parts = self._encode_cleaned(cleaned, origins, with_offsets)
        if self._last_blank is None:
            return parts
        return self._append_blank(text, tf.strings.regex_full_match(cleaned, self._last_blank), *parts)

    def _append_blank(self, text, where, ids, splits, starts, ends):
        """One more piece, the blank, at the end of the texts `where` there is one."""
        places = tf.boolean_mask(tf.strings.length(text), where)
        rows = tf.RaggedTensor.from_row_lengths(tf.fill(tf.shape(places), self._blank_id), tf.cast(where, tf.int32))

        def append(values, last):
            values = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
            return tf.concat([values, rows.with_values(last)], 1)

        new = append(ids, rows.values)
        if starts is None:
            return new.values, new.row_splits, None, None
        return new.values, new.row_splits, append(starts, places).values, append(ends, places).values

    def _encode_cleaned(self, cleaned, origins, with_offsets):
        if not with_offsets:
            ids = self._pieces.tokenize(cleaned)
            values, splits = ids.values, tf.cast(ids.row_splits, tf.int32)
            if self._is_split is None:
                return values, splits, None, None
            return tf.cond(
                tf.reduce_any(tf.gather(self._is_split, values)),
                lambda: self._split(values, splits)[:2],
                lambda: (values, splits),
            ) + (None, None)
        ids, starts, ends = self._pieces.tokenize_with_offsets(cleaned)
        values, splits = ids.values, tf.cast(ids.row_splits, tf.int32)
        starts, ends = tf.cast(starts.values, tf.int32), tf.cast(ends.values, tf.int32)
        starts = _skip_white_space(cleaned, row_ids(splits), starts, ends, self._white_space)
        if self._is_split is not None:
            values, splits, starts, ends = tf.cond(
                tf.reduce_any(tf.gather(self._is_split, values)),
                lambda: self._split(values, splits, starts, ends),
                lambda: (values, splits, starts, ends),
            )
        if origins is not None:
            # Of the last byte, where its source is: the place after it belongs to what follows.
            base = tf.gather(tf.cast(origins.row_splits, tf.int32), row_ids(splits))
            last = tf.gather(origins.values, base + tf.maximum(ends - 1, starts))
            empty = ends == starts
            starts = tf.cast(tf.gather(origins.values, base + starts), tf.int32)
            ends = tf.where(empty, starts, tf.cast(last, tf.int32) + 1)
        return values, splits, starts, ends

    def _split(self, ids, splits, starts=None, ends=None):
        """Cuts the pieces that end with a digit and a comma."""
        rows = self._split_ids.row_splits
        parts = tf.ragged.range(tf.gather(rows, ids), tf.gather(rows, ids + 1), row_splits_dtype=tf.int32)
        new_splits = tf.gather(parts.row_splits, splits)
        new_ids = tf.gather(self._split_ids.values, parts.values)
        if starts is None:
            return new_ids, new_splits
        old = row_ids(parts.row_splits)
        # Counted from the end, where the comma is.
        length = tf.gather(self._split_lengths, parts.values)
        done = tf.cumsum(length)
        total = tf.gather(tf.concat([[0], done], 0), tf.gather(parts.row_splits, old + 1))
        is_split = tf.gather(self._is_split, tf.gather(ids, old))
        start, end = tf.gather(starts, old), tf.gather(ends, old)
        new_end = tf.where(is_split, tf.maximum(end - (total - done), start), end)
        new_start = tf.where(is_split, tf.maximum(end - (total - done) - length, start), start)
        return new_ids, new_splits, new_start, new_end

    @functools.cached_property
    def is_continuation(self):
        """bool [V]: True for pieces that do not begin with U+2581, the blank."""
        special = set(self.special_tokens)
        return np.array([not t.startswith(SPACE) and t not in special for t in self.vocabulary])

    @functools.cached_property
    def starts_word(self):
        """bool [V]: True for pieces that begin a word for masking; see `sentencepiece_word_starts`."""
        starts = sentencepiece_word_starts(self.vocabulary, SPACE, non_english=self.family == "albert")
        starts[list(self.special_ids)] = True
        return starts

    @property
    def eod_id(self):
        """The id of <eod>, which XLNet reads and predicts at the end of a document; None without one."""
        return self._ids.get("<eod>")

    @property
    def _own_conventions(self):
        return {} if self.conventions == "authors" else {"conventions": self.conventions}

    @property
    def settings(self):
        return {
            "type": "sentencepiece",
            "model": hashlib.sha256(self.model).hexdigest(),
            "family": self.family,
            "lowercase": self.lowercase,
            "keep_accents": self.keep_accents,
            "split_digit_commas": self.split_digit_commas,
            "extra_ids": self.extra_ids,
            "special_tokens": self._special_settings(),
        } | self._own_conventions

    def decode(self, ids, skip_special_tokens=False):
        """The text of ids. What cleaning and normalization changed does not come back."""
        tokens = [
            self.id_to_token(int(i)) for i in ids if not (skip_special_tokens and int(i) in self.special_ids)
        ]
        return decoders.Metaspace(replacement=SPACE).decode(tokens) if tokens else ""

    def save(self, folder):
        """Writes spiece.model and tokenizer_config.json, which Hugging Face reads too.

        Where `conventions` are not "authors", only we know them from these files: Hugging Face converts
        the model anew, as its release does.

        Raises:
            RunDirectoryError: the folder cannot be written.
        """
        with atomic_write(Path(folder) / "spiece.model", "wb") as file:
            file.write(self.model)
        settings = {"tokenizer_class": FAMILIES[self.family]["class"]}
        if self.family == "t5":
            settings["extra_ids"] = self.extra_ids
        else:
            settings |= {
                "do_lower_case": self.lowercase,
                "keep_accents": self.keep_accents,
                "remove_space": True,
                "split_digit_commas": self.split_digit_commas,
            }
        write_config(self, folder, settings | self._own_conventions)


def family_tokens(family, extra_ids=None):
    """The special tokens that a family has by itself, its sentinels among them, as a set."""
    default = FAMILIES[family]
    count = default["extra_ids"] if extra_ids is None else extra_ids
    return {*default["roles"].values(), *default["special"], *(f"<extra_id_{i}>" for i in range(count))}


def pieces_of(model):
    """The pieces of a model, the content of its file, as a set.

    Raises:
        DataError: no SentencePiece model.
    """
    return {piece.piece for piece in _parse(model).pieces}


def family_of(pieces):
    """The family that a model's pieces, a set, look like, or None."""
    for family in ("albert", "xlnet", "t5"):
        if pieces >= set(FAMILIES[family]["roles"].values()):
            return family
    return None


def unigram_model(scores, unknown, control, charsmap):
    """The content of a .model file.

    Args:
        scores: list of (piece, score), by id.
        unknown: int, the id of the unknown piece.
        control: set of pieces that no text is cut into.
        charsmap: bytes, the table of its normalization, b"" for none.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    kinds = proto.SentencePiece
    for number, (piece, score) in enumerate(scores):
        kind = kinds.CONTROL if piece in control else kinds.NORMAL
        if SPACE in piece[1:]:
            kind = kinds.UNUSED  # no word has it
        proto.pieces.add(piece=piece, score=score, type=kinds.UNKNOWN if number == unknown else kind)
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    proto.trainer_spec.unk_id = unknown
    proto.trainer_spec.unk_piece = scores[unknown][0]
    proto.trainer_spec.vocab_size = len(scores)
    proto.normalizer_spec.precompiled_charsmap = charsmap
    return proto.SerializeToString(deterministic=True)


def _parse(model):
    # Here, not above: that of sentencepiece 0.2.3 wants protobuf 7.36, which it does not ask pip for and other
    # packages may hold back. Then only these tokenizers fail.
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise DataError(f"this is no SentencePiece model: {error}") from None
    if not proto.pieces:
        raise DataError("this is no SentencePiece model: it has no pieces")
    return proto


def _one_of(characters):
    """A class of characters as a pattern of RE2."""
    return "[" + "".join(rf"\x{{{ord(c):x}}}" for c in characters) + "]"


def _replace_quotes(text):
    """`` and '' become ", with a character that cleaning drops behind, so that places stay."""

    def replace():
        marked = tf.strings.regex_replace(text, r"\x01", _OTHER)
        marked = tf.strings.regex_replace(marked, _UNREADABLE, _STAND_IN)
        return tf.strings.regex_replace(marked, "``|''", f'"{_DROPPED}')

    present = tf.strings.regex_full_match(text, rf"(?s)\C*(?:``|''|\x01|{_UNREADABLE})\C*")
    return tf.cond(tf.reduce_any(present), replace, lambda: text)


@functools.lru_cache(maxsize=4)
def _cleaning_model(lowercase, keep_accents, conventions, charsmap):
    if conventions == "authors":
        table = sentencepiece_characters(lowercase, keep_accents)
    elif keep_accents:  # accents join what is before them: SentencePiece's table does it
        table = lowercase_characters(lowercase)
    else:
        table = composed_characters(charsmap, lowercase, conventions == "words")
    table = table | {_DROPPED: "", _STAND_IN: table.get(_UNREADABLE, _UNREADABLE)}
    return build_normalizer_model(table, drop_private=False)


def _skip_white_space(text, rows, starts, ends, white_space):
    """The starts, moved past the white space that the pieces begin with; bytes of each text."""
    data = join_bytes(text)

    def decode():
        codes, places = tf.strings.unicode_decode_with_offsets(tf.strings.reduce_join(text), "UTF-8")
        is_space = tf.reduce_any(codes[:, None] == white_space[None, :], axis=1)
        return tf.boolean_mask(tf.cast(places, tf.int32), ~is_space)

    solid = tf.cond(
        tf.reduce_all(data < 128),
        lambda: tf.cast(tf.where((data != 32) & ((data < 9) | (data > 13)))[:, 0], tf.int32),
        decode,
    )
    base = tf.gather(tf.cumsum(tf.strings.length(text), exclusive=True), rows)
    # Behind the last one comes nothing: a piece of white space alone is empty, at its end.
    solid = tf.concat([solid, [tf.size(data)]], 0)
    # A continuation byte is no place of `solid`; pieces begin with whole characters.
    found = tf.gather(solid, tf.searchsorted(solid, base + starts))
    return tf.minimum(found - base, ends)
