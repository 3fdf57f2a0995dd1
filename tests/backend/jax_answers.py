"""What test_jax.py asks of JAX, all in one process: prints the results of the functions `of_...` as a dict in JSON.

KERAS_BACKEND=jax python tests/backend/jax_answers.py [of_compilations]
"""

import json
import sys
from pathlib import Path

import jax
import keras
import numpy as np
from jax import numpy as jnp
from keras import ops

from bert_tf.backend import AdamW, Dense, TrainableModel
from bert_tf.backend.jax import attention as module
from bert_tf.backend.jax.randomness import fold_in
from bert_tf.errors import UserError
from bert_tf.layers.attention import Attention
from bert_tf.layers.block_settings import AttentionSettings
from bert_tf.layers.internals import recording
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks import build_task
from bert_tf.tokenizers import load_tokenizer

SEEDS = [(0, 0), (5, -7), (-(2**31), 2**31 - 1), (123456789, 42)]


class Line(TrainableModel):
    def __init__(self, **options):
        super().__init__(**options)
        self.dense = Dense(1, **options)
        self.dense.build((None, 1))

    def loss_weights(self, features):
        return {"square": ops.sum(ops.ones_like(features["x"]))}

    def loss_sums(self, features, training):
        return {"square": ops.sum((self.dense(features["x"]) - features["y"]) ** 2)}, {}


class Student(Line):
    """Learns what a teacher, one number, says; `reads` are the variables that it says it reads."""

    def __init__(self, teacher, reads):
        super().__init__()
        self.teach, self.reads = (lambda: teacher.value), reads

    def outside_variables(self):
        return self.reads()

    def loss_sums(self, features, training):
        return super().loss_sums(features | {"y": self.teach() * features["x"]}, training)


def of_outside_variables():
    """Losses before and after the teacher changes: of a student that says what it reads, and of one that does not."""
    teacher, x, found = keras.Variable(np.zeros(1, "float32")), {"x": np.ones((4, 1), "float32")}, []
    for reads in (lambda: [teacher], list):
        teacher.assign([0.0])
        student = Student(teacher, reads)
        student.dense.kernel.assign([[0.0]])
        student.compile(AdamW(1e-9, weight_decay=0.0))
        losses = [student.fit(x, verbose=0).history["loss"][0]]
        teacher.assign([2.0])
        found.append([*losses, student.fit(x, verbose=0).history["loss"][0]])
    return found


def of_attention():
    """(the largest difference between attention in one operation and in many, of how many arrays, the biases' shapes)."""
    on_xla, calls = jax.nn.dot_product_attention, []

    def on_gpu(query, key, value, bias, scale, implementation):
        assert implementation == "cudnn" and (bias is None or bias.shape[2:] == (query.shape[1], key.shape[1]))
        calls.append(None if bias is None else bias.shape[:2])
        return on_xla(query, key, value, bias=bias, scale=scale, implementation="xla")

    jax.nn.dot_product_attention = on_gpu
    draw = np.random.default_rng(0)
    x, upstream = draw.normal(size=(2, 2, 6, 16)).astype("float32")
    padding = np.where(np.arange(6) < [[4], [6]], 0, -np.inf).astype("float32")[:, None, None]
    causal = np.where(np.tri(6), 0, -1e9).astype("float32")[None, None]
    differences = []
    cases = [(4, 0.1, False, padding), (2, 0.0, True, causal), (4, 0.0, True, None), (4, 0.1, True, padding)]
    for heads, dropout, training, mask in cases:
        layer = Attention(AttentionSettings(num_heads=4, num_key_value_heads=heads, dropout=dropout))
        layer(x)

        def total(x):
            return (layer(x, attention_mask=mask, training=training) * upstream).sum()

        if training and dropout:
            module._has_kernel = lambda query, key: True
            total(x)
            continue
        found = []
        for has_kernel in (True, False):
            module._has_kernel = lambda query, key: has_kernel
            answer = jax.jit(lambda x: layer(x, attention_mask=mask, training=training))
            found.append([answer(x), jax.jit(jax.grad(total))(x)])
        differences += [float(abs(a - b).max()) for a, b in zip(*found)]
    module._has_kernel = lambda query, key: True
    made = len(calls)
    several = Attention(AttentionSettings(num_heads=4))
    bias = np.ones((1, 4, 6, 6), "float32") * np.arange(6)
    outputs = [several(x, bias=bias), *several(x, return_attention_scores=True)]
    with recording() as record:
        outputs.append(several(x))
    empty = np.zeros((2, 4, 6, 4), "float32")
    outputs += several(x, cache=(empty, empty), cache_position=0)
    assert len(calls) == made, "one operation has no bias, probabilities, records or cache"
    assert len(outputs) == 6 and float(abs(outputs[0] - outputs[1]).max()) > 1e-3 and len(record.scores) == 1
    return max(differences), len(differences), calls


