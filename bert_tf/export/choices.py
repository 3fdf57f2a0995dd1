"""Served multiple choice: a question with any number of options, and which of them answers it."""

import dataclasses

import tensorflow as tf

from bert_tf.export.requests import check_as_many, check_ids
from bert_tf.export.signatures import TEXT, TRIAL_TEXTS, ServingModule, Signature
from bert_tf.tasks.choices.option_rows import OptionRows


class ServedMultipleChoice(ServingModule):
    """Context, question and options to the best option.

    Inputs of `serving_default`:
        context, question: string [N]; either may be "".
        options: string [N, C], "" where a question has fewer than C options.

    Inputs of `ids`: `token_ids`, `segment_ids` int32 and `padding_mask` bool [N, C, S], a row for each option; one without
    a real token is absent.

    Outputs of both:
        label: int32 [N], the number of the most probable option from 0; -1 for a question without an option.
        probabilities: float32 [N, C]; 0 for absent options.

    Output of `serving_default` alone:
        answer: string [N], the text of the most probable option; "" for a question without an option.

    Args:
        model: a `MultipleChoice`.
        tokenizer, sequence_length, static: as in `ServingModule`. `static` fixes the length of the rows; the number of
            options is free.
        rows: the `OptionRows` of the task.

    Raises:
        ConfigError: `rows` leave no room for a context.

    Example:
        module = ServedMultipleChoice(MultipleChoice(encoder), tokenizer, sequence_length=32)
        module.answer_text(["the film is a"], [""], [["good one", "bad one", ""]])["probabilities"]  # [1, 3]
    """

    def __init__(self, model, tokenizer, sequence_length=128, static=False, rows=OptionRows()):
        super().__init__(model, tokenizer, sequence_length, static=static)
        rows.check(tokenizer.layout, sequence_length)
        self.rows = rows

    @classmethod
    def of_task(cls, task, model, **settings):
        return cls(model, task.tokenizer, rows=task.rows, **settings)

    def signatures(self):
        texts = {"context": TEXT, "question": TEXT, "options": tf.TensorSpec([None, None], tf.string)}
        shape = [None, None, self.sequence_length if self.static else None]
        dtypes = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}
        ids = {name: tf.TensorSpec(shape, dtype) for name, dtype in dtypes.items()}
        return {"serving_default": Signature(self.answer_text, texts), "ids": Signature(self.answer_ids, ids)}

    def call_model(self, features):
        """{"score": float32 [M]} of the rows [M, S] of single options."""
        return {"score": self._model().outputs(features)[:, 0]}

    def answer_text(self, context, question, options):
        context, question, options = check_as_many(context=context, question=question, options=options)
        mask = tf.strings.strip(options) != ""
        features = self._rows(context, question, options, mask)
        answer = self._best(self.bucketed_output(features, "score", []), mask)
        chosen = tf.gather(
            tf.pad(options, [[0, 0], [0, 1]], constant_values=""), tf.maximum(answer["label"], 0), batch_dims=1
        )
        return answer | {"answer": tf.where(answer["label"] < 0, "", chosen)}

    def answer_ids(self, **features):
        shape = tf.shape(features["token_ids"])
        rows = {name: tf.reshape(x, [tf.shape(x)[0] * tf.shape(x)[1], tf.shape(x)[2]]) for name, x in features.items()}
        rows = check_ids(rows, self.tokenizer.vocabulary_size, self.num_segments)
        mask = tf.reshape(tf.reduce_any(rows["padding_mask"], axis=1), shape[:2])
        rows = {name: tf.boolean_mask(x, tf.reshape(mask, [-1])) for name, x in rows.items()}
        return self._best(self.bucketed_output(rows, "score", []), mask)

    def _rows(self, context, question, options, mask):
        """The features [M, S] of the options that are there, one question after the other."""
        owner, tokenize = tf.where(mask)[:, 0], self.tokenizer.tokenize
        first = tf.gather(tokenize(self.rows.first_texts(context, question)), owner)
        texts = self.rows.second_texts(
            tf.gather(context, owner), tf.gather(question, owner), tf.boolean_mask(options, mask)
        )
        return self.rows.pack(self.tokenizer, first, tokenize(texts), self.sequence_length, dynamic=not self.static)

    def _best(self, scores, mask):
        """Scores [M] of the options that are there -> the answers of the questions."""
        present = tf.where(mask)
        logits = tf.fill(tf.shape(mask), tf.float32.min)
        logits = tf.tensor_scatter_nd_update(logits, present, scores)
        probabilities = tf.where(mask, tf.nn.softmax(logits), 0.0)
        padded = tf.pad(logits, [[0, 0], [0, 1]], constant_values=tf.float32.min)  # argmax of no column is an error
        some = tf.reduce_any(mask, axis=1)
        return {
            "label": tf.where(some, tf.argmax(padded, axis=-1, output_type=tf.int32), -1),
            "probabilities": probabilities,
        }

    def settings(self):
        return super().settings() | {"rows": dataclasses.asdict(self.rows)}

    def inputs_of(self, name, texts):
        texts = list(texts)
        options = [[text, texts[i - 1], *([b"one more"] if i % 3 else [""])] for i, text in enumerate(texts)]
        inputs = {
            "context": tf.constant(texts[::-1], tf.string),
            "question": tf.constant(["What is it?", ""] * len(texts), tf.string)[: len(texts)],
            "options": tf.reshape(tf.constant(options, tf.string), [len(texts), 3]),
        }
        if name != "ids":
            return inputs
        mask = tf.strings.strip(inputs["options"]) != ""
        rows = self._rows(inputs["context"], inputs["question"], inputs["options"], mask)
        owner, shape = tf.where(mask), tf.concat([tf.shape(mask), tf.shape(rows["token_ids"])[1:]], 0)
        return {n: tf.scatter_nd(owner, tf.cast(x, tf.int32), tf.cast(shape, tf.int64)) for n, x in rows.items()} | {
            "padding_mask": tf.scatter_nd(owner, tf.cast(rows["padding_mask"], tf.int32), tf.cast(shape, tf.int64)) > 0
        }

    def trial_inputs(self, name):
        return self.inputs_of(name, TRIAL_TEXTS * 2)
