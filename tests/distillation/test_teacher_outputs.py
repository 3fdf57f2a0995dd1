"""What is kept of a teacher, and that it comes with the right example and token."""

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from tiny_distillation import make_encoder as encoder
from tiny_distillation import make_tokenizer as tokenizer

from bert_tf.distillation import TaskView, read_terms
from bert_tf.distillation.distiller import TEACHER_OUTPUTS, Distiller
from bert_tf.distillation.task_recipe import join_examples
from bert_tf.distillation.teacher_outputs import MISSING_LOGIT, TeacherOutputs
from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks import build_task

TEXTS = ["the film", "the film good", "a bad actor", "good", "the song nice a plot a great actor a dull song"] * 9


def made(kind):
    """(task, labelled examples) with sequences of several lengths."""
    task = build_task({"kind": kind, "sequence_length": 16}, tokenizer())
    if kind == "tagging":
        words = [text.split() for text in TEXTS]
        rows = {"words": words, "tags": [["B-X" if word == "film" else "O" for word in each] for each in words]}
    else:
        labels = [float(len(text)) for text in TEXTS] if kind == "regression" else [str(len(t) % 3) for t in TEXTS]
        rows = {"text": TEXTS, "label": labels}
    examples = task.read(rows)
    return task.learn(examples), examples


@pytest.mark.parametrize("kind", ["classification", "regression", "tagging"])
def test_each_prediction_gets_the_teachers(kind, tmp_path):
    task, examples = made(kind)
    teacher = task.model(encoder(seed=1))
    kept = TeacherOutputs(teacher, {"of": kind}, "float32", tmp_path).of(task, task.sequences(examples))
    task.add_features(examples, {TEACHER_OUTPUTS: kept})
    models, terms = (task.model(encoder(seed=2)), teacher), read_terms({"squared_error": 1})
    student, same = (Distiller(TaskView(model), None, terms, teacher.backbone.config) for model in models)
    for features in task.dataset(examples, 7, training=True, seed=3).take(4):
        outputs = teacher.outputs(features)
        assert features[TEACHER_OUTPUTS].shape == outputs.shape
        counted = features["label_weights"] > 0
        np.testing.assert_allclose(features[TEACHER_OUTPUTS][counted], outputs[counted], atol=1e-5)
        (sums,), (other,) = (m.loss_sums(features, training=False)[0].values() for m in (same, student))
        assert sums < 1e-8 < other
    if kind == "tagging":
        assert isinstance(kept, tf.RaggedTensor)


def test_marked_words_and_both_orders_of_a_pair(tmp_path):
    """What a teacher reads beside the tokens; and that a student equal to its teacher has nothing to learn from its layers."""
    words = build_task({"kind": "word_pair", "sequence_length": 16}, tokenizer())
    row = {"sentence1": "a good film", "start1": 7, "end1": 11, "sentence2": "bad film", "start2": 4, "end2": 8}
    examples = words.read([row | {"label": "true"}, row | {"label": "false"}])
    teacher = words.model(encoder(seed=1))
    kept = TeacherOutputs(teacher, {}, "float32", tmp_path).of(words, words.sequences(examples))
    features = next(iter(words.dataset(examples, 2, training=False)))
    np.testing.assert_allclose(kept, teacher.outputs(features), atol=1e-5)

    task = build_task({"kind": "classification", "sequence_length": 16, "decoder": {"pair_order": "both"}}, tokenizer())
    examples = task.read({"text": ["the film"] * 2, "text_pair": ["a bad actor", "good"], "label": ["0", "1"]})
    task = task.learn(examples)
    features = next(iter(task.dataset(examples, 2, training=False)))
    models = [task.model(encoder(seed=1)) for _ in range(2)]
    models[1].set_weights(models[0].get_weights())
    terms = read_terms({"minilm": 1, "minilm2": {"relation_heads": 4}})
    model = Distiller(*map(TaskView, models), terms, models[1].backbone.config)
    for name, value in model.loss_sums(features, training=False)[0].items():
        assert abs(float(value)) < 1e-5, name


