"""The contract of a tokenizer, checked on texts of several scripts and on texts that break tokenizers."""

import numpy as np
import tensorflow as tf

from bert_tf.tokenizers import load_tokenizer

TEXTS = (
    "The quick brown fox jumps over 12 lazy dogs, isn't it?",
    "모든 국민은 법 앞에 평등하다. 이 영화는 정말 좋았다!",
    "Все люди рождаются свободными",
    "人人生而自由 文字。",
    "  spaces \t and\nlines  ",
)
_HOSTILE = (
    "", " ", "\n\t\u3000", "\x00", "a\x00b", "\x01\x7f\u200b", "\ufeffa\ufffd", "e\u0301\u0323a \u0301", "\u1112\u1161\u11ab 한",
    "👩\u200d👩\u200d👧 🏳️", "\U00040000\u0378\ue000", "x" * 3000, "no spaces " * 50, "(((", "ﬁ Å ½ ² İ ẞ", "กขสวัสดี नमस्ते مرحبا",
)  # fmt: skip
_NO_UTF8 = (b"\xff", b"a\xffb", b"caf\xc3", b"\xe4\xb8fair", b"\xed\xa0\x80 a", b"\xf4\x90\x80\x80a")


def check_tokenizer(tokenizer, folder, texts=TEXTS, round_trips=()):
    """Checks what any tokenizer of this library must keep, of a registered kind.

    - A text has the same ids alone, in any batch, in a graph, with offsets, and in a saved graph that holds
      `resources`.
    - Offsets lie within the text, in its order, and leave out no character of `texts` but white space.
    - A special token is one id where the text spells it, with its offsets; in other case it is ordinary text.
    - No text raises an error: empty ones, control characters, thousands of letters. Bytes that are no UTF-8 have the
      ids of the U+FFFD that Python decodes them to.
    - The tables of the vocabulary have its size; random replacements are no special tokens.
    - `detokenize` gives what `decode` gives: of texts, of random ids, with and without special tokens, in a saved
      graph.
    - `save` and `load_tokenizer` give a tokenizer of the same class, fingerprint and ids.

    Args:
        tokenizer: a `Tokenizer`.
        folder: an empty folder to write into.
        texts: str, without characters that the tokenizer drops, such as accents.
        round_trips: str, texts that `decode(encode(text))` gives back.

    Raises:
        AssertionError: one of these does not hold.

    Example:
        check_tokenizer(tokenizer, tmp_path, round_trips=["a good film"])
    """
    everything = [*texts, *_HOSTILE]
    batch = tf.constant([text.encode("utf-8") for text in everything])
    ids = tokenizer.tokenize(batch).to_list()
    _check_batches(tokenizer, batch, everything, ids)
    for index, (text, row, starts, ends) in enumerate(_with_offsets(tokenizer, everything)):
        assert row == ids[index], f"tokenize and tokenize_with_offsets differ: {text!r}"
        assert starts == sorted(starts) and ends == sorted(ends), f"offsets are not in order: {text!r}"
        assert all(0 <= s <= e <= len(text) for s, e in zip(starts, ends)), f"offsets are outside of {text!r}"
        covered = {position for s, e in zip(starts, ends) for position in range(s, e)}
        uncovered = [c for position, c in enumerate(text) if position not in covered and not c.isspace()]
        assert index >= len(texts) or not uncovered, f"no token has the characters {uncovered} of {text!r}"
    replaced = [text.decode("utf-8", "replace").encode("utf-8") for text in _NO_UTF8]
    assert tokenizer.tokenize(list(_NO_UTF8)).to_list() == tokenizer.tokenize(replaced).to_list()
    if tokenizer.finds_special_tokens:
        _check_special_tokens(tokenizer)
    _check_vocabulary(tokenizer, {int(i) for row in ids for i in np.reshape(row, -1)})
    for text in round_trips:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    mixed = _mixed_ids(tokenizer, ids)
    _check_texts(tokenizer, mixed)

    tokenizer.save(folder / "tokenizer")
    again = load_tokenizer(folder / "tokenizer")
    assert type(again) is type(tokenizer) and again.fingerprint == tokenizer.fingerprint
    assert again.special_ids == tokenizer.special_ids and again.layout == tokenizer.layout
    assert again.tokenize(batch).to_list() == ids
    _check_saved_graph(tokenizer, folder / "graph", batch, ids, mixed)


