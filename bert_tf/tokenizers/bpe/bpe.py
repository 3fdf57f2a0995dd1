"""BPE over characters, each word with a marker at its end: GPT-1's tokenizer, and Sennrich's."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text
from tokenizers import models

from bert_tf.config import nearest
from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief
from bert_tf.tokenizers.bpe.merging import MergingTokenizer
from bert_tf.tokenizers.character_tables import plain_characters, ranges_of, spaced_words, word_characters
from bert_tf.tokenizers.files import converting
from bert_tf.tokenizers.ops.character_map import build_character_map
from bert_tf.tokenizers.ops.splitting import cut_at, split_by_pattern
from bert_tf.tokenizers.ops.strings import join_bytes, row_ids, segment_begins, string_table
from bert_tf.tokenizers.special_tokens import STANDARD_SPECIAL_TOKENS, SpecialToken

GPT1_ROLES = {"pad": "<unk>", "unk": "<unk>"}
CLEANINGS = {"gpt1": spaced_words, "plain": plain_characters, "words": plain_characters}


class BPETokenizer(MergingTokenizer):
    """Text to byte pairs, with the ids of Hugging Face's `tokenizers` and `OpenAIGPTTokenizer`.

    Each word begins as its characters, the last with the marker, and is joined by the merges, the first of the list
    first. A character that is not a token is one unknown token.

    Args:
        vocabulary: list of str.
        merges: list of (left, right), str.
        cleaning: "plain": words are what white space separates; "gpt1": cleaned and lowercased as for an uncased BERT,
            punctuation marks words of their own; "words": words are letters and digits, and what stands between them
            without white space is a word, too, as `Whitespace` of `tokenizers` splits.
        end_of_word: the marker; "" for none (then `decode` cannot know where words end).
        special_tokens: further ones to recognize in text, str or `SpecialToken`.
        role_tokens: dict of "pad", "unk", "cls", "sep", "mask" -> token, the last three optional. Default "[PAD]" and
            so on; GPT-1's files have no more than GPT1_ROLES.
        layout: which special tokens `pack` adds; see `layout.build_layout`.

    Raises:
        DataError: a vocabulary with a duplicate or without a special token, or a merge of or into what is not in it.
        ConfigError: an unknown cleaning, role or layout.

    Example:
        from bert_tf.tokenizers import BPETokenizer, train_bpe

        trained = train_bpe(["low lower lowest"] * 3, 40)
        tokenizer = BPETokenizer(trained.vocabulary, trained.merges[:2])
        [tokenizer.id_to_token(i) for i in tokenizer.encode("lowest")]

    Source: Sennrich, Haddow and Birch 2016, in the form of subword-nmt 0.2 (the marker belongs to the last character
    from the start); openai/finetune-transformer-lm text_utils.py, except for its cleaning, see
    `character_tables.spaced_words`.
    """

    kind = "bpe"
    _convert = converting.bpe
    marks_words = False

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[tuple[str, str]],
        cleaning: str = "plain",
        end_of_word: str = "</w>",
        special_tokens: Sequence[str | SpecialToken] = (),
        role_tokens: Mapping[str, str] | None = None,
        layout: str = "bert",
    ) -> None:
        roles = STANDARD_SPECIAL_TOKENS if role_tokens is None else dict(role_tokens)
        super().__init__(vocabulary, roles, special_tokens, layout)
        if cleaning not in CLEANINGS:
            raise ConfigError(f"unknown cleaning '{cleaning}'{nearest(cleaning, CLEANINGS)}")
        if not is_unicode(end_of_word):
            raise ConfigError(f"end_of_word is {brief(end_of_word)}, which holds half of a surrogate pair")
        self.cleaning, self.end_of_word = cleaning, end_of_word
        self._own_settings = {"cleaning": cleaning, "end_of_word": end_of_word}
        self.before_continuation = " " if end_of_word else ""
        self._encoder = self._make_encoder(merges)
        with tf.init_scope():
            self._normalizer = tf_text.FastBertNormalizer(model_buffer=tf.constant(cleaning_model(cleaning)))
            # Cleaning made all white space U+0020.
            self._split = _split_words if cleaning == "words" else _split_at_white_space
            # What a word can begin as.
            single = {t: i for t, i in self._ids.items() if len(t) == 1 or t[1:] == end_of_word}
            self._characters = string_table(single, self.unk_id)
            lengths = [max(len(t), 1) for t in self.vocabulary]
            # The end of a token is the marker only at the end of a word; within one, it is spelled in the text.
            marks = [
                len(end_of_word) if len(t) > len(end_of_word) and t.endswith(end_of_word) else 0
                for t in self.vocabulary
            ]
            lengths[self.unk_id], marks[self.unk_id] = 1, 0
            self._lengths, self._marks = tf.constant(lengths, tf.int32), tf.constant(marks, tf.int32)  # characters
        finder_tables = self._find_after_cleaning(self._normalizer)
        self._encoder_resources = (self._normalizer, self._characters, *self._encoder.resources, *finder_tables)

    def _whole_words(self):
        """Words that are one token: bytes -> id."""
        suffix = {"end_of_word_suffix": self.end_of_word} if self.end_of_word else {}
        model = models.BPE(self._ids, list(self.merges), **suffix)
        words = {
            token.removesuffix(self.end_of_word): i
            for i, token in enumerate(self.vocabulary)
            if token.endswith(self.end_of_word) and token != self.end_of_word
        }
        return {w.encode(): i for w, i in words.items() if [t.id for t in model.tokenize(w)] == [i]}

    def _symbols(self, words):
        characters = tf.strings.unicode_split(words, "UTF-8")
        begins = segment_begins(tf.cast(characters.row_lengths(), tf.int32))
        ends = tf.concat([begins[1:], [True]], 0)
        values = characters.values
        values = tf.where(ends, tf.strings.join([values, self.end_of_word]), values)
        return self._characters.lookup(values), tf.cumsum(tf.cast(begins, tf.int32)) - 1, begins

    def _encode(self, text, with_offsets):
        return self._encode_after_cleaning(self._normalizer, text, with_offsets, self._encode_cleaned)

    def _encode_cleaned(self, text, with_offsets):
        words, word_starts, word_splits = self._split(text)
        ids, splits = self._encoder.encode(words)
        row_splits = tf.gather(splits, word_splits)
        if not with_offsets:
            return ids, row_splits, None, None
        # Counted in characters of all words, one after the other: an unknown one is one, of whatever bytes.
        words_of_ids = row_ids(splits)
        is_last = tf.concat([words_of_ids[1:] != words_of_ids[:-1], tf.fill([tf.minimum(tf.size(ids), 1)], True)], 0)
        lengths = tf.gather(self._lengths, ids) - tf.where(is_last, tf.gather(self._marks, ids), 0)
        last = tf.cumsum(lengths) - 1
        lead_bytes = tf.cast(tf.where(tf.bitwise.bitwise_and(join_bytes(words), 0xC0) != 0x80)[:, 0], tf.int32)
        before = tf.cumsum(tf.strings.length(words), exclusive=True)  # bytes of the words before
        shift = tf.gather(word_starts - before, words_of_ids)
        starts, ends = tf.gather(lead_bytes, last + 1 - lengths) + shift, tf.gather(lead_bytes, last) + shift + 1
        return ids, row_splits, starts, ends

    def _spell(self, token, first, last):
        # As Hugging Face's BPEDecoder.
        spelled = token.replace(self.end_of_word, "" if last else " ") if self.end_of_word else token
        return spelled.encode("utf-8")


def _split_words(text):
    """(words, starts, splits) of cleaned texts with the cleaning "words"."""
    other_characters = f"[^ {ranges_of(word_characters())}]+"
    starts, ends, splits = split_by_pattern(text, f" |{other_characters}", other_characters)
    return cut_at(text, starts, ends, splits), starts, splits


def _split_at_white_space(text):
    words, starts, _ = tf_text.WhitespaceTokenizer().tokenize_with_offsets(text)
    return words.values, tf.cast(starts.values, tf.int32), tf.cast(words.row_splits, tf.int32)


@functools.lru_cache(maxsize=2)
def cleaning_model(cleaning: str) -> Any:
    """The table of a cleaning, for FastBertNormalizer."""
    return build_character_map(CLEANINGS[cleaning](), drop_private=cleaning == "gpt1")
