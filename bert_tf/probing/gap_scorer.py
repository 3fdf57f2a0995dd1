"""Scores what fills a gap with an encoder-decoder that was trained to restore gaps, such as T5."""

import numpy as np

from bert_tf.errors import ConfigError
from bert_tf.generation import TextScorer
from bert_tf.probing.scored_texts import ScoredText, tokenize_texts, tokens_of


class GapScorer:
    """Scores fillings of a gap: the text with a sentinel in the gap is the source, the filling between two sentinels the target.

    Raffel et al. 2020, section 3.1.4: the form of T5's own pretraining. Whole texts have no probability under such a
        model.

    Args:
        model: an `EncoderDecoder`.
        tokenizer: of its pretraining, with T5's sentinels <extra_id_0> and <extra_id_1>.
        batch_size: texts computed together.
        frame: of `TextScorer`.

    Raises:
        ConfigError: a tokenizer without sentinels.

    Example:
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "film", "<extra_id_0>", "<extra_id_1>"]
        t5 = T5(T5Config(len(tokens), 16, num_layers=1, num_heads=2, head_size=8, intermediate_size=32))
        GapScorer(t5, WordPieceTokenizer(tokens)).span_scores(["a good film"], [(2, 6)])[0][0]
    """

    measure = "log-likelihood of what fills the gap"
    predicts_first_token = True

    def __init__(self, model, tokenizer, batch_size=32, frame=None):
        if len(tokenizer.sentinel_ids) < 2:
            raise ConfigError(
                f"{model.name} is an encoder-decoder whose tokenizer has no sentinels <extra_id_0> and <extra_id_1>, by which a "
                "gap is asked for; give a model pretrained with span corruption, such as T5"
            )
        self.scorer = TextScorer(model, tokenizer, batch_size, frame)
        self.tokenizer = tokenizer
        self.batch_size = batch_size

    def score(self, texts):
        """Refused: such a model fills gaps, and gives no probability of a whole text.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("an encoder-decoder gives no probability of a whole text; ask cloze questions")

    def span_scores(self, texts, spans):
        """As that of `NextTokenScorer`, but for the float: the log-likelihood of the tokens of the span and of the sentinel that
        ends them, given the text around them.
        """
        first, second = self.tokenizer.sentinel_ids[:2]
        frame, sources, targets, fillings = self.scorer.frame, [], [], []
        for text, (ids, starts, ends, _), span in zip(texts, tokenize_texts(self.tokenizer, texts), spans):
            inside = np.flatnonzero(tokens_of(starts, ends, span, text))
            begin, end = inside[0], inside[-1] + 1
            sources.append([*frame.before, *ids[:begin].tolist(), first, *ids[end:].tolist(), *frame.after])
            targets.append([first, *ids[begin:end].tolist(), second])
            fillings.append((ids[begin:end], starts[begin:end], ends[begin:end]))
        results = []
        for parts, (log_p, ranks) in zip(fillings, self.scorer.target_tokens(sources, targets)):
            results.append((float(log_p[1:].sum(dtype="float64")), ScoredText(*parts, log_p[1:-1], ranks[1:-1])))
        return results

    def fill_scores(self, texts, spans):
        """list of float, for what fills a span of each text: the mean probability of its tokens, each after those before it."""
        return [float(np.exp(filling.log_p.astype(np.float64)).mean()) for _, filling in self.span_scores(texts, spans)]

    def follow_scores(self, pairs):
        """None: such a model was not trained for it."""
        return None