def of_seeds():
    return [fold_in(jnp.array(seed, "int32"), number).tolist() for number, seed in enumerate(SEEDS)]


def message(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except UserError as error:
        return f"{type(error).__name__}: {error}"


def of_mistakes():
    """(messages of refusals, the number of updates after a loss of NaN)."""
    rows = {"x": np.ones((4, 1), "float32"), "y": np.array([[1], [1], [1], [np.nan]], "float32")}
    found = [message(Line().compile, AdamW(1e-3), xla=False), message(Line(dtype="mixed_float16").compile, AdamW(1e-3))]
    model = Line()
    model.compile(AdamW(1e-3), steps_per_execution=2)
    found += [message(model.fit, rows, y=1), message(model.fit, rows, batch_size=1, shuffle=False, verbose=0)]
    return *found, int(model.optimizer.iterations.value), len(model.get_weights())


def of_calls():
    """The number of updates after three rows in calls of two, then of endless data in two epochs of three updates."""
    import tensorflow as tf

    model, rows = Line(), {"x": np.ones((3, 1), "float32"), "y": np.ones((3, 1), "float32")}
    model.compile(AdamW(1e-3), steps_per_execution=2)
    model.fit(rows, batch_size=1, verbose=0)
    updates = [int(model.optimizer.iterations.value)]
    model.fit(tf.data.Dataset.from_tensors(rows).repeat(), steps_per_epoch=3, epochs=2, verbose=0)
    return [*updates, int(model.optimizer.iterations.value)]


def of_compilations():
    """In static shapes and in buckets, the number of compilations after each epoch of a fine-tuning of a BERT."""
    compiled, found = [], []

    def count(name, seconds, **more):
        if name == "/jax/core/compile/backend_compile_duration":
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(count)
    tokenizer = load_tokenizer(Path(__file__).parents[1] / "fixtures/checkpoints/bert")
    config = BertConfig(tokenizer.vocabulary_size, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24)
    for static in (True, False):
        TrainableModel.static_shapes = static
        task = build_task({"kind": "classification", "sequence_length": 32}, tokenizer, backbone=config)
        examples = task.read([{"text": "a warm film " * (1 + n % 9), "label": "ab"[n % 2]} for n in range(52)])
        task = task.learn(examples)
        model = task.model(BertEncoder(config))
        model.compile(AdamW(1e-3))
        counts, before = [], len(compiled)

        def evaluate(epoch, logs):
            task.evaluate(model, examples)
            counts.append(len(compiled) - before)

        callback = keras.callbacks.LambdaCallback(on_epoch_end=evaluate)
        model.fit(task.dataset(examples, 8, training=True, seed=3), epochs=4, verbose=0, callbacks=[callback])
        found.append(counts)
    return found


QUICK = of_outside_variables, of_attention, of_seeds, of_mistakes, of_calls

if __name__ == "__main__":
    functions = [of_compilations] if sys.argv[1:] else QUICK
    print(json.dumps({function.__name__: function() for function in functions}))
