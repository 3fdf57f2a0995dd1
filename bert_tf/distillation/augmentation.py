"""Other versions of a text, for a student to learn from: some words are replaced by others that fit.

Jiao et al. 2020 (TinyBERT, arXiv:1909.10351), algorithm 1, as data_augmentation.py of Huawei's
Pretrained-Language-Model has it, but that the text around the words stays as it was written.
"""

import dataclasses
import itertools

import numpy as np
import tensorflow as tf
from keras import ops
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from bert_tf.backend import as_graph
from bert_tf.config import check
from bert_tf.distillation.augment_config import AugmentConfig
from bert_tf.errors import ConfigError
from bert_tf.tasks.heads import INPUTS
from bert_tf.tasks.rows.files import read_text
from bert_tf.tasks.sequences import tokenize_words


@dataclasses.dataclass(frozen=True)
class _Word:
    """A word [start, end) of a text that may be replaced; its tokens are [first, last) of those of the text."""

    start: int
    end: int
    first: int
    last: int


class Augmenter:
    """Replaces words of texts.

    Words of letters (in the original of a to z alone) that are not among `stop_words` may be replaced: a word of one token
    by one of the tokens that a language model finds most probable in its place, where it reads the text without the word
    and then the whole text; a word of several tokens by one of those with the nearest vectors.

    Args:
        objective: a pretrained model with `masked_token_logits`, such as `MaskedLM`.
        tokenizer: of its pretraining.
        config: `AugmentConfig`.
        words: the `WordTable` of `config.vectors`; None: words of several tokens stay.

    Raises:
        ConfigError: a value outside its range, or a tokenizer without a mask token.
        DataError: stop words that cannot be read.

    Example:
        augmenter = Augmenter(MaskedLM(encoder), tokenizer, AugmentConfig(copies=3, candidates=2))
        augmenter.versions(["a good film"], [(0,)])[0]  # at most three, such as "a fine film"
    """

    def __init__(self, objective, tokenizer, config=AugmentConfig(), words=None):
        check(config)
        if config.candidates > tokenizer.vocabulary_size:
            raise ConfigError(f"candidates={config.candidates} is more than the {tokenizer.vocabulary_size} tokens")
        if tokenizer.mask_id is None:
            raise ConfigError("the model's tokenizer has no mask token; give a model pretrained with masked_lm")
        self.objective, self.tokenizer, self.config, self.words = objective, tokenizer, config, words
        self.stop_words = {"english": ENGLISH_STOP_WORDS, "none": frozenset()}.get(config.stop_words)
        if self.stop_words is None:
            self.stop_words = frozenset(word.lower() for word in read_text(config.stop_words).split())
        self.longest = getattr(objective.backbone.config, "max_positions", None) or 512
        self._not_special = np.isin(np.arange(tokenizer.vocabulary_size), tokenizer.special_ids, invert=True)
        self._begins_word, self._neighbours = self._not_special & ~tokenizer.is_continuation, {}
        specs = [((None, None), "int32")] * 2 + [((None, None), "bool")] * 2 + [((None, 1), "int32")]
        self._likely = as_graph(self._most_likely, specs)

    def versions(self, texts, keys):
        """Other versions of each text.

        Args:
            texts: list of str.
            keys: for each text a tuple of ints from 0, from which its draws are made.

        Returns:
            For each text a list of str: at most `copies`, no two alike, none the text itself.
        """
        ids, words = self._words_of(texts)
        fitting = self._fitting(texts, ids, words)
        return [self._draw(*row) for row in zip(texts, words, fitting, keys)]

    def _words_of(self, texts):
        """(ids of each text, `_Word`s of each text that may be replaced)."""
        ids, begins, spans = (x.to_list() for x in tokenize_words(self.tokenizer, texts))
        words = []
        for text, tokens, begin, span in zip(texts, ids, begins, spans):
            firsts = [*np.flatnonzero(begin).tolist(), len(tokens)]
            every = (_Word(*place, *tokens_of) for place, tokens_of in zip(span, itertools.pairwise(firsts)))
            words.append([word for word in every if self._may_be_replaced(text[word.start : word.end])])
        return ids, words

    def _may_be_replaced(self, word):
        return word.isalpha() and word.lower() not in self.stop_words

    def _fitting(self, texts, ids, words):
        """For each word of each text the list of its replacements, str."""
        room, fitting = self._room("special_tokens_per_sequence"), {}
        every = [(i, word) for i, of_text in enumerate(words) for word in of_text]
        single = [(i, word) for i, word in every if word.last - word.first == 1 and word.first < room]
        single.sort(key=lambda pair: len(ids[pair[0]]))  # batches of like length
        for start in range(0, len(single), self.config.batch_size):
            batch = single[start : start + self.config.batch_size]
            likely = self._predict([ids[i] for i, _ in batch], [word.first for _, word in batch])
            for (i, word), tokens in zip(batch, likely):
                unmarked = word.first == 0 and self.tokenizer.is_continuation[ids[i][0]]
                fitting[i, word] = self._words_among(tokens, unmarked)
        for i, word in every:
            if (i, word) not in fitting:
                fitting[i, word] = self._near(texts[i][word.start : word.end], word)
        return [[fitting[i, word] for word in of_text] for i, of_text in enumerate(words)]

    def _words_among(self, tokens, unmarked):
        """The tokens that are words, as a list of str.

        `unmarked`: in front of a text, where byte-level BPE has no space that tells a token that begins a word from one
        that continues it.
        """
        fits = self._not_special if unmarked else self._begins_word
        words = [self.tokenizer.decode([token]).strip() for token in tokens if fits[token]]
        # A token may be a space alone, or some bytes of a character.
        return [word for word in words if word and "\ufffd" not in word]

    def _near(self, text, word):
        if word.last - word.first == 1 or self.words is None or self.words.find(text) is None:
            return []
        row = self.words.find(text)
        if row not in self._neighbours:
            self._neighbours[row] = [near for near, _ in self.words.neighbours(text, self.config.candidates)]
        neighbours = self._neighbours[row]
        return [near.title() for near in neighbours] if text.istitle() else neighbours

    def _room(self, special):
        return self.longest - getattr(self.tokenizer.layout, special)

    def _predict(self, sequences, places):
        """int [B, k]: the most probable tokens at a place of each sequence, which is hidden in the first of its two copies."""
        first = tf.ragged.constant(sequences, tf.int32, row_splits_dtype=tf.int64)
        # A text too long for two copies is read once.
        twice = 2 * max(map(len, sequences)) <= self._room("special_tokens_per_pair")
        row = self.tokenizer.pack(first, first if twice else None, sequence_length=self.longest, dynamic=True)
        positions = np.array(places, np.int32)[:, None] + len(self.tokenizer.layout.before_first)
        hidden = np.arange(row["token_ids"].shape[1]) == positions
        return ops.convert_to_numpy(self._likely(*(np.asarray(row[name]) for name in INPUTS), hidden, positions))

    def _most_likely(self, *parts):
        *inputs, hidden, positions = parts
        inputs = dict(zip(INPUTS, inputs))
        logits = self.objective.masked_token_logits(inputs, hidden, positions, self.tokenizer.mask_id)
        # A model may have more rows than the vocabulary, to a round number.
        return ops.top_k(logits[:, 0, : self.tokenizer.vocabulary_size], self.config.candidates)[1]

    def _draw(self, text, words, fitting, key):
        draws, versions = np.random.default_rng([self.config.seed, *key]), []
        choices = [(word, others) for word, others in zip(words, fitting) if others]
        for _ in range(self.config.copies):
            replaced = draws.random(len(choices)) < self.config.rate
            which = draws.integers([len(others) for _, others in choices]) if choices else ()
            version = text
            for (word, others), replace, index in reversed(list(zip(choices, replaced, which))):
                if replace:
                    version = version[: word.start] + others[index] + version[word.end :]
            if version != text and version not in versions:
                versions.append(version)
        return versions
