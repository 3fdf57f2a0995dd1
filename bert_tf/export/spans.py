"""Served question answering: a question and a context of any length to the span that answers it."""

import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.export.length_bucketing import apply_in_buckets
from bert_tf.export.requests import check_as_many, check_count
from bert_tf.export.signatures import TEXT, ServingModule, Signature
from bert_tf.tasks.spans.decoding import CERTAIN
from bert_tf.tasks.spans.heads import IMPOSSIBLE
from bert_tf.tasks.spans.windows import context_offsets, cut_windows, rooms_for_contexts, window_features
from bert_tf.tokenizers.ops.strings import valid_utf8


class ServedQuestionAnswering(ServingModule):
    """A question and a context to the answer: what `predict` of the task gives.

    Windows of a long context are cut inside the graph; no part of it is left out. Bytes of a context that are no UTF-8
    become U+FFFD before characters are counted.

    Outputs of `serving_default`, which takes `question` and `context`, string [N] each:
        answer: string [N], "" where `null_odds` is above the threshold of the export, or no span is possible.
        start, end: int32 [N], the code points [start, end) of the context; -1 where the answer is "".
        score: float32 [N], of the best span, whether it is the answer or not; -1e9 without one.
        null_score, null_odds: float32 [N]; see `QuestionAnsweringTask`.
        answers: string, `starts`, `ends`: int32, `scores`: float32 [N, n], the best spans, best first, without equal
            texts and without ""; where there are fewer, "", -1 and -1e9.

    Args:
        model: a `SpanModel`.
        tokenizer, static: as in `ServingModule`.
        sequence_length: of a window, special tokens included.
        stride, max_query_length: of `QuestionAnsweringConfig`.
        threshold: of `null_odds`; None: no question is impossible.
        n_best: n.

    Raises:
        ConfigError: windows that have no room beside the longest question.

    Example:
        module = ServedQuestionAnswering(SpanModel(encoder), tokenizer, sequence_length=32, max_query_length=8)
        module.answer_question(["the one?"], ["a good film. the film is in paris."])["answer"]  # [1]
    """

    kind = "question_answering"
    options = ("n_best",)

    def __init__(
        self,
        model,
        tokenizer,
        sequence_length=384,
        static=False,
        stride=128,
        max_query_length=64,
        threshold=None,
        n_best=5,
    ):
        super().__init__(model, tokenizer, sequence_length, pairs=True, static=static)
        special = tokenizer.layout.special_tokens_per_pair
        if sequence_length - special - max_query_length < 1:
            raise ConfigError(
                f"sequence_length={sequence_length} leaves no room for a context beside a question of "
                f"{max_query_length} tokens and {special} special tokens; raise it"
            )
        check_count("n_best", n_best, model.kept, "the spans kept of a window")
        self.stride, self.max_query_length, self.n_best, self.threshold = stride, max_query_length, n_best, threshold

    @classmethod
    def of_task(cls, task, model, **settings):
        config, threshold = task.config, task.threshold if task.state.impossible else None
        given = {"stride": config.stride, "max_query_length": config.max_query_length, "threshold": threshold}
        return cls(model, task.tokenizer, **given, **{"n_best": min(config.n_best, 5)} | settings)

    def signatures(self):
        return {"serving_default": Signature(self.answer_question, {"question": TEXT, "context": TEXT})}

    def inputs_of(self, name, texts):
        return {"question": tf.constant(texts, tf.string), "context": tf.constant(texts[::-1], tf.string)}

    def settings(self):
        names = ("stride", "max_query_length", "threshold", "n_best")
        return super().settings() | {name: getattr(self, name) for name in names}

    def answer_question(self, question, context):
        """What `serving_default` computes."""
        question, context = map(valid_utf8, check_as_many(text=question, context=context))
        questions = self.tokenizer.tokenize(question)[:, : self.max_query_length]
        ids, *characters = self.tokenizer.tokenize_with_offsets(context)
        lengths = tf.cast(questions.row_lengths(), tf.int32)
        rooms = rooms_for_contexts(lengths, self.tokenizer.layout, self.sequence_length)
        windows = cut_windows(tf.cast(ids.row_lengths(), tf.int32), rooms, self.stride)
        first = tf.gather(tf.cast(ids.row_starts(), tf.int32), windows.owners) + windows.begins
        places = tf.ragged.range(first, first + windows.lengths, row_splits_dtype=tf.int64)
        features = window_features(
            self.tokenizer,
            tf.gather(questions, windows.owners),
            places.with_values(tf.gather(ids.values, places.values)),
            windows.best_begins - windows.begins,
            windows.best_ends - windows.begins,
            self.sequence_length,
            dynamic=not self.static,
        )
        scores, spans, null_scores = self._spans(features)
        columns = context_offsets(self.tokenizer, tf.gather(lengths, windows.owners))
        tokens = spans + (first - columns)[:, None, None]  # of all contexts: [W, K, 2]
        possible = scores > IMPOSSIBLE / 2
        begins, ends = (
            tf.gather(tf.concat([x.values, [0]], 0), tf.where(possible, tokens[..., i], 0))
            for i, x in enumerate(characters)
        )
        scores = tf.where(possible & (ends > begins), scores, IMPOSSIBLE)
        best = self._best(context, windows.owners, scores, begins, ends)
        count = tf.size(question)
        return best | self._decide(best, tf.math.unsorted_segment_min(null_scores, windows.owners, count))

    def _spans(self, features):
        """What the model proposes: scores float32 [W, K], spans int32 [W, K, 2], null scores float32 [W]."""
        kept = self._model().kept

        def outputs(part):
            found = self.call_model(part)
            spans = tf.cast(tf.concat([found["starts"], found["ends"]], 1), tf.float32)  # exact below 2**24
            return tf.concat([found["scores"], spans, found["null_scores"][:, None]], 1)

        together = outputs(features) if self.static else apply_in_buckets(outputs, features, [3 * kept + 1])
        scores, starts, ends, null_scores = tf.split(together, [kept, kept, kept, 1], axis=1)
        return scores, tf.cast(tf.stack([starts, ends], axis=2), tf.int32), null_scores[:, 0]

    def _best(self, context, owners, scores, begins, ends):
        """`answers`, `starts`, `ends`, `scores` [N, n] of the candidates [W, K] of all windows."""
        count, kept = tf.size(context), scores.shape[1]

        def of_questions(values, filler):
            rows = tf.RaggedTensor.from_value_rowids(values, tf.cast(owners, tf.int64), tf.cast(count, tf.int64), False)
            rows = rows.to_tensor(filler)  # [N, windows, K]
            rows = tf.reshape(rows, [count, tf.shape(rows)[1] * kept])
            return tf.pad(rows, [[0, 0], [0, kept]], constant_values=filler)  # K columns also without a question

        scores, order = tf.math.top_k(of_questions(scores, IMPOSSIBLE), kept)
        begins, ends = (tf.gather(of_questions(x, 0), order, batch_dims=1) for x in (begins, ends))
        possible = scores > IMPOSSIBLE / 2
        begins, lengths = tf.where(possible, begins, 0), tf.where(possible, ends - begins, 0)
        texts = tf.strings.substr(tf.repeat(context[:, None], kept, axis=1), begins, lengths, unit="UTF8_CHAR")
        earlier = tf.linalg.band_part(tf.ones([kept, kept], tf.bool), -1, 0) & ~tf.eye(kept, dtype=tf.bool)
        again = tf.reduce_any((texts[:, :, None] == texts[:, None, :]) & earlier, axis=2)
        left = possible & ~again
        order = tf.argsort(tf.cast(~left, tf.int32), axis=1, stable=True)[:, : self.n_best]
        left = tf.gather(left, order, batch_dims=1)
        fillers = {
            "answers": (texts, ""),
            "starts": (begins, -1),
            "ends": (begins + lengths, -1),
            "scores": (scores, IMPOSSIBLE),
        }
        return {
            name: tf.where(left, tf.gather(values, order, batch_dims=1), filler)
            for name, (values, filler) in fillers.items()
        }

    def _decide(self, best, null_scores):
        score, some = best["scores"][:, 0], best["starts"][:, 0] >= 0
        null_odds = null_scores if self._model().head.null_alone else null_scores - score
        null_odds = tf.where(some, null_odds, CERTAIN)
        answered = some if self.threshold is None else some & (null_odds <= self.threshold)
        return {
            "answer": tf.where(answered, best["answers"][:, 0], ""),
            "start": tf.where(answered, best["starts"][:, 0], -1),
            "end": tf.where(answered, best["ends"][:, 0], -1),
            "score": score,
            "null_score": null_scores,
            "null_odds": null_odds,
        }
