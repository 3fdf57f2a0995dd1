"""SentencePiece models in graph ops, each family with the cleaning of its authors."""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers.character_tables import (
    composed_characters,
    lowercase_characters,
    sentencepiece_characters,
    white_space,
)
from bert_tf.tokenizers.files import converting
from bert_tf.tokenizers.files.writing import write_config
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.ops.offsets import clean, cut, source_bytes
from bert_tf.tokenizers.ops.strings import join_bytes, row_ids
from bert_tf.tokenizers.sentencepiece.digit_commas import DigitCommaCutter, is_cut
from bert_tf.tokenizers.sentencepiece.families import FAMILIES, check_family, sentinels
from bert_tf.tokenizers.sentencepiece.model_file import SPACE, byte_pieces, parse_model, with_pieces
from bert_tf.tokenizers.sentencepiece.pre_tokenization import PRE_TOKENIZATIONS, PreTokenization
from bert_tf.tokenizers.sentencepiece.shared_model import SharedSentencepiece
from bert_tf.tokenizers.special_tokens import SpecialToken
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.tokenizers.word_starts import sentencepiece_word_starts
from bert_tf.types import StrPath

# Of one byte, as what they replace; SentencePiece's usual normalization drops both.
_DROPPED, _OTHER = "\x01", "\x02"
# FastBertNormalizer drops U+FFFD itself, so that it travels as what Unicode calls a noncharacter.
_UNREADABLE, _STAND_IN = "\ufffd", "\ufdd0"


