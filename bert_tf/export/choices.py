"""Served multiple choice: a question with any number of options, and which of them answers it."""

import tensorflow as tf

from bert_tf.export.requests import check_as_many, check_ids, check_shapes
from bert_tf.export.signatures import TEXT, TRIAL_TEXTS, ServingModule, Signature
from bert_tf.tasks.choices.option_rows import OptionRows, fill_blank
from bert_tf.tasks.cloze.files import PLACEHOLDER


class ServedOptions(ServingModule):
    """Base class of models that score options, each in a row of its own.

    Inputs of `serving_default`: two texts, string [N], and the options, string [N, C], "" where there are fewer than C.
    A subclass names them in `inputs`.

    Inputs of `ids`: `token_ids`, `segment_ids` int32 and `padding_mask` bool [N, C, S], a row for each option; one
    without a real token is absent.

    Outputs of both:
        label: int32 [N], the number of the best option from 0; -1 where there is no option.
        probabilities: float32 [N, C]; 0 for absent options.

    Output of `serving_default` alone:
        answer: string [N], the text of the best option; "" where there is no option.

    A subclass defines `rows_of(context, question, options, mask)`, the features [M, S] of the options that count
    (`mask` [N, C]), and `compute(features)`, {"score": float32 [M]}.
    """

    #: The names of the three inputs of `serving_default`.
    inputs = ("context", "question", "options")
    #: From the scores [N, C] of the options, the lowest number for absent ones, to probabilities.
    activation = staticmethod(tf.nn.softmax)

    def signatures(self):
        texts = dict(zip(self.inputs, (TEXT, TEXT, tf.TensorSpec([None, None], tf.string))))
        ids = Signature(self.answer_ids, self.ids_specs(None, None))
        return {"serving_default": Signature(self._answer_named, texts), "ids": ids}

    def _answer_named(self, **texts):
        return self.answer_text(*check_as_many(**{name: texts[name] for name in self.inputs}))

    def answer_text(self, context, question, options):
        options = tf.convert_to_tensor(options)
        mask = self.present(question, options)
        features = self.rows_of(context, question, options, mask)
        answer = self._best(features, mask)
        filled = tf.pad(options, [[0, 0], [0, 1]], constant_values="")
        chosen = tf.gather(filled, tf.maximum(answer["label"], 0), batch_dims=1)
        return answer | {"answer": tf.where(answer["label"] < 0, "", chosen)}

    def present(self, question, options):
        """bool [N, C]: which options count: those that are not blank."""
        return tf.strings.strip(options) != ""

    def answer_ids(self, **features):
        features = check_shapes(features)
        shape = tf.shape(features["token_ids"])
        rows = {n: tf.reshape(x, tf.concat([[shape[0] * shape[1]], tf.shape(x)[2:]], 0)) for n, x in features.items()}
        rows = check_ids(rows, self.tokenizer.vocabulary_size, self.num_segments)
        mask = tf.reshape(tf.reduce_any(rows["padding_mask"], axis=1), shape[:2])
        rows = {name: tf.boolean_mask(x, tf.reshape(mask, [-1])) for name, x in rows.items()}
        return self._best(rows, mask)

    def _best(self, features, mask):
        """The rows [M, S] of the options that are there -> the answers of the questions."""
        scores, none = self.bucketed_outputs(features, score=[])["score"], tf.float32.min
        logits = tf.tensor_scatter_nd_update(tf.fill(tf.shape(mask), none), tf.where(mask), scores)
        padded = tf.pad(logits, [[0, 0], [0, 1]], constant_values=none)  # argmax of no column is an error
        best = tf.argmax(padded, axis=-1, output_type=tf.int32)
        label = tf.where(tf.reduce_any(mask, axis=1), best, -1)
        return {"label": label, "probabilities": tf.where(mask, self.activation(logits), 0.0)}

    def text_inputs(self, texts):
        """Inputs of `serving_default` with some texts in them: three tensors."""
        options = [[text, texts[i - 1], *([b"one more"] if i % 3 else [""])] for i, text in enumerate(texts)]
        questions = ["What is it?", ""] * len(texts)
        return (
            tf.constant(texts[::-1], tf.string),
            tf.constant(questions, tf.string)[: len(texts)],
            tf.reshape(tf.constant(options, tf.string), [len(texts), 3]),
        )

    def inputs_of(self, name, texts):
        inputs = self.text_inputs(list(texts))
        if name != "ids":
            return dict(zip(self.inputs, inputs))
        mask = self.present(*inputs[1:])
        rows = self.rows_of(*inputs, tf.ones_like(mask))
        ids = {n: tf.reshape(x, tf.concat([tf.shape(mask), tf.shape(x)[1:]], 0)) for n, x in rows.items()}
        return ids | {"padding_mask": ids["padding_mask"] & mask[:, :, None]}

    def trial_inputs(self, name):
        return self.inputs_of(name, TRIAL_TEXTS * 2)


