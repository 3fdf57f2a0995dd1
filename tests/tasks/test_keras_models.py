"""Task models as Keras models: files, precisions, callbacks, LoRA; and from memory to a run and to Hugging Face's class.

What every task must keep is in `bert_tf.testing.check_task`, which tests/testing runs for each.
"""

import json
import shutil

import keras
import numpy as np
import pytest
import tiny

import bert_tf
from bert_tf.backend import AdamW
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import GenerationConfig, Restrictions, StopStrings
from bert_tf.models import GPT2Config, GPT2Decoder, enable_lora
from bert_tf.models.task_heads import Features, TaskHead
from bert_tf.tasks import Classifier, MultipleChoice, Regressor, SpanModel, TextToTextModel, build_task
from bert_tf.tasks.word_pairs.model import WordPairClassifier
from bert_tf.testing.task import check_same_model

TEXTS = {"text": ["a good film", "bad", "the plot was awful", "fine"], "label": ["x", "y", "y", "x"]}


def task_of(**settings):
    """(task, examples) of texts."""
    texts = TEXTS if "kind" not in settings else TEXTS | {"label": [1.0, 4.0, 2.0, 9.0]}
    return tiny.learned(texts, **{"sequence_length": 16, "head": {"dropout": 0.1}} | settings)


def batches(task, examples):
    return task.dataset(examples, 2, training=True)


def decoder(**kwargs):
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32, "initializer_range": 0.4}
    return GPT2Decoder(GPT2Config(tiny.tokenizer().vocabulary_size, 16, **sizes), **kwargs)


ROWS = {"token_ids": np.array([[5, 6, 7, 0]], "int32"), "padding_mask": np.array([[True, True, True, False]])}
ROWS |= {"segment_ids": np.zeros((1, 4), "int32")}
MARKED = ROWS | {"spans": np.array([[[0, 1], [1, 3]]], "int32")}
WINDOWS = ROWS | {"context_mask": ROWS["padding_mask"], "start_mask": ROWS["padding_mask"]}
OPTIONS = {name: value[None] for name, value in ROWS.items()} | {"option_mask": np.array([[True]])}
FROZEN = Features("scalar_mix", 1, 4, mix_at="both")


def writer(**kwargs):
    stop = StopStrings(("film",), tiny.tokenizer(), (0, 3))
    rules = GenerationConfig(max_new_tokens=6, stop_strings=("film",))
    return TextToTextModel(decoder(**kwargs), rules, Restrictions((3,), no_repeat_ngram=3), pad_id=0, ends=stop)