class SentencePieceTokenizer(Tokenizer):
    """Text to the pieces of a SentencePiece model (unigram or BPE), with the model's own ids.

    Special tokens spelled in the text are one id each; ALBERT's and XLNet's mask token takes in the white space before
    it. What lies between them is, for "albert" and "xlnet", cleaned as by their authors (white space made spaces, ``
    and '' made ", accents dropped, lowercased), and given to SentencePiece, whose own normalization is part of the
    model. Bytes that are not UTF-8 act as U+FFFD, as in Python's `decode(errors="replace")`.

    Where two ways to cut a word have the same score ("111" is 11 and 1, or 1 and 11), the operator may take another
    than the `sentencepiece` package from 0.2 on.

    Args:
        model: bytes, the content of a .model or .spm file.
        family: "albert", "xlnet" or "t5": which special tokens, layout and cleaning.
        lowercase: default True for "albert", else False.
        keep_accents: for "albert" and "xlnet".
        split_digit_commas: cut a piece that ends with a digit and a comma before the comma ("2004," is "2004" and
            ","), as ALBERT's and XLNet's authors do and Hugging Face does not. Default True for these two families.
        extra_ids: so many sentinels <extra_id_0>, ... follow the pieces, the last first. Default 100 for "t5", else 0.
            0 for mT5, whose model has its 100 sentinels among its 250,100 pieces.
        pre_tokenization: how words are separated: "authors" as in the authors' code; "words", "stripped" or
            "last_blank" as in a tokenizer.json, with the ids of the `tokenizers` package; see pre_tokenization.py. With
            these three, marks are dropped that the authors keep, and the model's own table says what white space is.
        special_tokens: further ones to recognize in text, str or `SpecialToken`.

    Raises:
        DataError: no SentencePiece model, or one without a special token of the family.
        ConfigError: an unknown family, or a setting that it does not have.

    Example:
        from bert_tf.tokenizers import SentencePieceTokenizer, train_unigram

        trained = train_unigram(["low lower lowest, 1 2 3"] * 9, 40, "albert")
        tokenizer = SentencePieceTokenizer(trained.model, "albert", lowercase=False)

    Source: google-research/albert tokenization.py; zihangdai/xlnet prepro_utils.py; T5's sentinels as in seqio's
    SentencePieceVocabulary (ids) and Hugging Face's T5Tokenizer (spelling); mT5's as in mc4.250000.100extra.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        model: bytes,
        family: str,
        lowercase: bool | None = None,
        keep_accents: bool = False,
        split_digit_commas: bool | None = None,
        extra_ids: int | None = None,
        special_tokens: Sequence[str | SpecialToken] = (),
        pre_tokenization: str = "authors",
    ) -> None:
        default = check_family(family)
        self.model, self.family = bytes(model), family
        self.lowercase = default["lowercase"] if lowercase is None else bool(lowercase)
        self.keep_accents = bool(keep_accents)
        if pre_tokenization not in PRE_TOKENIZATIONS:
            raise ConfigError(
                f"unknown pre_tokenization '{pre_tokenization}'{nearest(pre_tokenization, PRE_TOKENIZATIONS)}"
            )
        self.pre_tokenization = pre_tokenization
        as_authors = default["cleaned"] and pre_tokenization == "authors"
        self.split_digit_commas = as_authors if split_digit_commas is None else bool(split_digit_commas)
        self.extra_ids = default["extra_ids"] if extra_ids is None else extra_ids
        if not default["cleaned"] and (self.lowercase or self.keep_accents or self.split_digit_commas):
            raise ConfigError(f"family '{family}' does not clean: no lowercase, keep_accents or split_digit_commas")
        parsed = parse_model(self.model)
        if default["cleaned"] and not parsed.normalizer_spec.remove_extra_whitespaces:
            raise ConfigError(f"a model for '{family}' removes extra white space; this one keeps it")
        pieces = [piece.piece for piece in parsed.pieces]
        extra = sentinels(self.extra_ids)
        roles = default["roles"]
        mask = [SpecialToken(roles["mask"], lstrip=True)] if "mask" in roles else []
        further = [t for t in default["special"] if t in pieces]
        super().__init__(pieces + extra, roles, (*mask, *further, *extra, *special_tokens), default["layout"])

        self.special_ids = tuple(sorted({*self.special_ids, *self.sentinel_ids}))
        self._byte_pieces = byte_pieces(parsed)
        with tf.init_scope():
            charsmap = parsed.normalizer_spec.precompiled_charsmap
            content, table = self.model, b""
            if default["cleaned"] and pre_tokenization != "authors" and not self.keep_accents:
                # The model's table is then part of the cleaning, and must not be applied again.
                parsed.normalizer_spec.precompiled_charsmap = b""
                content, table, charsmap = parsed.SerializeToString(), charsmap, b""
            try:
                self._pieces = SharedSentencepiece(content, out_type=tf.int32)
                self._pieces.tokenize(tf.constant(["a"]))
            except tf.errors.OpError as error:
                raise DataError(f"this SentencePiece model cannot be used: {error.message}") from None
            resources = [self._pieces]
            self._normalizer = None
            if default["cleaned"]:
                self._normalizer = tf_text.FastBertNormalizer(
                    model_buffer=tf.constant(_character_map(self.lowercase, self.keep_accents, pre_tokenization, table))
                )
                resources.append(self._normalizer)
            self._pre_tokenization = PreTokenization(pre_tokenization, charsmap)
            self._white_space = tf.constant(sorted(map(ord, white_space())), tf.int32)
            self._cut_digit_commas = None
            if self.split_digit_commas:
                self._cut_digit_commas = DigitCommaCutter(self.model, pieces, self.extra_ids)
        self._encoder_resources = tuple(resources)

    def grown(self, new: Sequence[str]) -> dict[str, Any]:
        """As of every tokenizer; the sentinels, which come before the new tokens, become pieces, too."""
        model = with_pieces(self.model, [*sentinels(self.extra_ids), *new])
        return {"model": model, "extra_ids": 0}

    def _encode(self, text, with_offsets):
        cleaned, origins = text, None
        if self._normalizer:
            cleaned, origins = clean(self._normalizer, _replace_quotes(text), with_offsets)
        cleaned = self._pre_tokenization.replace(cleaned)
        ids, splits, starts, ends = cut(self._pieces, cleaned, with_offsets)
        if with_offsets:
            starts = _skip_white_space(cleaned, row_ids(splits), starts, ends, self._white_space)
        if self._cut_digit_commas is not None:
            ids, splits, starts, ends = self._cut_digit_commas(ids, splits, starts, ends)
        if origins is not None:
            starts, ends = source_bytes(origins, row_ids(splits), starts, ends)
        space_id = self._ids.get(SPACE, self.unk_id)
        return self._pre_tokenization.append_last_space(text, cleaned, space_id, ids, splits, starts, ends)

    def _continues(self, token):
        return not token.startswith(SPACE)

    @functools.cached_property
    def starts_word(self) -> np.ndarray | None:
        """bool [V]: True for pieces that begin a word for masking; see `sentencepiece_word_starts`."""
        starts = sentencepiece_word_starts(self.vocabulary, SPACE, non_english=self.family == "albert")
        starts[list(self.special_ids)] = True
        return starts

    @property
    def sentinel_ids(self) -> Sequence[int]:
        """As of every tokenizer. mT5's model has its 100 as pieces with a space before them, "▁<extra_id_0>"."""
        return super().sentinel_ids or self._numbered_ids(SPACE + "<extra_id_{}>")

    @property
    def eod_id(self) -> int | None:
        """The id of <eod>, which XLNet reads and predicts at the end of a document; None without one."""
        return self._ids.get("<eod>")

    @property
    def lost_in_tokenizer_json(self) -> str | None:
        """str or None, as of every tokenizer: pieces that `split_digit_commas` cuts."""
        cut = [piece for piece in self.vocabulary if is_cut(piece)] if self.split_digit_commas else []
        return (
            f"{len(cut):,} of its pieces, such as '{cut[0]}', are cut before the comma here, as the authors do, and stay "
            "whole in transformers: ids of numbers before commas differ"
        ) if cut else None  # fmt: skip

    @property
    def _own_pre_tokenization(self):
        # The key that stored tokenizers have; left out where it says nothing, as they leave it out.
        return {} if self.pre_tokenization == "authors" else {"conventions": self.pre_tokenization}

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "model": hashlib.sha256(self.model).hexdigest(),
            "family": self.family,
            "lowercase": self.lowercase,
            "keep_accents": self.keep_accents,
            "split_digit_commas": self.split_digit_commas,
            "extra_ids": self.extra_ids,
            "special_tokens": self._special_settings(),
        } | self._own_pre_tokenization

    def _spell(self, token, first, last):
        # As Hugging Face's Metaspace; bytes as SentencePiece spells characters that are not pieces ("<0xE2>").
        if token in self._byte_pieces:
            return self._byte_pieces[token]
        return token.replace(SPACE, "" if first else " ").encode("utf-8")

    def save(self, folder: StrPath) -> None:
        """Writes tokenizer.json, which Hugging Face's classes run, spiece.model and tokenizer_config.json;
        RunDirectoryError if it cannot.

        A model that is not a unigram model has no tokenizer.json. See also `lost_in_tokenizer_json`.
        """
        with atomic_write(Path(folder) / "spiece.model", "wb") as file:
            file.write(self.model)
        if self.family == "t5":
            settings = {"extra_ids": self.extra_ids}
        else:
            settings = {
                "do_lower_case": self.lowercase,
                "keep_accents": self.keep_accents,
                "remove_space": True,
                "split_digit_commas": self.split_digit_commas,
            }
        settings |= {"tokenizer_class": FAMILIES[self.family]["class"], "family": self.family}
        settings |= self._own_pre_tokenization
        write_config(self, folder, settings, converting.unigram(self))


