"""Training under `KERAS_BACKEND=jax`: the numbers of TensorFlow."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import fine_tuned_tasks
import keras
import numpy as np
import pytest
import tensorflow as tf
from twelve_steps import results

from bert_tf.backend.tensorflow.randomness import fold_in

ROOT = Path(__file__).parents[2]
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs the extra: pip install -e '.[jax]'"
)


def run_on_jax(program, *arguments, devices=1, cache=None):
    """What a program prints as JSON, on JAX with so many devices; arguments as of `on_jax`."""
    done = on_jax([*program, *arguments], devices, cache)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def on_jax(command, devices=1, cache=None):
    """The finished process of a program of Python; `cache`: a folder of compiled programs, which several share."""
    environment = os.environ | jax_environment(devices, cache)
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)


def jax_environment(devices, cache=None):
    kept = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"} if cache else {}
    return kept | {
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # compiling is what takes time
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }


@pytest.mark.slow
@needs_jax
def test_twelve_updates_of_every_family_and_objective_are_those_of_tensorflow(tmp_path):
    """Losses and metrics, weights, and the optimizer's state; also where there is dropout, and in micro-batches."""
    # Pure Keras: nothing of TensorFlow is imported, which machines for JAX do not have.
    assert run_on_jax([Path(__file__).parent / "twelve_steps.py"], tmp_path / "jax.npz") == ["jax"]
    expected = results()
    with np.load(tmp_path / "jax.npz") as file:
        assert file.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(file[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
    losses = {name: value for name, value in expected.items() if name.endswith("/loss")}
    assert len(losses) == 17 and all(value[-1] < value[0] for value in losses.values())


@pytest.mark.slow
@needs_jax
def test_eight_devices_train_as_one(tmp_path):
    """With dropout, in micro-batches that are divided over the devices too, and with a clip of the whole gradient.

    Of some the weights are divided over two devices each, and the batch over four.
    """
    whole, divided = ("bert", "gpt2"), ("modernbert", "t5")
    names = [*whole, *(f"divided:{name}" for name in divided)]
    run_on_jax([Path(__file__).parent / "twelve_steps.py"], tmp_path / "eight", *names, devices=8)
    expected = results(whole) | {f"divided:{name}": value for name, value in results(divided).items()}
    with np.load(tmp_path / "eight.npz") as file:
        assert file.keys() == expected.keys() and {name.split("/")[0] for name in file} == set(names)
        for name, value in expected.items():
            np.testing.assert_allclose(file[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
@needs_jax
def test_fine_tuned_tasks_answer_as_on_tensorflow():
    """Trained with dropout on what tf.data gives, evaluated, and asked."""
    found = run_on_jax([Path(__file__).parent / "fine_tuned_tasks.py"])
    expected = json.loads(json.dumps(fine_tuned_tasks.results()))
    assert found.keys() == expected.keys() == fine_tuned_tasks.TASKS.keys()
    for kind in expected:
        pairs = zip(keras.tree.flatten(found[kind]), keras.tree.flatten(expected[kind]), strict=True)
        for on_jax, on_tensorflow in pairs:
            assert on_jax == (
                pytest.approx(on_tensorflow, abs=1e-4) if isinstance(on_tensorflow, float) else on_tensorflow
            ), kind


OUTSIDE = """
import json
import keras
import numpy as np
from keras import ops
from bert_tf.backend import AdamW, Dense, TrainableModel

class Student(TrainableModel):
    def __init__(self, reads):
        super().__init__()
        self.dense, self.reads = Dense(1), reads
        self.dense.build((None, 1))

    def outside_variables(self):
        return self.reads()

    def loss_weights(self, features):
        return {"square": ops.sum(ops.ones_like(features["x"]))}

    def loss_sums(self, features, training):
        return {"square": ops.sum((self.dense(features["x"]) - teacher.value * features["x"])**2)}, {}

teacher = keras.Variable(np.zeros(1, "float32"))
x = {"x": np.ones((4, 1), "float32")}
found = []
for reads in (lambda: [teacher], lambda: []):
    teacher.assign([0.0])
    student = Student(reads)
    student.dense.kernel.assign([[0.0]])
    student.compile(AdamW(1e-9, weight_decay=0.0))
    losses = [student.fit(x, verbose=0).history["loss"][0]]
    teacher.assign([2.0])
    found.append([*losses, student.fit(x, verbose=0).history["loss"][0]])
print(json.dumps(found))
"""


@needs_jax
def test_variables_that_a_loss_reads_are_no_constants_of_the_program():
    """Or a teacher whose weights change would be followed as it was when the step was compiled."""
    named, unnamed = run_on_jax(["-c", OUTSIDE])
    assert named == pytest.approx([0.0, 4.0], abs=1e-6)
    assert unnamed == pytest.approx([0.0, 0.0], abs=1e-6)  # what `outside_variables` is for


COMPILED = """
import json
import jax
import keras
from bert_tf.backend import AdamW, TrainableModel
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks import build_task
from bert_tf.tokenizers import load_tokenizer
import sys
from pathlib import Path

compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **more: compiled.append(name) if name == "/jax/core/compile/backend_compile_duration" else None
)
TrainableModel.static_shapes = sys.argv[1] == "static"
tokenizer = load_tokenizer(Path(sys.argv[2]))
config = BertConfig(tokenizer.vocabulary_size, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24)
task = build_task({"kind": "classification", "sequence_length": 32}, tokenizer, backbone=config)
examples = task.read([{"text": "a warm film " * (1 + n % 9), "label": "ab"[n % 2]} for n in range(52)])
task = task.learn(examples)
model = task.model(BertEncoder(config))
model.compile(AdamW(1e-3))
counts = []

def evaluate(epoch, logs):
    task.evaluate(model, examples)
    counts.append(len(compiled))

model.fit(
    task.dataset(examples, 8, training=True, seed=3),
    epochs=4, verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=evaluate)],
)
print(json.dumps(counts))
"""


@pytest.mark.slow
@needs_jax
@pytest.mark.parametrize("shapes", ["static", "buckets"])
def test_nothing_is_compiled_after_the_first_epoch(shapes):
    """With a last batch that is short, and with the evaluation of each epoch."""
    counts = run_on_jax(["-c", COMPILED, shapes, Path(__file__).parents[1] / "fixtures/checkpoints/bert"])
    assert counts[0] > 0 and counts == [counts[0]] * 4


FUSED = """
import json
import jax
import numpy as np
from bert_tf.backend.jax import attention as module
from bert_tf.layers.attention import Attention
from bert_tf.layers.block_settings import AttentionSettings
from bert_tf.layers.internals import recording

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
for heads, dropout, training, mask in [(4, 0.1, False, padding), (2, 0.0, True, causal), (4, 0.0, True, None), (4, 0.1, True, padding)]:
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
        found.append([layer(x, attention_mask=mask, training=training), jax.grad(total)(x)])
    differences += [float(abs(a - b).max()) for a, b in zip(*found)]
module._has_kernel = lambda query, key: True
made = len(calls)
several = Attention(AttentionSettings(num_heads=4))
outputs = [several(x, bias=np.ones((1, 4, 6, 6), "float32") * np.arange(6)), *several(x, return_attention_scores=True)]
with recording() as record:
    outputs.append(several(x))
empty = np.zeros((2, 4, 6, 4), "float32")
outputs += several(x, cache=(empty, empty), cache_position=0)
assert len(calls) == made, "one operation has no bias, probabilities, records or cache"
assert len(outputs) == 6 and float(abs(outputs[0] - outputs[1]).max()) > 1e-3 and len(record.scores) == 1
print(json.dumps([max(differences), len(differences), calls]))
"""


@needs_jax
def test_attention_as_one_operation_has_the_numbers_of_many():
    """With the arguments that cuDNN takes, which the operation of XLA stands in for; dropout stays outside of it."""
    difference, count, calls = run_on_jax(["-c", FUSED])
    assert difference < 1e-6 and count == 6
    assert calls == [[2, 1], [2, 1], [1, 1], [1, 1], None, None]


SEEDS = """
import json
from jax import numpy as jnp
from bert_tf.backend.jax.randomness import fold_in
seeds = [(0, 0), (5, -7), (-(2**31), 2**31 - 1), (123456789, 42)]
print(json.dumps([fold_in(jnp.array(seed, "int32"), number).tolist() for number, seed in enumerate(seeds)]))
"""


@needs_jax
def test_seeds_are_those_of_tensorflow():
    seeds = [(0, 0), (5, -7), (-(2**31), 2**31 - 1), (123456789, 42)]
    expected = [fold_in(tf.constant(seed), number).numpy().tolist() for number, seed in enumerate(seeds)]
    assert run_on_jax(["-c", SEEDS]) == expected


ERRORS = """
import json
import numpy as np
from bert_tf.backend import AdamW, Dense, TrainableModel
from bert_tf.errors import UserError
from keras import ops

class Line(TrainableModel):
    def __init__(self, **options):
        super().__init__(**options)
        self.dense = Dense(1, **options)
        self.dense.build((None, 1))

    def loss_weights(self, features):
        return {"square": ops.sum(ops.ones_like(features["y"]))}

    def loss_sums(self, features, training):
        return {"square": ops.sum((self.dense(features["x"]) - features["y"])**2)}, {}

def message(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except UserError as error:
        return f"{type(error).__name__}: {error}"

rows = {"x": np.ones((4, 1), "float32"), "y": np.array([[1], [1], [1], [np.nan]], "float32")}
found = [message(Line().compile, AdamW(1e-3), xla=False), message(Line(dtype="mixed_float16").compile, AdamW(1e-3))]
model = Line()
model.compile(AdamW(1e-3), steps_per_execution=2)
found += [message(model.fit, rows, y=1), message(model.fit, rows, batch_size=1, shuffle=False, verbose=0)]
found.append([int(model.optimizer.iterations.value), len(model.get_weights())])
model = Line()  # a last call of one update, at the end of three
model.compile(AdamW(1e-3), steps_per_execution=2)
model.fit({name: values[:3] for name, values in rows.items()}, batch_size=1, verbose=0)
updates = [int(model.optimizer.iterations.value)]
import tensorflow as tf  # an endless dataset, of which an epoch is three updates, not four
endless = tf.data.Dataset.from_tensors({name: values[:3] for name, values in rows.items()}).repeat()
model.fit(endless, steps_per_epoch=3, epochs=2, verbose=0)
print(json.dumps([*found, updates + [int(model.optimizer.iterations.value)]]))
"""


@needs_jax
def test_what_cannot_be_right_is_an_error_under_jax_too():
    xla, half, labels, infinite, after, updates = run_on_jax(["-c", ERRORS])
    assert xla == "ConfigError: compile(xla=False): JAX always compiles; leave xla out"
    assert half.startswith("ConfigError: training in float16 needs TensorFlow")
    assert labels.startswith("ConfigError: a batch must be one dict of features")
    assert infinite.startswith("NonFiniteError: step 4: the sum of square is not finite")
    assert after == [4, 2] and updates == [3, 9]


@needs_jax
def test_commands_that_do_not_train_say_that_they_compute_on_tensorflow():
    done = on_jax(["-m", "bert_tf", "report", "nowhere"])
    trains = "pretrain, finetune, distill, benchmark, study"
    said = f"report computes on TensorFlow; KERAS_BACKEND=jax is for the commands that train ({trains})"
    assert done.returncode == 1 and said in done.stderr


REFUSED = """
import sys
from bert_tf.cli.main import main
for setting in sys.argv[2:]:
    assert main(["pretrain", "--shards", "none", "--output", sys.argv[1], "--set", setting]) == 1
"""


@needs_jax
def test_settings_that_jax_does_not_have_are_refused_before_anything_is_read(tmp_path):
    settings = {
        "train.xla=false": "JAX always compiles; leave train.xla out",
        "train.precision=mixed_float16": "set train.precision=mixed_bfloat16",
        "train.strategy=tpu": "JAX sees no TPU, only cpu",
        "train.strategy=multi_worker": "needs the environment variable TF_CONFIG",
    }
    done = on_jax(["-c", REFUSED, tmp_path / "run", *settings])
    assert done.returncode == 0, done.stderr[-3000:]
    messages = [line for line in done.stderr.splitlines() if line.startswith("bert-tf pretrain: ")]
    for message, said in zip(messages, settings.values(), strict=True):
        assert said in message
    assert not (tmp_path / "run").exists()
