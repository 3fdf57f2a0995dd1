"""What every tokenizer is, however it cuts words: a vocabulary, special tokens, tables of both."""

import functools
import hashlib
import json
import re

import numpy as np
import tensorflow as tf

from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.layout import build_layout
from bert_tf.tokenizers.pack import pack

SPECIAL_ROLES = ("pad", "unk", "cls", "sep", "mask")
STANDARD_SPECIAL_TOKENS = {role: f"[{role.upper()}]" for role in SPECIAL_ROLES}
_UNUSED = re.compile(r"\[unused\d+\]|madeupword\d+")  # BERT's and RoBERTa's fillers


class Tokenizer:
    """The part that does not depend on the algorithm. Subclasses cut the text.

    A subclass provides `tokenize(text)`, `tokenize_with_offsets(text)`, `decode(ids)`,
    `save(folder)`, `is_continuation`, `resources`, and the property `settings`: a dict that JSON can
    hold, of everything beside the vocabulary that changes ids.

    Args:
        vocabulary: list of str; the position is the id.
        role_tokens: dict of role ("pad", "unk", "cls", "sep", "mask") -> token; "pad" and "unk"
            are always there.
        special_tokens: further tokens that are one id wherever a text spells them.
        layout: name of the frame that `pack` puts around texts; see `layout.build_layout`.

    Attributes:
        special_tokens: tuple of str, those of roles and further ones.
        special_ids: tuple of int, the ids of those that stand for no text, which are masked on request
            only and never drawn; see `SpecialToken.special`.
        pad_id, unk_id, cls_id, sep_id, mask_id: int; None for a role without a token.
        eod_id: int, the id of XLNet's end of a document, or None.
        layout: the `Layout` with this tokenizer's ids.
        marks_words: whether a token shows that it begins a word, so that `is_continuation` and
            `starts_word` tell words apart. False for BPE with an end-of-word marker, whose
            `is_continuation` is all False.
        splits_punctuation: whether each punctuation mark is a token that continues none.

    Raises:
        DataError: a special token is missing from the vocabulary, or a token is there twice.
        ConfigError: an unknown role or layout, or a layout that needs a role which has no token.
    """

    marks_words = True
    splits_punctuation = False
    eod_id = None

    def __init__(self, vocabulary, role_tokens, special_tokens=(), layout="bert"):
        self.vocabulary = list(vocabulary)
        self._ids = {}
        for i, token in enumerate(self.vocabulary):
            if not isinstance(token, str) or not token:
                raise DataError(f"id {i} of the vocabulary is {brief(token)}; every token is a non-empty string")
            if not is_unicode(token):
                raise DataError(f"id {i} of the vocabulary, {token!r}, holds half of a surrogate pair")
            if self._ids.setdefault(token, i) != i:
                raise DataError(
                    f"the vocabulary holds '{token}' twice, as ids {self._ids[token]} and {i}; remove one"
                )
        self.role_tokens = {role: role_tokens[role] for role in SPECIAL_ROLES if role in role_tokens}
        for role in (*role_tokens, "pad", "unk"):
            if role not in self.role_tokens:
                message = "is missing" if role in SPECIAL_ROLES else f"is unknown; known: {', '.join(SPECIAL_ROLES)}"
                raise ConfigError(f"the special token role '{role}' {message}")
        self.special_tokens = tuple(dict.fromkeys((*self.role_tokens.values(), *special_tokens)))
        for token in self.special_tokens:
            if token not in self._ids:
                raise DataError(
                    f"the vocabulary lacks the special token '{token}'; add it as a line of its own"
                )
        for role in SPECIAL_ROLES:
            setattr(self, f"{role}_id", self._ids.get(self.role_tokens.get(role)))
        self.special_ids = tuple(sorted(self._ids[t] for t in self.special_tokens))
        self.layout_name = layout
        self.layout = build_layout(layout, self.cls_id, self.sep_id)

    @property
    def vocabulary_size(self):
        return len(self.vocabulary)

    @property
    def special_tokens_per_sequence(self):
        """How many special tokens `pack` puts around a single text."""
        return self.layout.special_tokens_per_sequence

    @property
    def special_tokens_per_pair(self):
        """How many special tokens `pack` puts around two texts."""
        return self.layout.special_tokens_per_pair

    def id_to_token(self, token_id):
        """The token of an id; IndexError where there is none."""
        if not 0 <= token_id < len(self.vocabulary):
            raise IndexError(f"id {token_id} is outside the vocabulary of {len(self.vocabulary)}")
        return self.vocabulary[token_id]

    def token_to_id(self, token):
        """The id of a token, spelled as in the vocabulary; `unk_id` where it is not one."""
        return self._ids.get(token, self.unk_id)

    @property
    def starts_word(self):
        """bool [V]: which tokens begin a word for masking; special tokens count as beginning one.

        Here what is no continuation. SentencePiece and byte-level BPE have rules of their own; WordPiece
        keeps to "##", since text is cut into words before (Chinese into characters).
        """
        return ~np.asarray(self.is_continuation)

    @functools.cached_property
    def random_ids(self):
        """int32: the ids that a random replacement may draw: no special and no unused token."""
        return np.array(
            [
                i
                for i, token in enumerate(self.vocabulary)
                if i not in self.special_ids and not _UNUSED.fullmatch(token)
            ],
            np.int32,
        )

    @functools.cached_property
    def fingerprint(self):
        """SHA-256 in hex of everything that decides which ids a text becomes."""
        content = json.dumps([self.vocabulary, self.settings], sort_keys=True)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()

    def encode(self, text):
        """The ids of one Python string, without [CLS] and [SEP]."""
        # A lone surrogate is no UTF-8: it becomes what other invalid bytes become.
        return self.tokenize(tf.constant([text.encode("utf-8", "surrogatepass")])).values.numpy().tolist()

    def pack(self, first, second=None, sequence_length=128, dynamic=False):
        """The texts framed as `layout` says, in rows of `sequence_length`; see `pack.pack`."""
        return pack(
            first,
            second,
            layout=self.layout,
            pad_id=self.pad_id,
            sequence_length=sequence_length,
            dynamic=dynamic,
        )


def check_roles(role_tokens):
    """`role_tokens` over the standard ones.

    Raises:
        ConfigError: a role that does not exist.
    """
    for role in role_tokens:
        if role not in SPECIAL_ROLES:
            raise ConfigError(f"unknown special token role '{role}'; known: {', '.join(SPECIAL_ROLES)}")
    return STANDARD_SPECIAL_TOKENS | dict(role_tokens)


def as_vector(text):
    """`text` as tf.string [N], and whether it was a scalar.

    Raises:
        ValueError: another type or rank.
    """
    text = tf.convert_to_tensor(text)
    if text.dtype != tf.string or text.shape.rank not in (0, 1):
        raise ValueError(f"text must be a string or a vector of strings, got {text.dtype} {text.shape}")
    return (tf.reshape(text, [1]), True) if text.shape.rank == 0 else (text, False)
