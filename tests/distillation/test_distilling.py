"""Distillation of a task, from the settings to a run that later commands take."""

import json
import shutil

import numpy as np
import pytest
from opened import task_and_model
from safetensors.numpy import load_file
from tiny_distillation import MODEL, experiment, make_tokenizer, write_pretrained, write_teacher
from training.snapshots import snapshot

import bert_tf
from bert_tf import config as configuration
from bert_tf.cli import distill as command
from bert_tf.cli.main import main
from bert_tf.compression.gate import outputs_of
from bert_tf.distillation import distill, teacher_outputs
from bert_tf.distillation.comparison import table_of
from bert_tf.distillation.task_recipe import TaskTeacherRecipe
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.export import export_run
from bert_tf.models.families import build_backbone, build_config
from bert_tf.tasks import build_task
from bert_tf.training.monitor import EpochProgress
from bert_tf.training.run_directory import RunDirectory


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    """Several files of a teacher's outputs, which do not depend on it: the rows are of one length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(teacher_outputs, "SHARD", 32)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distilling")
    assert write_teacher(folder)["dev"]["mean"]["accuracy"] == 1.0
    return folder


TERMS = "terms={hard_labels: 0.2, soft_labels: {weight: 0.8, temperature: 2}, hidden_states: 0.1}"


def with_texts(folder, *overrides):
    return experiment(folder, TERMS, f"data.unlabelled={folder / 'texts.txt'}", "train.epochs=3", *overrides)


@pytest.fixture(scope="module")
def distilled(folder):
    """(summary, run); "killed" is what a kill in the second epoch would leave of it."""
    path = folder / "distilled"
    with snapshot(EpochProgress, path, folder / "killed", lambda steps: steps.step == 11 + 4):
        return distill(with_texts(folder), path), RunDirectory(path)


def tensors(run):
    return load_file(run.checkpoints.latest()[0] / "model.safetensors")


def test_the_student_learns_the_teachers_labels_from_unlabelled_text(folder, distilled):
    """Half of the words of the dev file occur in the unlabelled texts alone."""
    summary, _ = distilled
    assert summary["dev"]["mean"]["accuracy"] == 1.0
    # The baseline guesses by the labelled examples alone.
    assert summary["dev"]["baselines"]["majority class"]["accuracy"] == 0.5


def test_there_are_no_baselines_without_labels_to_guess_by(folder, tmp_path):
    """The labels of the dev file itself would make the majority class an oracle."""
    config = with_texts(folder, "terms={soft_labels: 1}", "data.train=null", "train.epochs=1")
    summary = distill(config, tmp_path / "run")
    assert summary["dev"]["baselines"] == {}
    assert any("no baselines: they guess by the labels of data.train" in warning for warning in summary["warnings"])


def test_the_run_is_an_ordinary_one(folder, distilled):
    _, run = distilled
    task, model = task_and_model(run.path)
    assert (task.labels, task.config.sequence_length, model.backbone.config.num_layers) == (("0", "1"), 16, 2)
    answers = [answer["label"] for answer in task.predict(model, ["the song nice", "a film dull"])]
    assert answers == ["1", "0"]
    assert task.evaluate(model, task.read(folder / "dev.tsv"))["accuracy"] == 1.0
    assert tensors(run).keys() == {v.path for v in model.variables}, "neither the teacher nor a projection"
    assert (export_run(run.path, precision="float32") / "saved_model.pb").exists()


def test_the_table(distilled):
    summary, run = distilled
    teacher, student = summary["comparison"]
    assert (teacher["model"], student["model"]) == ("teacher", "student")
    assert teacher["dev"] == student["dev"] == 1.0
    model = bert_tf.load(run.path).model
    assert student["parameters"] == model.count_params() < teacher["parameters"]
    assert all(row["texts_per_second"] > 0 for row in (teacher, student))
    lines = table_of(summary["comparison"], "accuracy").text().splitlines()
    assert lines[0].split() == ["dev", "accuracy", "parameters", "MB", "texts/s"] and len(lines) == 3
    assert json.loads((run.path / "distillation.json").read_text())["rows"] == summary["comparison"]


def test_the_command(folder, distilled, tmp_path, capsys):
    """On the finished run it prints what was found."""
    summary, run = distilled
    configuration.save(with_texts(folder), tmp_path / "distill.yaml")
    (tmp_path / "teacher").symlink_to(folder / "teacher")  # a moved teacher is the same one
    paths = ["--config", tmp_path / "distill.yaml", "--teacher", tmp_path / "teacher", "--output", run.path]
    assert main(["distill", *map(str, paths)]) == 0
    printed = capsys.readouterr().out
    assert table_of(summary["comparison"], "accuracy").text() in printed and f"bert-tf export {run.path}" in printed
    assert main(["distill", "--student", "bert_mini", "--dev", "dev.tsv", "--output", str(tmp_path / "x")]) == 1


def test_what_the_flags_say(tmp_path, monkeypatch, capsys):
    """The sizes of --student stand in place of the recipe's; --set comes after them."""
    found = []
    for name in ("_distill", "_pretrain"):
        monkeypatch.setattr(command, name, lambda config, output: found.append(config))
    given = ["distill", "--teacher", "t", "--student", "bert_mini", "--output", str(tmp_path)]
    changes = ["--set", "model.dropout=0.2", "--set", "train.steps=40000"]
    assert not main([*given, "--config", "distill/mobilebert", "--shards", "s", *changes])
    assert not main([*given, "--train", "a.tsv", "--dev", "b.tsv", "--set", "student.model.dropout=0.2"])
    assert found[0].model == found[1].student.model == {"preset": "bert_mini", "dropout": 0.2}
    assert main([*given, "--shards", "s", "--train", "a.tsv"]) == 1
    assert "--train is for a teacher of a task, and --shards for pretraining" in capsys.readouterr().err


