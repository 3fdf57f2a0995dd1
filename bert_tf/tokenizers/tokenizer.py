"""What every tokenizer does, however it encodes words: special tokens, offsets, tables of the vocabulary."""

import dataclasses
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.layout import START_TOKEN, build_layout
from bert_tf.tokenizers.ops.detokenization import join_spellings, spelling_tables
from bert_tf.tokenizers.ops.lazy_graph import LazyGraph
from bert_tf.tokenizers.ops.model_rows import pack
from bert_tf.tokenizers.ops.normalization import before_normalization, check_normalization, normalize
from bert_tf.tokenizers.ops.offsets import clean, source_bytes, to_characters
from bert_tf.tokenizers.ops.special_token_finder import Chunks, SpecialTokenFinder, insert_special, whole_texts
from bert_tf.tokenizers.ops.strings import row_ids, valid_utf8
from bert_tf.tokenizers.special_tokens import SPECIAL_ROLES, SpecialToken, as_special_token
from bert_tf.types import StrPath, Tensor

_TEXTS = tf.TensorSpec([None], tf.string, name="text")
_UNUSED = re.compile(r"\[unused\d+\]|madeupword\d+")  # BERT's and RoBERTa's fillers


class Tokenizer:
    """Text to token ids and back: the part that is the same for every kind of tokenizer.

    `tokenize` cuts the texts at special tokens, normalizes the rest if asked for, has the subclass encode it, and puts
    the ids together. Offsets, which subclasses give in bytes, become characters of the text as it was given.

    A subclass provides
        `kind`: str, the name of its `TokenizerKind`;
        `_encode(text, with_offsets)`: from tf.string [M] to (ids int32 [T], splits int32 [M + 1],
            starts, ends int32 [T]); the last two are bytes of each text, or None without offsets;
        `_encoder_resources`: the trackables that `_encode` uses;
        `_spell(token, first, last)`: the bytes of a token in a text of which it is the first or the last, or neither;
        `save(folder)`;
        `_continues(token)`: whether a token of text continues the word before it, where tokens show it;
        `settings`: a dict that JSON can hold, of everything beside the vocabulary that changes ids.

    Args:
        vocabulary: list of str; the position is the id.
        role_tokens: dict of role ("pad", "unk", "cls", "sep", "mask") -> token; "pad" and "unk" are required.
        special_tokens: further tokens that are one id wherever a text spells them, each a str or a `SpecialToken`.
            A `SpecialToken` for the token of a role sets its details.
        layout: which special tokens `pack` puts around texts; see `layout.build_layout`.
        normalization: None, or "NFC": decomposed text is composed first.

    Attributes:
        special_tokens: tuple of str, those of roles and further ones.
        special_token_details: the same as a tuple of `SpecialToken`.
        special_ids: tuple of int, the ids of those that stand for no text, which are masked on request only and never
            drawn; see `SpecialToken.special`.
        pad_id, unk_id, cls_id, sep_id, mask_id: int; None for a role without a token.
        eod_id: int, the id of XLNet's end of a document, or None.
        layout: the `Layout` with this tokenizer's ids.
        marks_words: whether a token shows that it begins a word. False for BPE with an end-of-word marker, whose
            `is_continuation` is all False.
        splits_punctuation: whether each punctuation mark is a token that continues none.
        token_shape: tuple, the shape of one token's ids: () for a number, (50,) for the characters of a word.
        finds_special_tokens: whether a text that spells a special token has its id.
        between_sentences: str, what a sentence needs in front of it where another is before it.
        before_continuation: str, what `decode` puts in front of a text that continues another, where no token shows it.
        lost_in_tokenizer_json: str, in which case the tokenizer.json of `save` gives other ids than this object; or None.
        drops_invalid_bytes: whether `_encode` itself leaves out bytes that are not UTF-8; to look for them first takes
            a tenth of WordPiece's time.
        decoding_errors: what bytes that are not UTF-8 become in `decode`: "replace" (U+FFFD) or "ignore" (nothing).

    Raises:
        DataError: a special token is missing from the vocabulary, or a token stands twice.
        ConfigError: an unknown role, layout or normalization, or a layout that needs a role without a token.

    Example:
        from bert_tf.tokenizers import train_wordpiece

        tokenizer = train_wordpiece(["the law of the people"], 40, min_frequency=1)
        ids, starts, ends = tokenizer.tokenize_with_offsets(["The law"])
        batch = tokenizer.pack(ids, sequence_length=16)
    """

    marks_words = True
    splits_punctuation = False
    drops_invalid_bytes = False
    decoding_errors = "replace"
    between_sentences = ""
    before_continuation = ""
    if TYPE_CHECKING:  # a subclass sets them as attributes, or defines them as properties

        @property
        def settings(self) -> dict[str, Any]: ...
        @property
        def eod_id(self) -> int | None: ...
        @property
        def lost_in_tokenizer_json(self) -> str | None: ...
        def save(self, folder: StrPath) -> None: ...
    else:
        eod_id = lost_in_tokenizer_json = None
    kind: str
    pad_id: int
    unk_id: int
    cls_id: int | None
    sep_id: int | None
    mask_id: int | None
    _encode: Callable[..., Any]
    _spell: Callable[..., Any]
    _encoder_resources: tuple[Any, ...]
    token_shape: tuple[int, ...] = ()
    finds_special_tokens = True

    def __init__(
        self,
        vocabulary: Sequence[str],
        role_tokens: Mapping[str, str],
        special_tokens: Sequence[str | SpecialToken] = (),
        layout: str = "bert",
        normalization: str | None = None,
    ) -> None:
        self.vocabulary = list(vocabulary)
        self._ids = _ids_of_tokens(self.vocabulary)
        for role in (*role_tokens, "pad", "unk"):
            if role not in SPECIAL_ROLES:
                raise ConfigError(f"the special token role '{role}' is unknown; known: {', '.join(SPECIAL_ROLES)}")
            if role not in role_tokens:
                raise ConfigError(f"the special token role '{role}' is missing; every tokenizer has a token for it")
        self.role_tokens = {role: role_tokens[role] for role in SPECIAL_ROLES if role in role_tokens}

        details = {token: as_special_token(token) for token in self.role_tokens.values()}
        details |= {as_special_token(token).content: as_special_token(token) for token in special_tokens}
        for token in self.role_tokens.values():
            details[token] = dataclasses.replace(details[token], special=True)
        for token in details:
            if token not in self._ids:
                raise DataError(f"the vocabulary lacks the special token '{token}'; add it as a line of its own")
        self.special_tokens = tuple(details)
        self.special_token_details = tuple(details.values())
        self.special_ids = tuple(sorted(self._ids[t.content] for t in self.special_token_details if t.special))
        for role in SPECIAL_ROLES:
            setattr(self, f"{role}_id", self._ids.get(self.role_tokens.get(role)))
        self.layout_name = layout
        self.layout = build_layout(layout, self.cls_id, self.sep_id, self._ids.get(START_TOKEN))
        self.normalization = check_normalization(normalization)
        self._finders: list[SpecialTokenFinder | None] = []  # of special tokens: before normalization, and after it
        for normalized in (False, True):
            tokens = {t: self._ids[t.content] for t in self.special_token_details if t.normalized == normalized}
            self._finders.append(SpecialTokenFinder(tokens) if tokens else None)
        # Of tokens that are looked for in the text as a kind has cleaned it.
        self._cleaned_finder: SpecialTokenFinder | None = None

    def _find_after_cleaning(self, normalizer):
        """Looks for tokens with `normalized` in text that a `FastBertNormalizer` has cleaned, for a kind that calls
        `_encode_after_cleaning`. Returns the trackables that a finder needs, a tuple.
        """
        tokens = [token for token in self.special_token_details if token.normalized]
        self._finders[1] = None
        if not tokens:
            return ()
        with tf.init_scope():
            contents = normalizer.normalize(tf.constant([t.content for t in tokens])).numpy()
        cleaned: dict[SpecialToken, int] = {}
        for token, content in zip(tokens, (content.decode("utf-8") for content in contents)):
            if content and content not in [other.content for other in cleaned]:
                cleaned[dataclasses.replace(token, content=content)] = self._ids[token.content]
        self._cleaned_finder = SpecialTokenFinder(cleaned) if cleaned else None
        return (self._cleaned_finder.table,) if self._cleaned_finder else ()

    def _encode_after_cleaning(self, normalizer, text, with_offsets, encode):
        """What `encode` gives for the cleaned texts, cut at the tokens that are in them; with the offsets of the texts."""
        cleaned, origins = clean(normalizer, text, with_offsets)
        if self._cleaned_finder is None:
            ids, splits, starts, ends = encode(cleaned, with_offsets)
        else:
            chunks = self._cut(whole_texts(cleaned), self._cleaned_finder)
            ids, splits, starts, ends = _moved(encode(chunks.text, with_offsets), chunks.begins)
            ids, splits, starts, ends = insert_special(chunks, ids, splits, starts, ends)
            splits = tf.gather(splits, chunks.splits)
        if with_offsets:
            starts, ends = source_bytes(origins, row_ids(splits), starts, ends)
        return ids, splits, starts, ends

    @property
    def vocabulary_size(self) -> int:
        return len(self.vocabulary)

    @property
    def unknown_token(self) -> Any:
        """The ids of the unknown token: of `token_shape`."""
        return self.unk_id

    def id_to_token(self, token_id: int) -> str:
        """The token of an id; IndexError where there is no such id."""
        if not 0 <= token_id < len(self.vocabulary):
            raise IndexError(f"id {token_id} is outside the vocabulary of {len(self.vocabulary)}")
        return self.vocabulary[token_id]

    def readable(self, token_id: int) -> str:
        """The token of an id, as it is printed for people: byte-level BPE spells bytes, this the characters of them."""
        return self.id_to_token(token_id)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, spelled as in the vocabulary; `unk_id` where it is not one."""
        return self._ids.get(token, self.unk_id)

    def _continues(self, token):
        return False

    @functools.cached_property
    def is_continuation(self) -> np.ndarray:
        """bool [V]: which tokens continue a word; special tokens do not."""
        special = set(self.special_tokens)
        return np.array([token not in special and self._continues(token) for token in self.vocabulary])

    @property
    def starts_word(self) -> np.ndarray | None:
        """bool [V]: which tokens begin a word for masking, special tokens among them: here all but continuations."""
        return ~self.is_continuation

    @functools.cached_property
    def random_ids(self) -> np.ndarray:
        """int32: the ids that a random replacement may draw: no special and no unused token."""
        special = set(self.special_ids)
        drawable = [i for i, t in enumerate(self.vocabulary) if i not in special and not _UNUSED.fullmatch(t)]
        return np.array(drawable, np.int32)

    @property
    def sentinel_ids(self) -> Sequence[int]:
        """list of int, the ids of T5's sentinels <extra_id_0>, <extra_id_1>, ... as far as the vocabulary has them."""
        return self._numbered_ids("<extra_id_{}>")

    def _numbered_ids(self, spelling):
        names = map(spelling.format, itertools.count())
        return [self._ids[name] for name in itertools.takewhile(self._ids.__contains__, names)]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 in hex of everything that decides which ids a text becomes."""
        content = json.dumps([self.vocabulary, self.settings], sort_keys=True)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()

    @property
    def resources(self) -> Any:
        """Trackables that an export must hold."""
        return (*(finder.table for finder in self._finders if finder), *self._encoder_resources)

    def _special_settings(self):
        # For `settings`. Without `special`, which decides no ids.
        return sorted([t.content, t.lstrip, t.rstrip, t.normalized] for t in self.special_token_details)

    def add_tokens(self, tokens: Iterable[str | SpecialToken], special: bool = False) -> "Tokenizer":
        """Another tokenizer, with these tokens at the end of its vocabulary; see `added_tokens.add_tokens`."""
        from bert_tf.tokenizers.added_tokens import add_tokens

        return add_tokens(self, tokens, special)

    def as_word(self, token: str) -> str | None:
        """A word that is to be added, as the vocabulary spells it; None where tokens are looked for in the text."""
        return None

    def grown(self, new: Sequence[str]) -> dict[str, Any]:
        """The arguments of its class that say the vocabulary, with `new` at its end."""
        return {"vocabulary": [*self.vocabulary, *new]}

    def encode(self, text: str) -> list[int]:
        """The ids of one Python string, without the special tokens that `pack` puts around a text."""
        # A lone surrogate is not UTF-8: it becomes what other invalid bytes become.
        return self.tokenize(tf.constant([text.encode("utf-8", "surrogatepass")])).values.numpy().tolist()

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False, continues: bool = False) -> str:
        """Readable text of ids. What cleaning and normalization changed does not come back.

        Args:
            ids: sequence of int.
            skip_special_tokens: leave out `special_ids`.
            continues: whether the text continues another, whose last word is whole: then it begins with the space
                between the two, if there is one.
        """
        hidden = self.special_ids if skip_special_tokens else ()
        tokens = [self.id_to_token(int(i)) for i in ids if int(i) not in hidden]
        last = len(tokens) - 1
        spelled = b"".join(self._spell(token, i == 0 and not continues, i == last) for i, token in enumerate(tokens))
        before = self.before_continuation if continues and tokens else ""
        return before + spelled.decode("utf-8", self.decoding_errors)

    def growing_text(self, continues: bool = False) -> Callable[[int], str]:
        """A function that takes the ids of a text one by one and returns `decode` of all up to it, each in constant time.

        Args:
            continues: of `decode`.

        Example:
            add = tokenizer.growing_text()
            add(tokenizer.encode("film")[0])  # 'film'
        """
        before = (self.before_continuation if continues else "").encode()
        spelled: list[bytes] = []

        def add(token_id: int) -> str:
            token, first = self.id_to_token(token_id), not spelled and not continues
            text = b"".join((before, *spelled, self._spell(token, first, True)))
            spelled[:] = [b"".join((*spelled, self._spell(token, first, False)))]
            return text.decode("utf-8", self.decoding_errors)

        return add

    def detokenize(
        self,
        ids: Tensor,
        padding_mask: Tensor | None = None,
        skip_special_tokens: bool = False,
        continues: bool = False,
    ) -> Tensor:
        """What `decode` gives for each row, in graph operations that a SavedModel can hold.

        Args:
            ids: tf.RaggedTensor int32 [N, None]; or a tensor int32 [N, S] with a padding mask.
            padding_mask: bool [N, S], True at the tokens that the text is made of.
            skip_special_tokens, continues: of `decode`, for all rows.

        Returns:
            tf.string [N], UTF-8.

        Raises:
            tf.errors.InvalidArgumentError: when run: an id outside the vocabulary.
        """
        if padding_mask is not None:
            ids = tf.ragged.boolean_mask(tf.cast(ids, tf.int32), padding_mask)
        if skip_special_tokens:
            hidden = np.isin(np.arange(self.vocabulary_size), self.special_ids)
            ids = tf.ragged.boolean_mask(ids, ids.with_values(~tf.gather(tf.constant(hidden), ids.values)))
        return self._texts_of(ids.values, tf.cast(ids.row_splits, tf.int64), tf.constant(continues))

    def pack(
        self, first: Tensor, second: Tensor | None = None, sequence_length: int = 128, dynamic: bool = False
    ) -> dict[str, Tensor]:
        """The texts with the special tokens of `layout`, in rows of `sequence_length`; see `model_rows.pack`."""
        settings: dict[str, Any] = {"layout": self.layout, "pad_id": self.pad_id, "sequence_length": sequence_length}
        return pack(first, second, **settings, dynamic=dynamic)

    def tokenize(self, text: Tensor) -> Tensor:
        """Ids, without the special tokens that `pack` puts around a text.

        Args:
            text: tf.string [N], UTF-8; or one scalar string.

        Returns:
            tf.RaggedTensor int32 [N, None]; for a scalar a tensor int32 [None].

        Raises:
            ValueError: another rank.
        """
        text, scalar = _as_vector(text)
        ids, splits = self._ids_of(text)
        return ids if scalar else _ragged(ids, splits, text)

    def tokenize_with_offsets(self, text: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, and the offsets of each token in the text.

        Offsets count characters (Unicode code points) of the text as given: a token is `text[start:end]` in Python.
        White space that a token begins or ends with is left out; tokens that are parts of one character all have
        its offsets.

        Args:
            text: as for `tokenize`.

        Returns:
            (ids, starts, ends): three tf.RaggedTensor int32 [N, None]; for a scalar three tensors int32 [None].
        """
        text, scalar = _as_vector(text)
        ids, splits, starts, ends = self._offsets_of(text)
        results = (ids, starts, ends)
        return results if scalar else tuple(_ragged(values, splits, text) for values in results)

    @functools.cached_property
    def _ids_of(self):
        return LazyGraph(self._run_ids, _TEXTS)

    @functools.cached_property
    def _offsets_of(self):
        return LazyGraph(lambda text: self._run(valid_utf8(text), True), _TEXTS)

    @functools.cached_property
    def _texts_of(self):
        spellings = spelling_tables(self.vocabulary, self._spell)
        settings = {"before": self.before_continuation, "errors": self.decoding_errors}
        signature = [
            tf.TensorSpec([None], tf.int32, name="ids"),
            tf.TensorSpec([None], tf.int64, name="splits"),
            tf.TensorSpec([], tf.bool, name="continues"),
        ]
        return LazyGraph(lambda *tensors: join_spellings(*tensors, *spellings, **settings), *signature)

    def _run_ids(self, text):
        """(ids [T], splits [N + 1])."""
        if not self.drops_invalid_bytes:
            text = valid_utf8(text)
        return self._run(text, False)[:2]

    def _run(self, text, with_offsets):
        """(ids [T], splits [N + 1], starts, ends [T] or None), characters of each text."""
        outer = self._cut(whole_texts(text), self._finders[0])
        inner, changed = self._normalize(outer)
        inner = self._cut(inner, self._finders[1])
        ids, splits, starts, ends = _moved(self._encode(inner.text, with_offsets), inner.begins)
        ids, splits, starts, ends = tf.cond(
            tf.reduce_any(inner.special >= 0),
            lambda: insert_special(inner, ids, splits, starts, ends),
            lambda: (ids, splits, starts, ends),
        )
        splits = tf.gather(splits, inner.splits)  # tokens of each outer chunk
        if with_offsets and changed is not None:
            starts, ends = tf.cond(
                changed,
                lambda: self._before_normalization(outer, splits, row_ids(splits), starts, ends),
                lambda: (starts, ends),
            )
        ids, splits, starts, ends = _moved((ids, splits, starts, ends), outer.begins)
        splits = tf.gather(splits, outer.splits)
        if with_offsets:
            starts, ends = to_characters(text, row_ids(splits), starts, ends)
        return ids, splits, starts, ends

    @staticmethod
    def _cut(chunks, finder):
        if finder is None:
            return chunks
        return tf.cond(finder.has_tokens(chunks.text), lambda: finder.split(chunks), lambda: chunks)

    def _normalize(self, chunks):
        """Chunks whose offsets are counted from the begin of each given one; and whether any changed."""
        text, changed = chunks.text, None
        if self.normalization:
            text = normalize(text, self.normalization)
            changed = tf.reduce_any(text != chunks.text)
        count = tf.size(text)
        length = tf.where(chunks.special < 0, tf.strings.length(text), chunks.ends - chunks.begins)
        return Chunks(text, chunks.special, tf.range(count + 1), tf.zeros([count], tf.int32), length), changed

    def _before_normalization(self, chunks, splits, chunk, starts, ends):
        """Bytes of the normalized chunks -> bytes of the chunks."""
        is_text = tf.gather(chunks.special, chunk) < 0
        # What is computed for special tokens is not used: 0 is a valid offset of any text.
        start, end = before_normalization(
            chunks.text, self.normalization, splits, chunk, tf.where(is_text, starts, 0), tf.where(is_text, ends, 0)
        )
        return tf.where(is_text, start, starts), tf.where(is_text, end, ends)


