"""How probable a model finds a text, token by token: the one thing that all probes of a language model ask.

A model that sees both sides predicts each token from all others (pseudo-log-likelihood: Wang and Cho 2019; Salazar et al.
2020, equation 1), a decoder from those before it. `text_scorer` chooses.
"""

import dataclasses

import numpy as np
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import TextScorer
from bert_tf.parsing import brief
from bert_tf.tasks.sequences import as_strings
from bert_tf.tokenizers.ops.word_spans import find_word_spans


@dataclasses.dataclass(frozen=True)
class ScoredText:
    """The tokens of a text, special tokens left out, and what a model thinks of each.

    Attributes:
        ids: int32 [T].
        starts, ends: int32 [T], the characters [start, end) of each.
        log_p: float32 [T], the natural logarithm of the probability of each.
        ranks: int32 [T], how many other tokens are more probable in its place.

    Example:
        (text,) = scorer.score(["a good film"])
        text.within(2, 6).log_p  # of "good"
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    log_p: np.ndarray
    ranks: np.ndarray

    @property
    def log_likelihood(self):
        """float, the sum of `log_p`."""
        return float(self.log_p.sum(dtype="float64"))

    def within(self, start, end):
        """The `ScoredText` of the tokens with a character of [start, end)."""
        own = (self.starts < end) & (self.ends > start)
        return ScoredText(*(getattr(self, field.name)[own] for field in dataclasses.fields(self)))


class NextTokenScorer:
    """Scores texts with a decoder: each token from those before it.

    Args:
        model: a `Decoder` that continues texts.
        tokenizer: of its pretraining.
        batch_size: texts computed together.
        frame: of `TextScorer`.

    Raises:
        ConfigError: a model that answers sources, such as T5.

    Example:
        NextTokenScorer(gpt, tokenizer).score(["a good film"])[0].log_likelihood
    """

    measure = "log-likelihood"

    def __init__(self, model, tokenizer, batch_size=32, frame=None):
        self.scorer, self.tokenizer, self.batch_size = TextScorer(model, tokenizer, batch_size, frame), tokenizer, batch_size

    def score(self, texts):
        """A `ScoredText` for each text, without the first token where nothing stands before it.

        Args:
            texts: list of str.

        Raises:
            DataError: a text without tokens, or longer than the model's positions.
        """
        tokens, results = _tokenized(self.tokenizer, texts), []
        for (ids, starts, ends, _), (predicted, log_p, ranks) in zip(tokens, self.scorer.tokens(texts)):
            first = len(ids) - len(predicted)
            results.append(ScoredText(ids[first:], starts[first:], ends[first:], log_p, ranks))
        return results

    def span_scores(self, texts, spans):
        """What fills a span of each text.

        Args:
            texts: list of str.
            spans: for each text (start, end), in characters.

        Returns:
            list of (float, `ScoredText`): the log-likelihood of the whole text, by which fillings are compared, and the
            tokens of the span.
        """
        scored = self.score(texts)
        return [(text.log_likelihood, text.within(*span)) for text, span in zip(scored, spans)]


class HiddenTokenScorer:
    """Scores texts with a model that sees both sides: each token hidden in turn.

    Args:
        objective: a pretrained model with `hidden_token_logits`, such as `MaskedLM`.
        tokenizer: of its pretraining.
        batch_size: sequences computed together; a text of T tokens becomes T sequences.
        hide: what is hidden beside the token that is predicted. "word": the later tokens of its word (Kauf and Ivanova
            2023, PLL-word-l2r), so that a rare word does not become probable by its own pieces; "token": nothing, as
            Salazar et al. 2020.

    Raises:
        ConfigError: a tokenizer without a mask token, or an objective without such predictions.

    Example:
        scorer = HiddenTokenScorer(MaskedLM(encoder), tokenizer, hide="token")
        scorer.score(["a good film"])[0].log_likelihood
    """

    measure = "pseudo-log-likelihood"

    def __init__(self, objective, tokenizer, batch_size=32, hide="word"):
        if hide not in ("word", "token"):
            raise ConfigError(f"hide={hide!r}; it must be 'word' or 'token'")
        self.objective, self.tokenizer, self.batch_size, self.hide = objective, tokenizer, batch_size, hide
        specs = [((None, None), "int32")] * 2 + [((None, None), "bool")] * 2 + [((None, 1), "int32")] * 2
        self._predict = as_graph(self._predicted, specs)

    def score(self, texts):
        """A `ScoredText` for each text.

        Args:
            texts: list of str.

        Raises:
            DataError: a text without tokens, or longer than the model's positions.
        """
        return self._score(texts, [None] * len(texts))

    def span_scores(self, texts, spans):
        """As that of `NextTokenScorer`, but for the float: the mean log-probability of the tokens of the span, each with the
        later ones hidden, too.
        """
        return [(float(np.mean(text.log_p)), text) for text in self._score(texts, spans)]

    def _score(self, texts, spans):
        tokens, rows, owners = _tokenized(self.tokenizer, texts), [], []
        kept = []
        for number, ((ids, starts, ends, begins), span) in enumerate(zip(tokens, spans)):
            self._check_length(len(ids), texts[number])
            chosen = np.arange(len(ids)) if span is None else np.flatnonzero((starts < span[1]) & (ends > span[0]))
            groups = np.cumsum(begins) if self.hide == "word" else np.arange(len(ids))
            if span is not None:
                groups = np.where((starts < span[1]) & (ends > span[0]), -1, groups)
            for position in chosen:
                later = np.arange(len(ids)) >= position
                rows.append((ids, later & (groups == groups[position]), position))
            owners += [number] * len(chosen)
            kept.append((ids[chosen], starts[chosen], ends[chosen]))
        log_p, ranks = self._computed(rows)
        owners, results = np.array(owners), []
        for number, parts in enumerate(kept):
            own = owners == number
            results.append(ScoredText(*parts, log_p[own], ranks[own]))
        return results

    def _computed(self, rows):
        """(log-probabilities float32, ranks int32) of (ids, which are hidden, which is predicted)."""
        layout = self.tokenizer.layout
        before, after = layout.before_first, (*layout.after_first, *layout.at_end)
        log_p, ranks = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.int32)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))  # batches of like length
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            width = max(len(rows[i][0]) for i in chosen) + len(before) + len(after)
            ids = np.full((len(chosen), width), self.tokenizer.pad_id, np.int32)
            segments, real, hidden = np.zeros_like(ids), np.zeros(ids.shape, bool), np.zeros(ids.shape, bool)
            positions = np.zeros((len(chosen), 1), np.int32)
            targets = np.zeros_like(positions)
            for row, i in enumerate(chosen):
                own, hide, position = rows[i]
                begin, end = len(before), len(before) + len(own)
                ids[row, : end + len(after)] = [*before, *own, *after]
                real[row, : end + len(after)] = True
                segments[row, end + len(layout.after_first) : end + len(after)] = layout.end_segment
                hidden[row, begin:end] = hide
                positions[row], targets[row] = begin + position, own[position]
            found = self._predict(ids, segments, real, hidden, positions, targets)
            log_p[chosen], ranks[chosen] = (np.asarray(x) for x in found)
        return log_p, ranks

    def _predicted(self, ids, segments, real, hidden, positions, targets):
        """float32 and int32 [B]: log-probability and rank of the targets [B, 1]."""
        inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": real}
        mask_id = -1 if self.tokenizer.mask_id is None else self.tokenizer.mask_id
        logits = self.objective.hidden_token_logits(inputs, hidden, positions, mask_id)
        # A model may have more rows than the vocabulary, to a round number.
        logits = ops.cast(logits[:, 0, : self.tokenizer.vocabulary_size], "float32")
        own = ops.take_along_axis(logits, targets, axis=-1)
        log_p = ops.take_along_axis(ops.log_softmax(logits, axis=-1), targets, axis=-1)[:, 0]
        return log_p, ops.sum(ops.cast(logits > own, "int32"), axis=-1)

    def _check_length(self, tokens, text):
        longest = self.objective.backbone.config.max_positions - self.tokenizer.layout.special_tokens_per_sequence
        if tokens > longest:
            raise DataError(f"{brief(text)} has {tokens} tokens, the model room for {longest}; shorten it")


def text_scorer(objective, tokenizer, batch_size=32, hide="word"):
    """The scorer for a pretrained model: `NextTokenScorer` for decoders, `HiddenTokenScorer` for encoders.

    Args:
        objective, tokenizer: what `load_pretrained` returns.
        batch_size, hide: of the scorers.

    Raises:
        ConfigError: an encoder-decoder, or an objective that predicts no tokens.

    Example:
        text_scorer(MaskedLM(encoder), tokenizer).score(["a good film", "film good a"])
    """
    if objective.backbone.kind == "encoder":
        return HiddenTokenScorer(objective, tokenizer, batch_size, hide)
    return NextTokenScorer(objective.backbone, tokenizer, batch_size, objective.frame(tokenizer))


def _tokenized(tokenizer, texts):
    """(ids, starts, ends, whether each begins a word) of each text: arrays of one length."""
    strings = as_strings(texts)
    ids, starts, ends = tokenizer.tokenize_with_offsets(strings)
    begins, _ = find_word_spans(tokenizer, strings, ids, starts, ends)
    parts = [x.numpy() for x in (ids.values, starts.values, ends.values, begins)]
    splits = ids.row_splits.numpy()
    for text, first, last in zip(texts, splits, splits[1:]):
        if first == last:
            raise DataError(f"{brief(text)} has no token; give at least one word")
    return [tuple(part[first:last] for part in parts) for first, last in zip(splits, splits[1:])]
