"""Served question answering: a question and a context of any length to the span that answers it."""

import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.export.requests import check_as_many, check_count
from bert_tf.export.signatures import TEXT, ServingModule, Signature
from bert_tf.tasks.spans.decoding import best_spans, decide
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
    recorded = ("stride", "max_query_length", "threshold", "n_best")

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
        check_count("n_best", n_best, model.num_spans, "the spans kept of a window")
        self.stride, self.max_query_length, self.n_best, self.threshold = stride, max_query_length, n_best, threshold

    @classmethod
    def of_task(cls, task, model, **settings):
        config, threshold = task.config, task.threshold if task.state.impossible else None
        from_task = {"stride": config.stride, "max_query_length": config.max_query_length, "threshold": threshold}
        return cls(model, task.tokenizer, **from_task, **{"n_best": min(config.n_best, 5)} | settings)

    def signatures(self):
        return {"serving_default": Signature(self.answer_question, {"question": TEXT, "context": TEXT})}

    def inputs_of(self, name, texts):
        return {"question": tf.constant(texts, tf.string), "context": tf.constant(texts[::-1], tf.string)}

    def answer_question(self, question, context):
        """What `serving_default` computes."""
        question, context = map(valid_utf8, check_as_many(text=question, context=context))
        questions = self.tokenizer.tokenize(question)[:, : self.max_query_length]
        ids, *characters = self.tokenizer.tokenize_with_offsets(context)
        lengths = tf.cast(questions.row_lengths(), tf.int32)
        rooms = rooms_for_contexts(lengths, self.tokenizer.layout, self.sequence_length)
        windows = cut_windows(tf.cast(ids.row_lengths(), tf.int32), rooms, self.stride)
        first = tf.gather(tf.cast(ids.row_starts(), tf.int32), windows.owners) + windows.begins
        beside, dynamic = tf.gather(questions, windows.owners), not self.static
        features = window_features(self.tokenizer, beside, ids.values, first, windows, self.sequence_length, dynamic)
        spans = self._model().num_spans
        outputs = self.bucketed_outputs(features, scores=[spans], starts=[spans], ends=[spans], null_scores=[])
        outputs |= {name: tf.cast(outputs[name], tf.int32) for name in ("starts", "ends")}  # exact below 2**24
        begins = first - context_offsets(self.tokenizer, tf.gather(lengths, windows.owners))
        characters = [tf.concat([of_tokens.values, [0]], 0) for of_tokens in characters]
        best = best_spans(context, windows.owners, outputs, begins, characters, self.n_best, spans)
        rules = (self._model().head.null_alone, self.threshold)
        answered, null_scores, null_odds = decide(best, windows.owners, outputs["null_scores"], *rules)
        del best["all"]
        return best | {
            "answer": tf.where(answered, best["answers"][:, 0], ""),
            "start": tf.where(answered, best["starts"][:, 0], -1),
            "end": tf.where(answered, best["ends"][:, 0], -1),
            "score": best["scores"][:, 0],
            "null_score": null_scores,
            "null_odds": tf.cast(null_odds, tf.float32),
        }
