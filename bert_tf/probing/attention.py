"""Which tokens the heads of a model look at, and a page on which a person can look at them."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write
from bert_tf.markup import h
from bert_tf.models.weights import with_output
from bert_tf.probing.probe import Probe
from bert_tf.probing.scored_texts import tokenize_texts
from bert_tf.probing.tables import ProbeTable
from bert_tf.reporting.document import document
from bert_tf.reporting.parts import header

#: A page with more tokens would be too large to look at.
MOST_TOKENS = 128
#: What is shown for a token that is a space.
SPACE = "␣"


@dataclasses.dataclass(frozen=True)
class TextAttention:
    """The attention of all heads for one text, or for two.

    Attributes:
        tokens: list of str, as the text spells them; special tokens as the vocabulary does.
        words: list of int, the number of each token's word; each special token is a word of its own.
        word_names: list of str, the words, as the text spells them.
        weights: float32 [layers, heads, S, S]: from the token of the row to that of the column; each row sums to 1.

    Example:
        text_attention(encoder, tokenizer, "a good film").of_words().tokens  # ['[CLS]', 'a', 'good', 'film', '[SEP]']
    """

    tokens: list
    words: list
    word_names: list
    weights: np.ndarray

    def of_words(self):
        """The same between words: the sum over the tokens that are looked at, the mean over those that look.

        Clark et al. 2019, section 4.1.
        """
        names = self.word_names
        return TextAttention(names, list(range(len(names))), names, between_words(self.weights, self.words))


def between_words(weights, words):
    """float32 [layers, heads, W, W] of `weights` [layers, heads, S, S]: the sum over the tokens of a word that is looked at, the
    mean over those that look. `words` is the number of each token's word, from 0.
    """
    groups = np.equal.outer(np.arange(max(words) + 1), words).astype(np.float32)
    summed = np.einsum("lhqk,wk->lhqw", weights, groups, optimize=True)
    return np.einsum("lhqw,vq->lhvw", summed, groups / groups.sum(axis=1, keepdims=True), optimize=True)


def text_attention(encoder, tokenizer, text, text_pair=None):
    """The `TextAttention` of a text, or of a pair.

    Args:
        encoder: an encoder or decoder that can give its attention.
        tokenizer: of its pretraining.
        text, text_pair: str.

    Raises:
        ConfigError: a model that cannot give its attention.
        DataError: a text without tokens, or more than 128 tokens.
    """
    texts = [text] if text_pair is None else [text, text_pair]
    parts, words, places = [], [], []
    for whole_text, (ids, starts, ends, begins) in zip(texts, tokenize_texts(tokenizer, texts)):
        parts.append(tf.RaggedTensor.from_row_lengths(ids, [len(ids)]))
        words.append(np.cumsum(begins))
        places.append([(whole_text, *place) for place in zip(starts, ends)])
    longest = min(MOST_TOKENS, encoder.config.max_positions)
    row = tokenizer.pack(*parts, sequence_length=sum(map(len, words)) + 8, dynamic=True)
    ids_of_row = row["token_ids"].numpy()[0]
    if len(ids_of_row) > longest:
        raise DataError(f"the text has {len(ids_of_row)} tokens, and at most {longest} can be shown; shorten it")
    scores = with_attention(encoder)(row, training=False)["attention_scores"]
    weights = np.stack([np.asarray(of_layer[0], np.float32) for of_layer in scores])
    numbers = words_of_row(tokenizer, words, len(ids_of_row))
    places = _in_row(tokenizer.layout, places, len(ids_of_row))
    tokens = [_spell(tokenizer, int(i), place) for i, place in zip(ids_of_row, places)]
    names = []
    for number in range(numbers[-1] + 1):
        first, *others = (i for i, of_token in enumerate(numbers) if of_token == number)
        if others:  # not the tokens joined: those that are parts of one character are all spelled as it
            whole_text, start, _ = places[first]
            names.append(whole_text[start : places[others[-1]][2]].strip())
        else:
            names.append(tokens[first])
    return TextAttention(tokens, numbers, names, weights)


def _spell(tokenizer, token_id, place):
    """A token as its text spells it. `place` is (text, start, end); None for a token that is not of the text."""
    if place is None or token_id in tokenizer.special_ids:
        return tokenizer.id_to_token(token_id)
    text, start, end = place
    return text[start:end] or SPACE


def write_attention_page(attention, path, title="Attention"):
    """Writes one HTML file, without outside references, on which heads and layers can be looked at.

    A picture of each head; the chosen one is drawn large, with a line from each token to those that it looks at.
    Pointing at a token shows its lines alone. Arrow keys choose the layer and the head, W exchanges tokens and words.

    Args:
        attention: `TextAttention`.
        path: of the file.
        title: str.

    Example:
        write_attention_page(text_attention(encoder, tokenizer, "a good film"), "attention.html")
    """
    views = {"tokens": attention, "words": attention.of_words()}
    layers, heads = attention.weights.shape[:2]
    keys = "left and right for the head, up and down for the layer, W for words or tokens"
    text = f"Choose a head by clicking or with keys: {keys}. Point at a token to see its lines alone."
    unit = h("button", "words", id="unit", type="button", aria_pressed="false")
    pictures = h("div", id="heads", role="grid", tabindex="0", aria_label="heads")
    data = json.dumps({name: _as_data(view) for name, view in views.items()}, ensure_ascii=False)
    parts = [
        header(title, f"{layers} layers of {heads} heads"),
        h("p", text, class_="note"),
        h("p", unit, " ", h("output", "", id="where", aria_live="polite")),
        h("div", h("div", id="lines"), pictures, class_="attention"),
        h("script", data.replace("<", "\\u003c"), id="data", type="application/json"),
    ]
    script = (Path(__file__).parent / "attention.js").read_text(encoding="utf-8")
    with atomic_write(path) as file:
        file.write(document(title, parts, script=script))


@dataclasses.dataclass(frozen=True)
class _AttentionTable(ProbeTable):
    """The size of the attention of a text, with the attention itself."""

    attention: TextAttention | None = None


@dataclasses.dataclass(frozen=True)
class AttentionMap(Probe):
    """The attention of all heads for a text or a pair, on a page of its own: see `write_attention_page`.

    Example:
        AttentionMap().run(LayerReader(encoder, tokenizer), ("a good film", None))["a good film"]  # {"layers": 2, ...}
    """

    name, title, asks, has_control = "attention", "attention", "layers", False

    def read(self, text, second=None, most=None):
        """A text, or two that are read as a pair: they are given in place of files."""
        return text, second

    def run(self, model, rows, progress=None):
        attention = text_attention(model.encoder, model.tokenizer, *rows)
        sizes = list(attention.weights.shape[:3])
        row = (rows[0][:60], sizes)
        return _AttentionTable(self.title, ["layers", "heads", "tokens"], [row], bars=False, attention=attention)

    def write_page(self, table, path, title, about=""):
        """See `Probe`."""
        write_attention_page(table.attention, path, f"Attention of {title}")


def with_attention(encoder):
    """The same model with `attention_scores` among its outputs."""
    model = with_output(encoder, "output_attention_scores")
    if model is None:
        raise ConfigError(f"{type(encoder).__name__} does not give its attention; give an encoder or a decoder")
    return model


def words_of_row(tokenizer, words, length):
    """The number of the word of each token of a row: `words` counts from 1 in each text."""
    first, *second = words
    numbers = _in_row(tokenizer.layout, [first, *([n + max(first) for n in of_text] for of_text in second)], length)
    result, last = [], (-1, None)
    for number in numbers:
        last = (last[0] + (number is None or number != last[1]), number)
        result.append(int(last[0]))
    return result


def _in_row(layout, parts, length):
    """What belongs to each token of one text or two, as a list for the tokens of a row: None at its special tokens."""
    first, *second = parts
    row = [None] * len(layout.before_first) + list(first) + [None] * len(layout.after_first)
    for of_text in second:
        row += [None] * len(layout.before_second) + list(of_text) + [None] * len(layout.after_second)
    return row + [None] * (length - len(row))


def _as_data(attention):
    """What the page's script reads: weights in 1/255, row by row."""
    weights = np.rint(attention.weights * 255).astype(int)
    return {"tokens": attention.tokens, "weights": weights.reshape(*weights.shape[:2], -1).tolist()}
