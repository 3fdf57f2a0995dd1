"""How probable a model finds a text, token by token: the one thing that all probes of a language model ask.

A model that sees both sides predicts each token from all others (pseudo-log-likelihood: Wang and Cho 2019; Salazar et
al. 2020, equation 1), a decoder from those before it. `text_scorer` chooses.
"""

import numpy as np
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import TextScorer
from bert_tf.parsing import brief
from bert_tf.probing.gap_scorer import GapScorer
from bert_tf.probing.scored_texts import ScoredText, tokenize_texts, tokens_of
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.sequences import as_strings


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
        self.scorer = TextScorer(model, tokenizer, batch_size, frame)
        self.tokenizer = tokenizer
        self.batch_size = batch_size

    @property
    def predicts_first_token(self):
        """Whether something stands before a text, so that its first token is predicted, too: a start token."""
        return self.scorer.start_id is not None

    def score(self, texts):
        """A `ScoredText` for each text, without the first token where nothing stands before it.

        Args:
            texts: list of str.

        Raises:
            DataError: a text without tokens, or longer than the model's positions.
        """
        tokens, results = tokenize_texts(self.tokenizer, texts), []
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
        return [(one.log_likelihood, _part(one, span, text)) for one, span, text in zip(scored, spans, texts)]

    def sentence_scores(self, texts):
        """list of float: the mean log-probability of the tokens of each text, of which the first alone is predicted from the
        start token, and the others from the text without it.
        """
        tokenize_texts(self.tokenizer, texts)  # refuses a text without tokens
        return [float(log_p.mean()) for _, log_p, _ in self.scorer.tokens(texts, keeps_start=False)]

    def follow_scores(self, pairs):
        """list of float, for how well the second text of each pair follows the first: the mean log-probability of its tokens."""
        texts = [f"{first} {second}" for first, second in pairs]
        spans = [(len(first) + 1, len(text)) for (first, _), text in zip(pairs, texts)]
        return [float(part.log_p.mean()) for _, part in self.span_scores(texts, spans)]


def _part(scored, span, text):
    """The tokens of a span, which may lack the first one of the text: it is not predicted where nothing stands before it."""
    if len(scored.starts) and span[0] >= scored.starts[0]:
        tokens_of(scored.starts, scored.ends, span, text)
    return scored.within(*span)