def _moved(tokens, begins):
    """(ids, splits, starts, ends) of chunks with offsets that count from where the texts begin: the chunks at `begins`."""
    ids, splits, starts, ends = tokens
    if starts is None:
        return ids, splits, None, None
    begin = tf.gather(begins, row_ids(splits))
    return ids, splits, starts + begin, ends + begin


def _ids_of_tokens(vocabulary):
    """dict of token -> id."""
    ids: dict[str, int] = {}
    for i, token in enumerate(vocabulary):
        if not isinstance(token, str) or not token:
            raise DataError(f"id {i} of the vocabulary is {brief(token)}; every token is a non-empty string")
        if not is_unicode(token):
            raise DataError(f"id {i} of the vocabulary, {token!r}, holds half of a surrogate pair")
        if ids.setdefault(token, i) != i:
            raise DataError(f"the vocabulary holds '{token}' twice, as ids {ids[token]} and {i}; remove one")
    return ids


def _as_vector(text):
    """`text` as tf.string [N], and whether it was a scalar."""
    text = tf.convert_to_tensor(text)
    if text.dtype != tf.string or text.shape.rank not in (0, 1):
        raise ValueError(f"text must be a string or a vector of strings, got {text.dtype} {text.shape}")
    return (tf.reshape(text, [1]), True) if text.shape.rank == 0 else (text, False)


def _ragged(values, splits, text):
    rows = text.shape[0]
    splits = tf.ensure_shape(splits, [None if rows is None else rows + 1])
    return tf.RaggedTensor.from_row_splits(values, tf.cast(splits, tf.int64), validate=False)