class ServedMultipleChoice(ServedOptions):
    """Context, question and options to the best option.

    Inputs of `serving_default`: `context` and `question`, string [N], either may be ""; `options`, string [N, C]. Of
    `ids`, and the outputs: see `ServedOptions`. The probabilities of a question add up to 1.

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

    recorded = ("rows",)

    def __init__(self, model, tokenizer, sequence_length=128, static=False, rows=OptionRows()):
        super().__init__(model, tokenizer, sequence_length, static=static)
        rows.check(tokenizer.layout, sequence_length)
        self.rows = rows

    @classmethod
    def of_task(cls, task, model, **settings):
        return cls(model, task.tokenizer, rows=task.rows, **settings)

    def compute(self, features):
        return {"score": self._model().outputs(features)[:, 0]}

    def rows_of(self, context, question, options, mask):
        owner, tokenize = tf.where(mask)[:, 0], self.tokenizer.tokenize
        first = tf.gather(tokenize(self.rows.first_texts(context, question)), owner)
        context, question = tf.gather(context, owner), tf.gather(question, owner)
        texts = self.rows.second_texts(context, question, tf.boolean_mask(options, mask))
        return self.rows.pack(self.tokenizer, first, tokenize(texts), self.sequence_length, dynamic=not self.static)


class ServedReCoRD(ServedOptions):
    """Passage, query and entities to the entity that fills the query's placeholder.

    Inputs of `serving_default`: `passage`, string [N]; `query`, string [N], with "@placeholder" in it; `entities`,
    string [N, C]. Of `ids`, and the outputs: see `ServedOptions`. Each entity has a probability of its own; they do not add up
    to 1. A query without a placeholder has no answer, as one without entities.

    Args:
        model: a `Classifier` of two units.
        tokenizer, sequence_length, static: as in `ServingModule`.

    Example:
        module = ServedReCoRD(Classifier(encoder, 2), tokenizer, sequence_length=32)
        module.answer_text(["a film in paris"], ["it is in @placeholder"], [["paris", "film"]])["answer"]  # [1]
    """

    inputs = ("passage", "query", "entities")
    activation = staticmethod(tf.nn.sigmoid)

    def present(self, question, options):
        has_placeholder = tf.strings.regex_full_match(question, f"(?s).*{PLACEHOLDER}.*")
        return super().present(question, options) & has_placeholder[:, None]

    def rows_of(self, context, question, options, mask):
        owner, tokenize = tf.where(mask)[:, 0], self.tokenizer.tokenize
        queries = tf.gather(question, owner)
        queries = fill_blank(queries, PLACEHOLDER, tf.boolean_mask(options, mask), queries)
        return self._pack(tf.gather(tokenize(context), owner), tokenize(queries))

    def compute(self, features):
        logits = self._model().outputs(features)
        return {"score": logits[:, 1] - logits[:, 0]}

    def text_inputs(self, texts):
        context, question, options = super().text_inputs(texts)
        return context, tf.strings.join([question, f" It is {PLACEHOLDER}."]), options