def _check_batches(tokenizer, batch, texts, ids):
    for text, row in zip(texts, ids):
        assert tokenizer.encode(text) == row, f"alone and in a batch {text!r} has other ids"
    rows = tf.data.Dataset.from_tensor_slices(batch)  # in the graph of a dataset, one for all sizes of a batch
    dataset = rows.batch(1).concatenate(rows.batch(7)).map(tokenizer.tokenize)
    assert [row for rows in dataset for row in rows.to_list()] == 2 * ids
    assert tokenizer.tokenize(batch[0]).numpy().tolist() == ids[0]
    assert [part.to_list() for part in tokenizer.tokenize_with_offsets(batch[:0])] == [[], [], []]


def _with_offsets(tokenizer, texts):
    """Yields (text, ids, starts, ends) of each text."""
    parts = tokenizer.tokenize_with_offsets([text.encode("utf-8") for text in texts])
    return zip(texts, *(part.to_list() for part in parts))


def _check_special_tokens(tokenizer):
    tokens = [t for t in tokenizer.special_tokens if t.strip()][:20]
    cleaned = {t.content for t in tokenizer.special_token_details if t.normalized}  # their case may not count
    for text, ids, starts, ends in _with_offsets(tokenizer, [f"a {token} b" for token in tokens]):
        token, token_id = text[2:-2], tokenizer.token_to_id(text[2:-2])
        spans = [text[s:e] for i, s, e in zip(ids, starts, ends) if i == token_id]
        assert token in spans, f"the text {text!r} has no token {token}"
        other = token.swapcase()
        if token_id != tokenizer.unk_id and other not in tokenizer.special_tokens and token not in cleaned:
            assert token_id not in tokenizer.encode(other), f"{other!r} is taken for {token!r}"


def _check_vocabulary(tokenizer, used):
    size = tokenizer.vocabulary_size
    assert used <= set(range(size))
    assert [tokenizer.token_to_id(tokenizer.id_to_token(i)) for i in range(size)] == list(range(size))
    for table in (tokenizer.is_continuation, tokenizer.starts_word):
        assert np.shape(table) == (size,) and np.asarray(table).dtype == bool
    assert set(tokenizer.random_ids.tolist()) <= set(range(size)) - set(tokenizer.special_ids)
    assert not (used & set(tokenizer.special_ids)) - {tokenizer.unk_id}, "a text without special tokens has some"


def _mixed_ids(tokenizer, ids):
    """Ids of texts, of no text, and random ones, which cut words and characters into pieces."""
    random = np.random.default_rng(0)
    shapes = [(length, *tokenizer.token_shape) for length in random.integers(1, 12, 200)]
    return [*ids, [], *(random.integers(0, tokenizer.vocabulary_size, shape).tolist() for shape in shapes)]


def _check_texts(tokenizer, ids):
    rows = _ragged(tokenizer, ids)
    for skip in (False, True):
        texts = [tokenizer.decode(row, skip_special_tokens=skip) for row in ids]
        assert [t.decode() for t in tokenizer.detokenize(rows, skip_special_tokens=skip).numpy()] == texts
    padded, mask = rows.to_tensor(0), tf.sequence_mask(rows.row_lengths())
    padded, mask = tf.concat([tf.zeros_like(padded), padded], 1), tf.concat([tf.zeros_like(mask), mask], 1)
    texts = [tokenizer.decode(row) for row in ids]
    assert [t.decode() for t in tokenizer.detokenize(padded, mask).numpy()] == texts


def _ragged(tokenizer, ids):
    """Lists of ids as an int32 RaggedTensor [N, None, *token_shape]."""
    return tf.ragged.constant(ids, tf.int32, ragged_rank=1, inner_shape=tokenizer.token_shape)


def _check_saved_graph(tokenizer, folder, batch, ids, mixed):
    module = tf.Module()
    module.resources = tokenizer.resources
    module.tokenize = tf.function(tokenizer.tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    signature = tf.RaggedTensorSpec([None, None, *tokenizer.token_shape], tf.int32, ragged_rank=1)
    module.detokenize = tf.function(tokenizer.detokenize, input_signature=[signature])
    tf.saved_model.save(module, str(folder))
    loaded = tf.saved_model.load(str(folder))
    assert loaded.tokenize(batch).to_list() == ids
    texts = loaded.detokenize(_ragged(tokenizer, mixed)).numpy()
    assert [text.decode() for text in texts] == [tokenizer.decode(row) for row in mixed]