class HiddenTokenScorer:
    """Scores texts with a model that sees both sides: each token hidden in turn.

    Args:
        objective: a pretrained model with `masked_token_logits`, such as `MaskedLM`.
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
    predicts_first_token = True

    def __init__(self, objective, tokenizer, batch_size=32, hide="word"):
        if hide not in ("word", "token"):
            raise ConfigError(f"hide={hide!r}; it must be 'word' or 'token'")
        self.objective, self.tokenizer, self.batch_size, self.hide = objective, tokenizer, batch_size, hide
        specs = [((None, None), "int32")] * 2 + [((None, None), "bool")] * 2 + [((None, 1), "int32")] * 2
        self._predict = as_graph(self._score_tokens, specs)

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

    def fill_scores(self, texts, spans):
        """list of float, for what fills a span of each text: the mean probability of its tokens, each from all other tokens of
        the text and those of the span before it; those after it are left out, so that the length is not seen.
        """
        rows, counts = [], []
        for text, (ids, starts, ends, _), span in zip(texts, tokenize_texts(self.tokenizer, texts), spans):
            self._check_length(len(ids), text)
            inside = np.flatnonzero(tokens_of(starts, ends, span, text))
            for position in inside:
                shorter = np.concatenate([ids[: position + 1], ids[inside[-1] + 1 :]])
                rows.append((shorter, np.arange(len(shorter)) == position, position))
            counts.append(len(inside))
        probabilities = np.exp(self._compute(rows)[0].astype(np.float64))
        return [float(of_text.mean()) for of_text in np.split(probabilities, np.cumsum(counts)[:-1])]

    def follow_scores(self, pairs):
        """list of float, for how well the second text of each pair follows the first: the probability by next sentence
        prediction. None for a model without one.
        """
        probabilities = []
        for begin in range(0, len(pairs), self.batch_size):
            texts = zip(*pairs[begin : begin + self.batch_size])
            ids = [self.tokenizer.tokenize(as_strings(of_part)) for of_part in texts]
            row = self.tokenizer.pack(*ids, sequence_length=self.objective.backbone.config.max_positions, dynamic=True)
            logits = self.objective.next_sentence_logits({name: row[name] for name in INPUTS})
            if logits is None:
                return None
            probabilities += ops.convert_to_numpy(ops.softmax(ops.cast(logits, "float32"), axis=-1))[:, 0].tolist()
        return probabilities

    def _score(self, texts, spans):
        tokens, rows, parts_of = tokenize_texts(self.tokenizer, texts), [], []
        for number, ((ids, starts, ends, begins), span) in enumerate(zip(tokens, spans)):
            self._check_length(len(ids), texts[number])
            chosen, groups = np.arange(len(ids)), np.cumsum(begins) if self.hide == "word" else np.arange(len(ids))
            if span is not None:
                inside = tokens_of(starts, ends, span, texts[number])
                chosen, groups = np.flatnonzero(inside), np.where(inside, -1, groups)
            for position in chosen:
                later = np.arange(len(ids)) >= position
                rows.append((ids, later & (groups == groups[position]), position))
            parts_of.append((ids[chosen], starts[chosen], ends[chosen]))
        ends = np.cumsum([len(ids) for ids, _, _ in parts_of])[:-1]
        computed = (np.split(values, ends) for values in self._compute(rows))
        return [ScoredText(*parts, *scores) for parts, *scores in zip(parts_of, *computed)]

    def _compute(self, rows):
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
                of_row, hide, position = rows[i]
                begin, end = len(before), len(before) + len(of_row)
                ids[row, : end + len(after)] = [*before, *of_row, *after]
                real[row, : end + len(after)] = True
                segments[row, end + len(layout.after_first) : end + len(after)] = layout.end_segment
                hidden[row, begin:end] = hide
                positions[row], targets[row] = begin + position, of_row[position]
            computed = self._predict(ids, segments, real, hidden, positions, targets)
            log_p[chosen], ranks[chosen] = (np.asarray(x) for x in computed)
        return log_p, ranks

    def _score_tokens(self, ids, segments, real, hidden, positions, targets):
        """float32 and int32 [B]: log-probability and rank of the targets [B, 1]."""
        inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": real}
        mask_id = -1 if self.tokenizer.mask_id is None else self.tokenizer.mask_id
        logits = self.objective.masked_token_logits(inputs, hidden, positions, mask_id)
        # A model may have more rows than the vocabulary, to a round number.
        logits = ops.cast(logits[:, 0, : self.tokenizer.vocabulary_size], "float32")
        of_target = ops.take_along_axis(logits, targets, axis=-1)
        log_p = ops.take_along_axis(ops.log_softmax(logits, axis=-1), targets, axis=-1)[:, 0]
        return log_p, ops.sum(ops.cast(logits > of_target, "int32"), axis=-1)

    def _check_length(self, tokens, text):
        longest = self.objective.backbone.config.max_positions - self.tokenizer.layout.special_tokens_per_sequence
        if tokens > longest:
            raise DataError(f"{brief(text)} has {tokens} tokens, the model room for {longest}; shorten it")


def text_scorer(objective, tokenizer, batch_size=32, hide="word"):
    """The scorer for a pretrained model: `HiddenTokenScorer` for encoders, `NextTokenScorer` for decoders, `GapScorer` for
    encoder-decoders.

    Args:
        objective, tokenizer: of what `bert_tf.load` returns.
        batch_size, hide: of the scorers.

    Raises:
        ConfigError: an encoder-decoder without sentinels, or an objective that predicts no tokens.

    Example:
        text_scorer(MaskedLM(encoder), tokenizer).score(["a good film", "film good a"])
    """
    if objective.backbone.structure == "encoder":
        return HiddenTokenScorer(objective, tokenizer, batch_size, hide)
    kinds = {"decoder": NextTokenScorer, "encoder_decoder": GapScorer}
    return kinds[objective.backbone.structure](objective.backbone, tokenizer, batch_size, objective.frame(tokenizer))