def test_outputs_of_another_teacher_are_computed_again(tmp_path):
    task, examples = made("classification")
    models, sequences = [task.model(encoder(seed=seed)) for seed in (1, 2)], task.sequences(examples)
    first = TeacherOutputs(models[0], {"of": 1}, "float16", tmp_path).of(task, sequences)
    assert first.dtype == np.float16
    np.testing.assert_array_equal(TeacherOutputs(models[1], {"of": 1}, "float16", tmp_path).of(task, sequences), first)
    for key, dtype in (({"of": 2}, "float16"), ({"of": 1}, "float32")):  # another teacher; another precision
        found = TeacherOutputs(models[1], key, dtype, tmp_path).of(task, sequences)
        assert found.dtype == dtype and not np.array_equal(found, first)


@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_the_largest_outputs_alone(kind, tmp_path):
    task, examples = made(kind)
    teacher, sequences = task.model(encoder(seed=1)), task.sequences(examples)

    def values(top_k, folder=tmp_path):
        found = TeacherOutputs(teacher, {}, "float32", folder, top_k).of(task, sequences)
        return found.flat_values.numpy() if kind == "tagging" else found

    every, largest = values(None, tmp_path), values(1, tmp_path)
    assert every.shape == largest.shape and every.shape[1] > 1
    best = every.argmax(axis=1)[:, None]
    np.testing.assert_array_equal(np.take_along_axis(largest, best, 1), np.take_along_axis(every, best, 1))
    assert ((largest != every).sum(axis=1) == every.shape[1] - 1).all() and largest.min() == MISSING_LOGIT
    np.testing.assert_array_equal(values(1, tmp_path), largest)  # as they were kept
    stored = load_file(tmp_path / "teacher" / "00000.safetensors")
    assert stored["values"].shape == stored["classes"].shape == (len(every), 1)
    np.testing.assert_array_equal(values(every.shape[1]), every)


def test_numbers_too_large_for_float16(tmp_path):
    task, examples = made("regression")
    teacher = task.model(encoder())
    next(v for v in teacher.head.weights if v.path.endswith("bias") and v.shape == (1,)).assign([1e6])
    with pytest.raises(DataError, match="not finite as float16; set teacher.cache=float32"):
        TeacherOutputs(teacher, {}, "float16", tmp_path).of(task, task.sequences(examples))


@pytest.mark.parametrize("kind", ["classification", "regression", "tagging"])
def test_unlabelled_examples_have_no_hard_loss(kind):
    task, examples = made(kind)
    more = task.read(TEXTS[:6] if examples.texts else [text.split() for text in TEXTS[:6]], labelled=False)
    both = join_examples([examples, type(more)(**{**vars(more), "labels": task.placeholder_labels(more)})])
    sequences = task.sequences(both)
    flags = (sequences.examples_of_sequences() < len(examples)).astype(np.float32)
    assert (len(both), int(flags.sum())) == (len(examples) + 6, len(examples))
    task.add_features(both, {"labelled": flags, TEACHER_OUTPUTS: np.zeros((len(both), 1), "float32")})
    model = task.model(encoder())
    distiller = Distiller(TaskView(model), None, read_terms({"hard_labels": 1}), model.backbone.config)

    def total(examples):
        found = [0.0, 0.0]
        for features in task.dataset(examples, 64):
            found[0] += float(distiller.loss_sums(features, training=False)[0]["label"])
            found[1] += float(distiller.loss_weights(features)["label"])
        return found

    assert total(both) == pytest.approx(total(examples), rel=1e-5)


def test_a_model_without_outputs_is_refused():
    task = build_task({"kind": "question_answering", "sequence_length": 32, "impossible_questions": False}, tokenizer())
    with pytest.raises(ConfigError, match="cannot be distilled"):
        TaskView(task.make_model(encoder()))
