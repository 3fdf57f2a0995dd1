"""The whole train step of every objective, optimizer included, is one XLA program of static shapes.

What this proves: forward, backward, dropout, clip and update hold no operation that XLA has not (no
strings, no host operations), no size that depends on the data, and no type that a TPU has not; and, for
the one that is executed, that the program computes what the graph does. What it does not: that a TPU
runs it. The compiler here is the CPU's, there is one replica (its sums over replicas are left out), and
precision on a TPU is another.
"""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from sample_corpus import DETECTION

from bert_tf import config
from bert_tf.models.families import build_backbone, build_config
from bert_tf.models.task_heads import TaskHead
from bert_tf.objectives import OBJECTIVES
from bert_tf.tasks.heads import Classifier
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training import tpu
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.pretraining import PretrainConfig

SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32}
BERT = SIZES | {"family": "bert", "max_positions": 32}
PERMUTATION = {"name": "permutation_lm", "memory_length": 8, "permutation": {"permutation_size": 8}}
#: With one optimizer each, and one with micro-batches.
PRETRAINING = {
    "masked_lm": {"model": BERT, "objective": {"span_boundary": True, "masking": {"strategy": "span"}}},
    "replaced_token_detection": {
        "model": BERT | {"family": "electra", "embedding_size": 8}, "objective": DETECTION,
        "optimizer": {"name": "lamb", "bias_correction": True},
    },
    "permutation_lm": {
        "model": SIZES | {"family": "xlnet"}, "objective": PERMUTATION, "train": {"accumulation_steps": 2},
    },
}  # fmt: skip
WORDS = [f"w{i}" for i in range(30)]
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *(f"##p{i}" for i in range(10))])
# All of them are in TensorFlow's kTpuAllTypes (tpu_defs.h); float64 is too, and slow.
TPU_TYPES = {"pred", "u16", "s32", "u32", "s64", "u64", "f32"}


class OneCore(tf.distribute.OneDeviceStrategy):
    """Stands in for the strategy of a TPU with one core."""


@pytest.fixture
def core(monkeypatch):
    """The strategy of a machine whose TPU has one core, as the code sees it."""
    monkeypatch.setattr(tf.distribute, "TPUStrategy", OneCore)
    core = OneCore("CPU:0")
    with core.scope():
        yield core


def experiment(row):
    settings = {"optimizer": {"learning_rate": 1e-2, "warmup_steps": 0}} | PRETRAINING[row]
    return config.build(PretrainConfig, settings)


def corrupted(settings):
    """A batch of pairs as the reader gives it, made the features of an objective."""
    random = np.random.default_rng(0)
    ids = random.integers(5, 45, (8, 32)).astype("int32")
    ids[:, 0], ids[:, [15, 27]], ids[:, 28:] = 2, 3, 0
    segments = np.repeat([0, 1, 0], [16, 12, 4])[None].repeat(8, 0).astype("int32")
    batch = {"token_ids": ids, "segment_ids": segments, "padding_mask": ids != 0, "example_index": np.arange(8)}
    batch |= {"pair_labels": random.integers(0, 2, 8).astype("int32"), "pair_weights": np.ones(8, "float32")}
    batch["epoch"] = np.zeros(8, "int64")
    objective = OBJECTIVES[settings.objective.name]
    corrupt = objective.corruption_class(TOKENIZER, getattr(settings.objective, objective.corruption_section))
    return corrupt({name: tf.constant(value) for name, value in batch.items()}, 7)


def pretraining(row):
    """(a compiled objective, its features)."""
    keras.utils.set_random_seed(1)
    settings = experiment(row)
    model_config = build_config(settings.model, TOKENIZER.vocabulary_size, TOKENIZER.pad_id)
    chosen = settings.objective.for_shards({"format": "segment_pair", "pair": "next_sentence"}, 32)
    backbone = build_backbone(model_config, pooler=chosen.needs_pooler)
    model = OBJECTIVES[chosen.name].model_class.from_settings(backbone, chosen)
    optimizer = make_optimizer(settings.optimizer, 10)
    model.compile(optimizer, accumulation_steps=settings.train.accumulation_steps, seed=3)
    return model, corrupted(settings)


def specs(features):
    return {name: tf.TensorSpec(value.shape, value.dtype) for name, value in features.items()}


def check_program(core, model, features):
    """Lowers the train step for a batch of that form, and looks at the program."""
    assert model.distribute_strategy is core
    tpu.check_elements(specs(features))
    model.optimizer.build(model.trainable_variables)
    step = tf.function(model._update, jit_compile=True)
    program = core.run(lambda: step.experimental_get_compiler_ir(features)(stage="hlo"))
    assert "[<=" not in program and "custom-call" not in program  # sizes bounded by data; code of a CPU alone
    assert set(re.findall(r"\b([a-z]+[0-9]+|pred)\[", program)) <= TPU_TYPES
    # Out come sums, norm and verdict, the step counter, and each variable with its two moments.
    result = re.search(r"ENTRY .*?ROOT [^\n]* tuple\(([^\n]*?)\)", program, re.DOTALL)[1]
    assert result.count("%") == 4 + 3 * len(model._with_gradient)
    return step


@pytest.mark.parametrize("row", [row for row in PRETRAINING if row != "masked_lm"])
def test_an_objective_is_one_program(core, row):
    model, features = pretraining(row)
    check_program(core, model, features)


def test_masked_lm_is_one_program_that_computes_what_the_graph_does(core):
    model, features = pretraining("masked_lm")
    assert {"masked_lm", "span_boundary", "pair"} == model.loss_weights(features).keys()
    compiled = check_program(core, model, features)
    variables = [*model.variables, *model.optimizer.variables]
    before = [v.numpy() for v in variables]
    results = []
    for step in (compiled, tf.function(model._update)):
        for variable, value in zip(variables, before):
            variable.assign(value)
        results.append([*core.run(step, [features]), *[v.numpy() for v in variables]])
    for xla, graph in zip(*results):  # dropout included: rates are 0.1
        np.testing.assert_allclose(xla, graph, rtol=1e-4, atol=1e-5)
    assert sum(np.abs(a - b).max() > 1e-3 for a, b in zip(results[0][3:], before)) > 25


@pytest.mark.parametrize("unit", ["token", "whole_word", "ngram"])
def test_other_units_of_masking_feed_the_same_program(unit):
    settings = config.build(PretrainConfig, {"model": BERT, "objective": {"masking": {"strategy": unit}}})
    span, other = specs(corrupted(experiment("masked_lm"))), specs(corrupted(settings))
    assert other.items() <= span.items()  # sentence order: the same features as next sentence, other labels
    assert span.keys() - other.keys() <= {"span_left", "span_right", "span_weights"}


def test_a_task_is_one_program(core):
    keras.utils.set_random_seed(1)
    encoder = build_backbone(build_config(BERT, TOKENIZER.vocabulary_size))
    model = Classifier(encoder, 3, head=TaskHead("tokens"))
    model.compile(make_optimizer(experiment("masked_lm").optimizer, 10))
    features = {"token_ids": tf.ones([4, 16], tf.int32), "segment_ids": tf.zeros([4, 16], tf.int32)}
    features |= {"padding_mask": tf.ones([4, 16], tf.bool)}
    features |= {"labels": tf.ones([4, 16], tf.int32), "label_weights": tf.ones([4, 16])}
    check_program(core, model, features)
