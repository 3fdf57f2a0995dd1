"""Small models for probes, and a scorer whose opinions are given."""

import keras
import numpy as np

from bert_tf.models import BertConfig, BertEncoder
from bert_tf.probing import ScoredText
from bert_tf.tokenizers import WordPieceTokenizer


def tokenizer_of(pieces):
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces.split()])


def bert(tokenizer, seed, positions, layers=2, heads=2, initializer_range=0.3, **options):
    """A random encoder whose outputs differ by more than rounding."""
    keras.utils.set_random_seed(seed)
    sizes = {"hidden_size": 16, "num_layers": layers, "num_heads": heads, "intermediate_size": 32}
    sizes |= {"max_positions": positions, "initializer_range": initializer_range}
    return BertEncoder(BertConfig(tokenizer.vocabulary_size, **sizes), **options)


class FakeScorer:
    """A text's words are its tokens, each with the log-probability that a table says."""

    batch_size, predicts_first_token = 2, True

    def __init__(self, log_p, ranks=()):
        self.log_p, self.ranks, self.ids = log_p, dict(ranks), {}

    def score(self, texts):
        results = []
        for text in texts:
            words, begin, spans = text.split(), 0, []
            for word in words:
                begin = text.index(word, begin)
                spans.append((begin, begin + len(word)))
                begin += len(word)
            ids = [self.ids.setdefault(word, len(self.ids)) for word in words]
            starts, ends = np.array(spans).T
            log_p = np.array([self.log_p.get(word, 0.0) for word in words], np.float32)
            ranks = np.array([self.ranks.get(word, 9) for word in words])
            results.append(ScoredText(np.array(ids), starts, ends, log_p, ranks))
        return results

    def span_scores(self, texts, spans):
        inside = [text.within(*span) for text, span in zip(self.score(texts), spans)]
        return [(text.log_likelihood, text) for text in inside]
