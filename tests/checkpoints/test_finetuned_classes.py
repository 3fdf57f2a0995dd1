"""Hugging Face's fine-tuned classes of every family: read, run, written back (tests/golden/finetuned.py)."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from numeric import softmax
from opened import task_and_model
from published_models import FIXTURES, PAIR, SINGLE, assert_same_tensors, change_arrays, golden, published, write_task
from safetensors.numpy import load_file

import bert_tf
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.checkpoints.hugging_face import write_finetuned
from bert_tf.checkpoints.published_tasks import publish
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError
from bert_tf.export import export_run
from bert_tf.tasks import build_task
from bert_tf.tasks.spans.model import SpanModel
from bert_tf.training.starting import trained_config

FAMILIES = ("bert", "roberta", "albert", "electra", "distilbert", "xlnet", "modernbert", "gpt2", "gpt1")
KINDS = "SequenceClassification TokenClassification MultipleChoice QuestionAnswering QuestionAnsweringSimple".split()
ENDINGS = tuple(f"{kind}/config" for kind in KINDS)
CLASSES = [(f, key.removesuffix("/config")) for f in FAMILIES for key in sorted(golden(f)) if key.endswith(ENDINGS)]
AS_RUNS = ("BertForSequenceClassification", "ModernBertForTokenClassification", "ElectraForMultipleChoice")
CLASSES.remove(("xlnet", "XLNetForQuestionAnswering"))  # has a test of its own
LABELS = {"classification": ("neg", "pos", "LABEL_2"), "tagging": ("B-PER", "I-PER", "O")}


def features(arrays, name):
    result = {key: arrays[key].astype("int32") for key in ("token_ids", "segment_ids")}
    result["padding_mask"] = arrays["padding_mask"]
    if not name.endswith("MultipleChoice"):
        return result
    return {key: array[None] for key, array in result.items()} | {"option_mask": np.ones((1, 2), bool)}


def outputs(model, features):
    if isinstance(model, SpanModel):  # the logits of start and end, before the best spans are chosen
        hidden, _ = model._read(features, training=False)
        return np.stack(model.head._logits(hidden, features), axis=-1)
    found = model(features)
    return np.asarray(found["logits"] if "logits" in found else found["score"][:, None])


def check_logits(found, wanted, keep=...):
    np.testing.assert_allclose(found[keep], wanted[keep], atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("family, name", CLASSES)
def test_logits_there_and_back(family, name, tmp_path):
    folder, arrays = published(family, name, tmp_path / "theirs"), golden(family)
    loaded = bert_tf.load(folder)
    task, model = loaded.task, loaded.model
    assert loaded.report.unused == ()
    own = "modernbert" if family == "modernbert" else "bert"
    assert task.config.head.name == (own if task.kind == "question_answering" else "hugging_face")
    if task.kind == "question_answering":
        arrays[f"{name}/logits"] = np.stack([arrays[f"{name}/{end}_logits"] for end in ("start", "end")], axis=-1)
    keep = arrays["padding_mask"] if task.kind in ("tagging", "question_answering") else ...
    assert task.labels == LABELS.get(task.kind)
    found = outputs(model, features(arrays, name))
    check_logits(found, arrays[f"{name}/logits"], keep)
    if task.kind in ("classification", "regression"):
        for what, text in (("single", SINGLE), ("pair", PAIR)):
            # Tokenized here and by transformers.
            texts = [task.tokenizer.tokenize([part]) for part in ([text] if isinstance(text, str) else text)]
            packed = task.tokenizer.pack(*texts, sequence_length=16, dynamic=True)
            np.testing.assert_allclose(outputs(model, packed)[0], arrays[f"{name}/{what}_logits"], rtol=1e-4, atol=1e-4)

    ours, theirs = write_task(model, task, tmp_path / "ours"), json.loads((folder / "config.json").read_text())
    assert_same_tensors(tmp_path / "ours", folder)
    for key in ("architectures", "id2label", "label2id", "model_type", "classifier_pooling"):
        assert ours.get(key) == theirs.get(key), key
    types = {"classification": "single_label_classification", "regression": "regression"}
    assert ours.get("problem_type") == types.get(task.kind)
    again = bert_tf.load(tmp_path / "ours")
    assert (again.config, again.task.config) == (loaded.config, task.config)
    if name in AS_RUNS:
        check_run(loaded, found, arrays, name, tmp_path)
        assert_same_tensors(tmp_path / "of_run", folder)


def test_xlnet_s_joint_spans_there_and_back(tmp_path):
    name, arrays = "XLNetForQuestionAnswering", golden("xlnet")
    folder = published("xlnet", name, tmp_path / "theirs")
    bert_tf.load(folder).save(tmp_path / "run", format="run")
    task, model = task_and_model(tmp_path / "run")
    assert (task.kind, task.head, task.threshold, model.at_end) == ("question_answering", "xlnet", 0.0, True)
    rows = features(arrays, name)
    hidden, null = model._read(rows, training=False)
    allowed = null | tf.constant(rows["segment_ids"] == 1)
    start = model.head.masked(model.head._start_logits(hidden), allowed)
    chosen = hidden[:, 5:6]  # START of tests/golden/finetuned.py
    found = {
        "start_logits": start,
        "end_logits": model.head.masked(model.head.end_logits(hidden, chosen)[:, 0], allowed),
        "answer_logits": model.head.null_logits(hidden, null, start, False),
    }
    for key, value in found.items():
        np.testing.assert_allclose(value, arrays[f"{name}/{key}"], rtol=1e-4, atol=1e-4, err_msg=key)
    bert_tf.load(tmp_path / "run").save(tmp_path / "ours", "hf")
    assert_same_tensors(tmp_path / "ours", folder)
    ours = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert ours["architectures"] == [name]


def check_run(loaded, found, arrays, name, folder):
    """A run of the model has its outputs; it answers with the probabilities that transformers has, and is written."""
    loaded.save(folder / "run", format="run")
    task, model = task_and_model(folder / "run")
    np.testing.assert_array_equal(outputs(model, features(arrays, name)), found)
    if task.kind == "classification":
        for what, text in (("single", SINGLE), ("pair", PAIR)):
            (answer,), wanted = task.predict(model, [text]), softmax(arrays[f"{name}/{what}_logits"])
            np.testing.assert_allclose([answer["probabilities"][label] for label in task.labels], wanted, atol=1e-5)
    bert_tf.load(folder / "run").save(folder / "of_run", "hf")


@pytest.mark.parametrize("family, name", [(f, n) for f, n in CLASSES if f.startswith("gpt") and "Sequence" in n])
def test_a_gpt_skips_its_padding_id_at_the_end_of_a_text(family, name, tmp_path):
    """What GPT-2 is padded with, <|endoftext|>, may end a text, too; Hugging Face's class reads the token before it."""
    ids = np.array([[7, 8, 9, 0], [7, 0, 8, 9], [0, 0, 0, 0]], "int32")
    rows = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids, bool)}
    wanted = golden(family)[f"{name}/ended_logits"]
    folder = published(family, name, tmp_path / "theirs")
    model = bert_tf.load(folder).model
    check_logits(outputs(model, rows), wanted)
    at_the_end = model.backbone.outputs_at(rows, np.zeros((3, 1), "int32"))["pooled_output"]
    np.testing.assert_allclose(at_the_end, model.backbone(rows)["pooled_output"], atol=1e-6)
    longer = {key: np.pad(array, [(0, 0), (0, 3)]) for key, array in rows.items()}
    np.testing.assert_allclose(outputs(model, longer)[:2], wanted[:2], atol=1e-5 * np.abs(wanted).max())
    bert_tf.load(folder).save(tmp_path / "run", format="run")
    np.testing.assert_array_equal(outputs(bert_tf.load(tmp_path / "run").model, rows), outputs(model, rows))
    # Without the setting the class reads the last token, and takes one text at a time.
    last = outputs(bert_tf.load(published(family, name, tmp_path / "none", pad_token_id=...)).model, rows)
    before = outputs(model, {key: array[:2, :3] for key, array in rows.items()})
    assert np.abs(last[0] - before[0]).max() > 1e-3
    np.testing.assert_allclose(last[1], wanted[1], atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("layout, written", [(None, "a new one"), ("none", 0)])
def test_what_ends_the_texts_of_a_gpt_is_not_its_padding_there(layout, written, tmp_path):
    """Fine-tuned here: a text is read at its end, <|endoftext|>, which Hugging Face's class would skip as padding."""
    source = open_source(published("gpt2", "GPT2ForSequenceClassification", tmp_path / "theirs"))
    source = dataclasses.replace(source, config=trained_config(source, whole=False))
    encoder, tokenizer = OpenedModel(source, pooler=True).backbone, source.tokenizer
    assert encoder.config.skipped_id is None
    settings = {"kind": "classification", "sequence_length": 16, "decoder": {"layout": layout}, "labels": ["a", "b"]}
    task = build_task(settings, tokenizer, backbone=encoder).with_state(pairs=False)
    (ids,) = next(iter(task.dataset(task.read({"text": ["the war"], "label": ["a"]}), 1)))["token_ids"].numpy().tolist()
    assert (ids[len(tokenizer.encode("the war"))], task.tokenizer.pad_id) == (0, 0)
    config = write_task(task.model(encoder), task, tmp_path / "ours")
    new = tokenizer.vocabulary_size
    assert (config["pad_token_id"], config["vocab_size"]) == ((new, new + 1) if written == "a new one" else (0, new))


@pytest.mark.parametrize("name, said", [
    ("GPT2ForSequenceClassification", ["ours cannot say task.head.dropout=0.5: .* continues with 0.0 there"]),
    ("GPT2ForTokenClassification", []),
])  # fmt: skip
def test_a_rate_of_the_head_that_a_class_does_not_have_is_said(name, said, tmp_path, caplog):
    loaded = bert_tf.load(published("gpt2", name, tmp_path / "theirs"))
    caplog.clear()
    task, weights = publish(loaded.task, loaded.model, tmp_path)
    task = dataclasses.replace(task, dropout=0.5)
    write_finetuned(loaded.encoder, weights, task, loaded.tokenizer, tmp_path / "ours")
    assert len(caplog.messages) == len(said)
    assert all(re.search(pattern, message) for pattern, message in zip(said, caplog.messages))


def test_what_the_configuration_says_of_a_task(tmp_path):
    name = "BertForSequenceClassification"
    folder = published("bert", name, tmp_path / "dropout", classifier_dropout=0.3, label2id=...)
    task, model = task_and_model(folder)
    assert task.config.head.dropout == model.head.dropout.rate == 0.3
    assert (task.pairs, task.config.sequence_length) == (None, 16)
    for change, error, message in (
        ({"problem_type": "regression"}, ConfigError, "'regression' with 3 outputs"),
        ({"id2label": {"0": "a", "2": "b"}}, ConfigError, "name the labels 0, 1, ... without a gap"),
        ({"id2label": {"0": "a", "1": "a"}}, ConfigError, "'a' twice"),
        ({"id2label": {"0": "a", "1": None, "2": "b"}}, ConfigError, "names the label 1 None; it must be a text"),
        ({"id2label": {"0": "a", "1": " ", "2": "b"}}, ConfigError, "names the label 1 ' '"),
        ({"id2label": ...}, DataError, r"'classifier.bias' has shape \(3,\)"),  # two labels without names
        ({"classifier_dropout": "0.1"}, ConfigError, "dropout rate '0.1'"),
        ({"architectures": ["BertForMaskedLM"]}, DataError, "holds no fine-tuned model"),
    ):
        shutil.rmtree(folder)
        folder = published("bert", name, tmp_path / "changed", **change)
        with pytest.raises(error, match=message):
            _ = bert_tf.load(folder).task, bert_tf.load(folder).model
        assert bert_tf.load(folder).family == "bert"  # the encoder is read in any case


def test_several_labels_for_one_text(tmp_path):
    problem = {"problem_type": "multi_label_classification"}
    folder = published("bert", "BertForSequenceClassification", tmp_path / "theirs", **problem)
    bert_tf.load(folder).save(tmp_path / "run", format="run")
    task, model = task_and_model(tmp_path / "run")
    assert (task.kind, task.labels) == ("multi_label", ("neg", "pos", "LABEL_2"))
    (answer,) = task.predict(model, [PAIR])
    sigmoid = 1 / (1 + np.exp(-golden("bert")["BertForSequenceClassification/pair_logits"].astype("float64")))
    np.testing.assert_allclose(list(answer["probabilities"].values()), sigmoid, atol=1e-5)
    assert answer["labels"] == [label for label, p in zip(task.labels, sigmoid) if p >= 0.5]
    bert_tf.load(tmp_path / "run").save(tmp_path / "ours", "hf")
    assert problem.items() <= json.loads((tmp_path / "ours" / "config.json").read_text()).items()


def test_older_checkpoints_have_a_pooler_that_tagging_does_not_read(tmp_path):
    folder = published("bert", "BertForTokenClassification", tmp_path / "older")
    pooler = load_file(published("bert", "BertForSequenceClassification", tmp_path / "other") / "model.safetensors")
    change_arrays(folder, lambda arrays: arrays | {name: a for name, a in pooler.items() if "pooler" in name})
    loaded = bert_tf.load(folder)
    loaded.save(tmp_path / "run", format="run")
    assert loaded.report.unused == ("bert.pooler.dense.bias", "bert.pooler.dense.weight")
    assert bert_tf.load(tmp_path / "run").model


def test_spanbert_is_published_as_bert(tmp_path):
    folder = published("bert", "BertForSequenceClassification", tmp_path / "theirs")
    bert_tf.load(folder, family="spanbert").save(tmp_path / "run", format="run")
    assert bert_tf.load(tmp_path / "run").family == "spanbert"
    found = outputs(bert_tf.load(tmp_path / "run").model, features(golden("bert"), ""))
    check_logits(found, golden("bert")["BertForSequenceClassification/logits"])


def test_the_commands_take_a_published_classifier(tmp_path, capsys):
    folder = str(published("roberta", "RobertaForSequenceClassification", tmp_path / "theirs"))
    assert main(["convert", folder, str(tmp_path / "run")]) == 0
    assert "task: classification with the labels neg, pos, LABEL_2\nnext: bert-tf predict" in capsys.readouterr().out
    assert main(["predict", folder, "--pair", *PAIR]) == 0
    logits = golden("roberta")["RobertaForSequenceClassification/pair_logits"]
    assert json.loads(capsys.readouterr().out)["label"] == ("neg", "pos", "LABEL_2")[np.argmax(logits)]
    assert main(["convert", str(tmp_path / "run"), str(tmp_path / "tf1"), "--to", "tf1"]) == 1
    assert "cannot be written as 'tf1'" in capsys.readouterr().err


def test_a_published_classifier_is_served_with_one_call(tmp_path):
    folder, arrays = published("bert", "BertForSequenceClassification", tmp_path / "theirs"), golden("bert")
    with pytest.raises(ConfigError, match="is not a run directory; say where the export is written"):
        export_run(folder, precision="float32")
    served = tf.saved_model.load(str(export_run(folder, tmp_path / "served", precision="float32"))).signatures
    single = served["serving_default"](text=tf.constant([SINGLE]))
    pair = served["pairs"](text=tf.constant(PAIR[:1]), text_pair=tf.constant(PAIR[1:]))
    for what, answer in (("single", single), ("pair", pair)):
        wanted = softmax(arrays[f"BertForSequenceClassification/{what}_logits"])
        np.testing.assert_allclose(answer["probabilities"][0], wanted, atol=1e-5)
        assert answer["labels"].numpy()[0].tolist() == [b"neg", b"pos", b"LABEL_2"]


def test_a_decoder_whose_texts_end_with_its_padding_token_gets_one_of_its_own(tmp_path):
    """GPT-2 pads with <|endoftext|>, which ends each text here: Hugging Face's class would read the token before it."""
    loaded = bert_tf.load(FIXTURES / "checkpoints" / "gpt2", pooler=True)
    settings = {"kind": "classification", "labels": ["a", "b"], "head": {"name": "hugging_face"}, "sequence_length": 16}
    task = build_task(settings, loaded.tokenizer, backbone=loaded.encoder)
    assert task.tokenizer.pad_id in task.tokenizer.layout.after_first
    model, texts = task.model(loaded.encoder), ["the people", "a tax of the states <|endoftext|>"]
    config = write_task(model, task, tmp_path / "ours")
    opened = bert_tf.load(tmp_path / "ours")
    tokenizer = opened.task.tokenizer
    assert config["pad_token_id"] == tokenizer.pad_id == loaded.tokenizer.vocabulary_size
    assert config["vocab_size"] == tokenizer.vocabulary_size
    rows = [t.pack(t.tokenize(texts), sequence_length=16, dynamic=True) for t in (task.tokenizer, tokenizer)]
    before, after = (row["token_ids"].numpy()[row["padding_mask"]].tolist() for row in rows)
    assert before == after and config["pad_token_id"] not in after
    np.testing.assert_allclose(outputs(opened.model, rows[1]), outputs(model, rows[0]), atol=1e-6)