def test_a_decoder_with_an_auxiliary_loss_teaches(folder, tmp_path):
    """As configs/finetune/models/gpt1.yaml trains it; the student has no such loss."""
    tokenizer, sizes = make_tokenizer(), {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32}
    config = build_config({"family": "gpt2", "max_positions": 32} | sizes, tokenizer.vocabulary_size)
    settings = {"kind": "classification", "sequence_length": 16, "labels": ["0", "1"], "decoder": {"lm_weight": 0.5}}
    task = build_task(settings, tokenizer, backbone=config)
    model = task.model(build_backbone(config))
    bert_tf.save(model, None, tmp_path / "gpt", format="run", task=task)
    chosen = experiment(folder, f"teacher.path={tmp_path / 'gpt'}", "terms={soft_labels: 1}", "train.epochs=1")
    assert "accuracy" in distill(chosen, tmp_path / "run")["dev"]["mean"]
    with pytest.raises(ConfigError, match="task.decoder.lm_weight does not apply to distillation"):
        TaskTeacherRecipe(chosen).wrap(model)


def test_a_killed_run_continues_bitwise(folder, distilled, tmp_path):
    """In the second epoch, and with some of the teacher's outputs damaged or not there."""
    summary, uninterrupted = distilled
    shutil.copytree(folder / "killed", tmp_path / "run")
    kept = sorted((tmp_path / "run" / "teacher").glob("*.safetensors"))
    assert len(kept) > 3
    before = [path.read_bytes() for path in kept]
    kept[1].write_bytes(b"damaged")
    for path in kept[3:]:
        path.unlink()
    again = distill(with_texts(folder), tmp_path / "run")
    assert [path.read_bytes() for path in kept[:3]] == before[:3]
    run = RunDirectory(tmp_path / "run")
    assert run.metrics() == uninterrupted.metrics()
    ours, theirs = tensors(run), tensors(uninterrupted)
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert again["dev"] == summary["dev"]
    with pytest.raises(RunDirectoryError, match="its terms.hard_labels is 0.2, this one's 0.9"):
        distill(with_texts(folder, "terms.hard_labels=0.9"), tmp_path / "run")


def test_the_kept_outputs_are_the_teachers(folder, distilled):
    _, run = distilled
    task, teacher = task_and_model(folder / "teacher")
    kept = np.concatenate([load_file(path)["values"] for path in sorted(run.path.glob("teacher/*.safetensors"))])
    texts = (folder / "texts.txt").read_text().splitlines()
    examples = task.read({"text": texts}, labelled=False)
    expected = np.stack([o["logits"] for o in outputs_of(task, examples, teacher.infer, "teacher")])
    assert kept.dtype == np.float16 and len(kept) == 24 + len(texts)
    np.testing.assert_allclose(kept[24:], expected, rtol=2**-10, atol=1e-5)


