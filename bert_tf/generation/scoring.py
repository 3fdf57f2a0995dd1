"""How probable a text is: log-likelihoods of continuations, perplexity of documents."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation.prompts import PromptTokenizer, check_list, check_unicode, pad_sequences
from bert_tf.parsing import brief
from bert_tf.tokenizers.frame import Frame
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Tensor

#: Batches of windows that are read before they are sorted by length and computed.
_BATCHES = 4


@dataclasses.dataclass(frozen=True)
class ContinuationScore:
    """How probable a continuation is after its context.

    Attributes:
        log_likelihood: float, the sum of the log-probabilities of its tokens.
        tokens, characters, bytes: int, its length in each; an encoder-decoder's tokens include the one that ends it.
        is_greedy: whether greedy generation after the context would give it.

    Example:
        TextScorer(gpt, tokenizer).continuations([("the film is", " good")])[0].is_greedy
    """

    log_likelihood: float
    tokens: int
    characters: int
    bytes: int
    is_greedy: bool


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """The negative log-likelihood of documents, in nats, and what it is divided by.

    Attributes:
        nll: float, the sum over all predicted tokens.
        tokens, words, bytes: int, the tokens predicted, and the words between white space and the bytes of UTF-8 of
            their text.

    Example:
        Perplexity(nll=69.3, tokens=50, words=40, bytes=200).per_token  # 4.0
    """

    nll: float
    tokens: int
    words: int
    bytes: int

    def plus(self, nll: float = 0.0, tokens: int = 0, words: int = 0, bytes: int = 0) -> Perplexity:
        """This and further text."""
        return Perplexity(self.nll + nll, self.tokens + tokens, self.words + words, self.bytes + bytes)

    @property
    def per_token(self) -> float:
        """exp(nll / tokens): depends on the vocabulary."""
        return _exp(self.nll / self.tokens)

    @property
    def per_word(self) -> float:
        """exp(nll / words): comparable between vocabularies, on the same text."""
        return _exp(self.nll / self.words)

    @property
    def bits_per_byte(self) -> float:
        """nll / bytes in bits: comparable between vocabularies and languages."""
        return self.nll / self.bytes / math.log(2)


class TextScorer:
    """Scores texts with a decoder that continues them, or targets with a model that was trained to answer sources.

    A context is read as `TextGenerator` reads a prompt. A text without a context, and every document, begins with
    `start_id`, so that its first token is predicted too. Where the tokenizer has no such special token (GPT-1's), the
    first token of a document is left out, and a continuation needs a context.

    Args:
        model: a `Decoder` or an `EncoderDecoder`, or an objective with one as its backbone.
        tokenizer: of its pretraining.
        batch_size: sequences computed together.
        frame: of `PromptTokenizer`: how the model was trained to read prompts; see `TextGenerator`.

    Raises:
        ConfigError: a model or tokenizer that `PromptTokenizer` refuses.

    Example:
        scorer = TextScorer(gpt, tokenizer)
        scorer.continuations([("the film is", " good"), ("the film is", " bad")])[0].log_likelihood
        scorer.perplexity(["a good film.", "in paris."]).per_token
    """

    def __init__(self, model: Any, tokenizer: Tokenizer, batch_size: int = 8, frame: Frame | None = None) -> None:
        self.tokenizer, self.batch_size = tokenizer, batch_size
        self.prompts = PromptTokenizer(model, tokenizer, frame)
        self.model = self.prompts.model
        self.frame, self.has_encoder = self.prompts.frame, self.prompts.has_encoder
        self.has_prefix = not self.has_encoder and self.model.prefix
        self.start_id = self.prompts.start_id if self.has_encoder else self.frame.start
        shapes = [((None, None), "int32"), ((None, None), "bool")]
        self._compiled_scores = as_graph(self.token_scores, shapes * (2 if self.has_encoder or self.has_prefix else 1))

    def continuations(self, pairs: Sequence[tuple[str, str]]) -> list[ContinuationScore]:
        """Scores continuations after their contexts.

        With a model that continues texts, context and continuation are tokenized together and split where the
        continuation begins. A space between them belongs in front of the continuation, and a token across that border
        counts as the continuation's. With a model that answers sources (`Frame.is_source`), the context is the source
        and the continuation the whole target, with the token that ends it: log p(target | source).

        Args:
            pairs: list of (context, continuation), str each; a context that is continued may be empty.

        Returns:
            list of `ContinuationScore`.

        Raises:
            DataError: an empty continuation, text that is not Unicode, a prompt that `PromptTokenizer` refuses, or a
                pair longer than the model's positions.
        """
        rows = []
        for context, continuation in pairs:
            if not continuation:
                raise DataError(f"the continuation of {brief(context)} is empty; give at least one character")
            check_unicode(context + continuation)
            row = self._target_row if self.frame.is_source else self._continuation_row
            rows.append(row(context, continuation))
        results = []
        scored = self._score([ids for _, ids, _ in rows], [source for source, _, _ in rows])
        for (_, continuation), (_, ids, begin), (log_p, ranks) in zip(pairs, rows, scored):
            results.append(
                ContinuationScore(
                    float(log_p[begin:].sum()),
                    len(ids) - 1 - begin,
                    len(continuation),
                    len(continuation.encode("utf-8", "surrogatepass")),
                    bool((ranks[begin:] == 0).all()),
                )
            )
        return results

    def tokens(self, texts: list[str], keeps_start: bool = True) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The log-probability of each token of texts that are continued, each text for itself.

        Args:
            texts: list of str.
            keeps_start: whether the start token stands before the whole text. False: the first token is predicted from
                it, and the others from the text without it.

        Returns:
            list of (ids, log-probabilities float32, ranks int32), arrays of one length. The rank of a token is the
            number of tokens of the vocabulary that are more probable there. Without a start token the first token of a
            text is left out.

        Raises:
            ConfigError: a model that answers sources.
            DataError: a text longer than the model's positions, or one text that is not in a list.
        """
        self._window(None, None)
        check_list(texts)
        rows = [[*self._start, *self.tokenizer.encode(text)] for text in texts]
        for ids, text in zip(rows, texts):
            self._check_length(len(ids), text)
        if not keeps_start and self.start_id is not None:
            firsts = self._score([ids[:2] for ids in rows])
            others = self._score([ids[1:] for ids in rows])
            scored = [(np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])) for a, b in zip(firsts, others)]
        else:
            scored = self._score(rows)
        return [(np.array(ids[1:], np.int32), *of_text) for ids, of_text in zip(rows, scored)]

    def target_tokens(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The log-probability of each token of targets that an encoder-decoder writes after sources.

        Args:
            sources, targets: lists of lists of ids, as the model reads and writes them; the token that begins a target
                is added.

        Returns:
            list of (log-probabilities float32, ranks int32), arrays as long as each target.

        Raises:
            DataError: a source or target longer than the model's positions.
        """
        for ids in (*sources, *targets):
            self._check_length(len(ids), self.tokenizer.decode(ids))
        return self._score([[self.start_id, *ids] for ids in targets], sources)

    def perplexity(
        self,
        documents: Iterable[str],
        length: int | None = None,
        stride: int | None = None,
        progress: Callable[[Perplexity, float], None] | None = None,
    ) -> Perplexity:
        """The negative log-likelihood of documents, each for itself.

        A document longer than `length` is read in windows that begin every `stride` tokens. Each token is predicted
        once, in the first window that has it: with the window's tokens before it, at least `length` - `stride`. A
        small stride costs more and gives each token more context.

        Args:
            documents: iterable of str, read as they are needed.
            length: tokens of a window, the start token of the document included; None for all positions of the model.
            stride: None for `length` - 1: windows share one token, the first context of the later one.
            progress: function(the `Perplexity` so far, the fraction of the tokens read that it has), called every few
                batches; None for nothing. Before the end the words and bytes are those of all documents read.

        Returns:
            A `Perplexity`.

        Raises:
            ConfigError: a model that answers sources; a length beyond the model's positions, or a stride that is not in
                1..length - 1.
            DataError: no tokens, or one text that is not in a list.
        """
        length, stride = self._window(length, stride)
        check_list(documents)
        windows, total, num_read, size = [], Perplexity(0.0, 0, 0, 0), 0, _BATCHES * self.batch_size
        for document in documents:
            ids, text = self._ids_and_text(document)
            num_read += max(len(ids) - 1, 0)
            total = total.plus(words=len(text.split()), bytes=len(text.encode("utf-8", "surrogatepass")))
            windows += [(ids[begin:end], new - begin) for begin, end, new in windows_of(len(ids), length, stride)]
            while len(windows) >= size:
                total, windows = self._add_windows(total, windows[:size]), windows[size:]
                if progress is not None:
                    progress(total, total.tokens / num_read)
        total = self._add_windows(total, windows)
        if not total.tokens:
            raise DataError("the documents have no tokens; give text")
        return total

    def _window(self, length, stride):
        """`length` and `stride` with their defaults."""
        if self.frame.is_source:
            if self.has_encoder:
                kind = "an encoder-decoder"
            else:
                kind = "a decoder with a prefix" if self.has_prefix else "trained to answer sources"
            raise ConfigError(
                f"perplexity needs a decoder that continues texts, and {self.model.name} is {kind}; score targets after "
                f"their sources with continuations([(source, target)])"
            )
        longest = self.model.config.max_positions
        length = length or longest
        if length > longest:
            raise ConfigError(f"length={length} is beyond the model's {longest} positions; lower it")
        stride = stride or length - 1
        if not 1 <= stride < length:
            raise ConfigError(f"stride={stride} must be at least 1 and below the length of {length} tokens")
        return length, stride

    def _ids_and_text(self, document):
        """The ids of a document, and the text of those that are predicted: all but the first."""
        if self.start_id is not None:
            return [self.start_id, *self.tokenizer.encode(document)], document
        data = document.encode("utf-8", "surrogatepass")
        ids, _, ends = (x[0].numpy().tolist() for x in self.tokenizer.tokenize_with_offsets([data]))
        return ids, document[ends[0] :] if ids else ""

    def _add_windows(self, total, windows):
        """`total` and the new tokens of some windows."""
        nll, tokens = 0.0, 0
        for (log_p, _), (_, new) in zip(self._score([ids for ids, _ in windows]), windows):
            nll -= float(log_p[new - 1 :].sum(dtype="float64"))
            tokens += len(log_p) - (new - 1)
        return total.plus(nll=nll, tokens=tokens)

    def _continuation_row(self, context, continuation):
        """A decoder's (source, sequence, index of the first token of the continuation in the sequence - 1)."""
        ids, _, ends = (x[0].numpy() for x in self.tokenizer.tokenize_with_offsets([context + continuation]))
        begin = int((ends <= len(context)).sum())
        if begin == len(ids):
            raise DataError(f"the continuation {brief(continuation)} has no token; give at least one word")
        first = self.frame.before or (() if begin else self._start)
        ids, begin = [*first, *ids.tolist()], begin + len(first) - 1
        if begin < 0:
            raise DataError(
                f"the tokenizer has no special token that begins a text, so that {brief(continuation)} needs a context; "
                f"give one of at least one token"
            )
        self._check_length(len(ids), context + continuation)
        return None, ids, begin

    def _target_row(self, source, target):
        """The same of a model that answers sources."""
        source_ids, target_ids = self.prompts.ids(source), self.tokenizer.encode(target)
        if not target_ids:
            raise DataError(f"the continuation {brief(target)} has no token; give at least one word")
        if self.frame.end is not None:
            target_ids = [*target_ids, self.frame.end]
        if not self.has_encoder:
            ids = [*source_ids, *target_ids]
            self._check_length(len(ids), source + target)
            return source_ids, ids, len(source_ids) - 1
        ids = [*self._start, *target_ids]
        self._check_length(len(source_ids), source)
        self._check_length(len(ids) - 1, target)
        return source_ids, ids, 0

    @property
    def _start(self):
        return () if self.start_id is None else (self.start_id,)

    def _check_length(self, length, text):
        longest = self.model.config.max_positions
        if length > longest:
            raise DataError(f"{brief(text)} has {length} tokens, the model {longest} positions; shorten it")

    def _score(self, sequences, sources=None):
        """For each sequence of ids: the log-probability of each token after the first, and its rank from 0.

        `sources` are what an encoder-decoder reads for each, and the prefixes for a decoder that has them.
        """
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))  # batches of like length
        results: list[Any] = [None] * len(sequences)
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            inputs: tuple[np.ndarray, ...] = pad_sequences([sequences[i] for i in chosen], self.tokenizer.pad_id)
            if self.has_encoder or self.has_prefix:
                inputs += pad_sequences([sources[i] for i in chosen], self.tokenizer.pad_id)
            log_p, ranks = (np.asarray(x) for x in self._compiled_scores(*inputs))
            for row, i in enumerate(chosen):
                count = len(sequences[i]) - 1
                results[i] = log_p[row, :count], ranks[row, :count]
        return results

    def token_scores(
        self, token_ids: Tensor, padding_mask: Tensor, source_ids: Tensor = None, source_mask: Tensor = None
    ) -> tuple[Tensor, Tensor]:
        """float32 and int32 [B, S - 1]: the log-probability and the rank of each token but the first."""
        if self.has_encoder:
            inputs = {"token_ids": source_ids, "padding_mask": source_mask, "decoder_token_ids": token_ids}
        else:
            inputs = {"token_ids": token_ids, "padding_mask": padding_mask}
            if self.has_prefix:
                length = ops.sum(ops.cast(source_mask, "int32"), axis=1, keepdims=True)
                inputs["prefix_mask"] = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None] < length
        x = self.model(inputs, training=False)["sequence_output"][:, :-1]

        def of_row(pair):  # one sequence at a time: the logits of all would be large
            vectors, ids = pair
            logits = ops.cast(self.model.output_logits(vectors), "float32")
            target_logits = ops.take_along_axis(logits, ids[:, None], axis=-1)
            log_p = ops.take_along_axis(ops.log_softmax(logits, axis=-1), ids[:, None], axis=-1)[:, 0]
            writable = logits[:, : self.tokenizer.vocabulary_size]  # the only tokens that are generated
            return log_p, ops.sum(ops.cast(writable > target_logits, "int32"), axis=-1)

        return ops.map(of_row, (x, token_ids[:, 1:]))


def _exp(x):
    return math.exp(x) if x < 700 else math.inf  # a text without spaces is one word


def windows_of(total: int, length: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """(begin, end, first new) of the windows over `total` tokens, of which all but the first are predicted once.

    Example:
        list(windows_of(10, length=6, stride=3))  # [(0, 6, 1), (3, 9, 6), (6, 10, 9)]
    """
    begin, new = 0, 1
    while new < total:
        end = min(begin + length, total)
        yield begin, end, new
        begin, new = begin + stride, end