#: Name -> (function that makes a model, its features).
MODELS = {
    "tokens": (lambda **k: Classifier(tiny.encoder(pooler=False, **k), 3, 0.2, [1, 2, 3], 0.1, head=TaskHead("tokens")), ROWS),
    "pooler": (lambda **k: Regressor(tiny.encoder(pooler=False, **k), mean=2, head=TaskHead("pooled", activation="tanh")), ROWS),
    "bilstm": (lambda **k: Classifier(tiny.encoder(**k), 2, head=TaskHead("mean").above_bilstm(2, 3)), ROWS),
    "both_orders": (lambda **k: Classifier(tiny.encoder(**k), 2, both_orders=tiny.tokenizer().layout), ROWS),
    "decoder": (lambda **k: Classifier(decoder(**k), 2, linear_gain=True), ROWS),
    "options": (lambda **k: MultipleChoice(decoder(**k), lm_weight=0.5), OPTIONS),
    "words": (lambda **k: WordPairClassifier(tiny.encoder(**k), 2, pooling="attention"), MARKED),
    "words_of_a_frozen_model": (lambda **k: WordPairClassifier(tiny.encoder(**k), 2, 0.3, head=TaskHead().on_features(FROZEN)), MARKED),
    "spans": (lambda **k: SpanModel(tiny.encoder(**k), "xlnet", n_best=2, beam=2, dropout=0.2), WINDOWS),
    "spans_of_a_frozen_model": (lambda **k: SpanModel(tiny.encoder(**k), "electra", n_best=2, features=FROZEN), WINDOWS),
    "stop_strings": (writer, ROWS),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_settings_come_back(name):
    make, features = MODELS[name]
    model = make()
    json.dumps(model.get_config())
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    check_same_model(clone, model, [features])
    if name == "stop_strings":
        assert clone.ends.strings == ("film",) and clone.ends.tokenizer.fingerprint == model.ends.tokenizer.fingerprint


@pytest.mark.parametrize(("name", "policy"), [
    ("pooler", "bfloat16"), ("words", "mixed_float16"), ("spans", "mixed_bfloat16"), ("stop_strings", "bfloat16"),
])  # fmt: skip
def test_a_model_has_the_precision_of_its_backbone_wherever_it_is_loaded(name, policy, tmp_path):
    make, features = MODELS[name]
    model = make(dtype=policy)
    assert model.dtype_policy.name == policy
    model.save(tmp_path / "model.keras")
    check_same_model(keras.saving.load_model(tmp_path / "model.keras"), model, [features])


def test_lora_is_merged_in_files(tmp_path):
    def answers(task, model):
        return np.array([answer["probabilities"]["x"] for answer in task.predict(model, TEXTS["text"])])

    task, _ = task_of()
    model = task.model(tiny.encoder())
    plain = answers(task, model)
    enable_lora(model.backbone, rank=2)
    for variable in model.backbone.trainable_variables:
        variable.assign(variable + 0.3)
    expected = answers(task, model)
    assert np.abs(expected - plain).max() > 0.01
    model.save(tmp_path / "model.keras")
    bert_tf.save(model, None, tmp_path / "hf", task=task)
    bert_tf.save(model, None, tmp_path / "run", format="run", task=task)
    loaded = {"keras": (task, keras.saving.load_model(tmp_path / "model.keras"))}
    for format in ("hf", "run"):
        opened = bert_tf.load(tmp_path / format)
        loaded[format] = opened.task, opened.model
    for name, (again, other) in loaded.items():
        np.testing.assert_allclose(answers(again, other), expected, atol=1e-5, err_msg=name)
        assert not [v.path for v in other.weights if "lora" in v.path]


@pytest.mark.parametrize("settings", [{}, {"kind": "regression"}, {"frozen_layers": {"name": "last", "lstm_units": 4}}])
def test_from_memory_to_a_run_and_to_hugging_faces_class(settings, tmp_path):
    task, _ = task_of(**settings)
    model = task.model(tiny.encoder())
    answers = task.predict(model, TEXTS["text"])
    bert_tf.save(model, None, tmp_path / "run", format="run", task=task)
    assert bert_tf.load(tmp_path / "run").predict(TEXTS["text"]) == answers
    if "frozen_layers" in settings:
        with pytest.raises(
            ConfigError, match="has other layers in its head .* fine-tune with task.head.name=hugging_face"
        ):
            bert_tf.save(model, None, tmp_path / "hf", task=task)
        return
    bert_tf.save(model, None, tmp_path / "hf", task=task)
    opened = bert_tf.load(tmp_path / "hf")
    assert opened.task.kind == task.kind
    name = "score" if task.kind == "regression" else "probability"
    for answer, expected in zip(opened.predict(TEXTS["text"]), answers, strict=True):
        assert answer[name] == pytest.approx(expected[name], 1e-5) and answer.keys() == expected.keys()


def test_tags_from_memory_leave_out_a_pooler_that_they_do_not_read(tmp_path):
    task = build_task({"kind": "tagging", "labels": ["A", "O"], "sequence_length": 16}, tiny.tokenizer())
    model = task.model(tiny.encoder())
    answers = task.predict(model, ["a good film"])
    for format in ("hf", "run"):
        bert_tf.save(model, None, tmp_path / format, format=format, task=task)
        opened = bert_tf.load(tmp_path / format)
        assert opened.predict(["a good film"])[0]["words"][0]["tag"] == answers[0]["words"][0]["tag"]
        assert opened.report.unused == ()
    with pytest.raises(DataError, match="no name for 'head/dense/.*give bert_tf.save the task of a fine-tuned model"):
        bert_tf.save(model, None, tmp_path / "no_task")
    with pytest.raises(ConfigError, match="the head of its task cannot be written as 'tf1'"):
        bert_tf.save(model, None, tmp_path / "tf1", format="tf1", task=task)


class Stop(keras.callbacks.Callback):
    """Interrupts the training after an epoch, after `BackupAndRestore` has written it."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise KeyboardInterrupt


def test_an_interrupted_training_goes_on_from_its_backup(tmp_path):
    task, examples = task_of()
    data = batches(task, examples)

    def trained(*others):
        model = task.model(tiny.encoder())
        model.compile(AdamW(1e-2), seed=3)
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
        model.fit(data, epochs=3, callbacks=[backup, *others], verbose=0)
        return model

    whole = trained()
    shutil.rmtree(tmp_path / "backup", ignore_errors=True)
    with pytest.raises(KeyboardInterrupt):
        trained(Stop())
    resumed = trained()
    for variable, other in zip(resumed.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(variable, other, err_msg=variable.path)


def test_a_frozen_backbone_is_frozen_when_it_is_loaded(tmp_path):
    task, examples = task_of()
    model = task.model(tiny.encoder())
    model.backbone.trainable = False
    model.compile(AdamW(1e-2))
    model.fit(batches(task, examples), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [v.path for v in loaded.trainable_variables] == ["head/dense/kernel", "head/dense/bias"]
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables) == 6