@pytest.mark.slow
def test_layers_of_the_teacher_and_the_student_alone(folder, tmp_path):
    """Of a learning rate of zero: the checkpoint has the weights that the student started from."""
    chosen = experiment(
        folder, "student={layers: [1, 3]}", "optimizer.learning_rate=0.0", "train.epochs=1", "alone=true",
        "terms={hidden_cosine: 1, attention_scores: 1, minilm: 1, minilm2: {relation_heads: 4}, patient: 1}",
    )  # fmt: skip
    summary = distill(chosen, tmp_path / "run")
    ours, theirs = tensors(RunDirectory(tmp_path / "run")), tensors(RunDirectory(folder / "teacher"))
    for layer, there in ((0, 1), (1, 3)):
        name, other = (f"transformer_layer_{i}/attention/query/kernel" for i in (layer, there))
        assert np.array_equal(ours[name], theirs[other])
    for name in ("embeddings/token_embeddings", "pooler/dense/kernel"):
        assert np.array_equal(ours[name], theirs[name])
    assert not any("transformer_layer_2" in name for name in ours)
    assert [row["model"] for row in summary["comparison"]] == ["teacher", "student", "student alone"]
    alone = tensors(RunDirectory(tmp_path / "run" / "alone"))
    kernel = "transformer_layer_1/intermediate/kernel"
    assert np.array_equal(alone[kernel], ours[kernel])


@pytest.mark.slow
def test_terms_of_layers_alone(folder, tmp_path):
    """They do not train the head, so that the dev metric, here that of a class, judges neither epochs nor seeds."""
    settings = "terms={hidden_states: 1}", "optimizer.learning_rate=1e-5", "train.seed=0", "train.seeds=2"
    summary = distill(experiment(folder, *settings), tmp_path / "run")
    losses = {}
    for seed in ("seed-0", "seed-1"):
        run = RunDirectory(tmp_path / "run" / seed)
        first, last = run.metrics()
        assert first["accuracy"] == last["accuracy"]
        assert run.checkpoints.latest()[1]["step"] == last["step"]
        losses[seed] = last["train_loss"]
    assert summary["best"] == min(losses, key=losses.get)
    assert [row["dev"] for row in summary["comparison"]] == [1.0, None]
    assert table_of(summary["comparison"], "accuracy").text().splitlines()[2].split()[1] == "-"
    assert len(summary["warnings"]) == 1 and "the head is not trained: accuracy says nothing" in summary["warnings"][0]


@pytest.mark.parametrize(("overrides", "message"), [
    (["teacher.path=''"], "teacher.path must be given"), (["student={}"], "there is no student: set student.model"),
    (["student.layers=spread", "student.model={}"], "student.layers=spread needs the number"),
    (["student.layers=[0, 4]"], "student.layers names layer 4, but the teacher has the layers 0 to 3"),
    (["student.layers=[0]"], "student.layers names 1 layers, but the student has 2"),
    (["terms={hard_labels: 1}", "data.train=null", "data.unlabelled=a.txt"], "hard_labels needs"),
    (["init_from=x"], "student.model gives random weights, init_from those of another model"),
    (["teacher.top_k=1", "terms={squared_error: 1}"], "terms.squared_error compares all logits"),
    (["train.trainable.name=head"], "'train.trainable.name' is 'head'; known: all"),
    (["train.remat=true", "terms={patient: 1}"], "terms that compare layers cannot see them under"),
    (["train.early_stopping=1", "terms={patient: 1}"], "terms that compare layers alone do not improve the dev metric; remove train.early_stopping"),
    (["terms={progressive: 1}"], "terms.progressive trains one layer at a time and nothing else"),
    (["task.kind=tagging"], "task.kind=tagging, but the teacher's task is classification"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused(folder, tmp_path, overrides, message):
    with pytest.raises(ConfigError, match=message):
        distill(experiment(folder, *overrides), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_student_of_another_vocabulary_is_refused(folder, tmp_path):
    write_pretrained(tmp_path / "other", MODEL, more=["word"])
    with pytest.raises(DataError, match="has another vocabulary than the teacher"):
        distill(experiment(folder, f"init_from={tmp_path / 'other'}", "student={}"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