def _replace_quotes(text):
    """`` and '' become " and a character that cleaning drops, so that offsets stay."""

    def replace():
        marked = tf.strings.regex_replace(text, r"\x01", _OTHER)
        marked = tf.strings.regex_replace(marked, _UNREADABLE, _STAND_IN)
        return tf.strings.regex_replace(marked, "``|''", f'"{_DROPPED}')

    present = tf.strings.regex_full_match(text, rf"(?s)\C*(?:``|''|\x01|{_UNREADABLE})\C*")
    return tf.cond(tf.reduce_any(present), replace, lambda: text)


@functools.lru_cache(maxsize=4)
def _character_map(lowercase, keep_accents, pre_tokenization, charsmap):
    if pre_tokenization == "authors":
        table = sentencepiece_characters(lowercase, keep_accents)
    elif keep_accents:  # accents join what is before them: SentencePiece's table does it
        table = lowercase_characters(lowercase)
    else:
        table = composed_characters(charsmap, lowercase, pre_tokenization == "words")
    table = table | {_DROPPED: "", _STAND_IN: table.get(_UNREADABLE, _UNREADABLE)}
    return build_character_map(table, drop_private=False)


def _skip_white_space(text, rows, starts, ends, white_space):
    """The starts, moved past the white space that the pieces begin with; bytes of each text."""
    data = join_bytes(text)

    def decode():
        codes, offsets = tf.strings.unicode_decode_with_offsets(tf.strings.reduce_join(text), "UTF-8")
        is_space = tf.reduce_any(codes[:, None] == white_space[None, :], axis=1)
        return tf.boolean_mask(tf.cast(offsets, tf.int32), ~is_space)

    solid = tf.cond(
        tf.reduce_all(data < 128),
        lambda: tf.cast(tf.where((data != 32) & ((data < 9) | (data > 13)))[:, 0], tf.int32),
        decode,
    )
    base = tf.gather(tf.cumsum(tf.strings.length(text), exclusive=True), rows)
    # Nothing follows the last one: a piece of white space alone is empty, at its end.
    solid = tf.concat([solid, [tf.size(data)]], 0)
    # A continuation byte is not in `solid`; pieces begin with whole characters.
    first_solid = tf.gather(solid, tf.searchsorted(solid, base + starts))
    return tf.minimum(first_solid - base, ends)
