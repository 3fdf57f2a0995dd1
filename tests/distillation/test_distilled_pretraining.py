"""Distillation in pretraining: DistilBERT's terms and TinyBERT's, on shards."""

import math
import shutil

import numpy as np
import pytest
from opened import encoder_and_tokenizer, objective_and_tokenizer
from safetensors.numpy import load_file
from tiny_distillation import BAD, GOOD, MODEL, REST, write_pretrained
from training.snapshots import snapshot

import bert_tf
from bert_tf import config as configuration
from bert_tf.cli.settings import apply_overrides
from bert_tf.distillation import Distiller, DistillPretrainConfig, MaskedLMView, distill_pretraining, read_terms
from bert_tf.distillation.distill_config import check_distilled_pretraining
from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.monitor import Monitor
from bert_tf.training.run_directory import RunDirectory
from tfrecords import MaskedLMCorruption, MaskingConfig, ShardReader, ShardsConfig, write_shards

DISTILBERT = "terms={soft_labels: {weight: 5, temperature: 2, divergence: true}, hard_labels: 2, hidden_cosine: 1}"


SHARDS = ShardsConfig(sequence_length=16, format="full_sentences")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distilled_pretraining")
    tokenizer = write_pretrained(folder / "teacher")
    words = [*GOOD, *BAD, *REST]
    random = np.random.default_rng(0)
    documents = ["\n".join(" ".join(random.choice(words, 8)) + "." for _ in range(12)) for _ in range(12)]
    (folder / "corpus.txt").write_text("\n\n".join(documents))
    write_shards(folder / "corpus.txt", folder / "shards", tokenizer, SHARDS, progress=False)
    return folder


def experiment(folder, *overrides):
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
    settings = {
        "model": {"family": "distilbert", "activation": "gelu_tanh", "dropout": 0.1} | sizes,
        "data": {"shards": str(folder / "shards")},
        "teacher": {"path": str(folder / "teacher")},
        "student": {"layers": "spread"},
        "objective": {"pair_task": "none"},
        "optimizer": {"learning_rate": 1e-2},
        "train": {"steps": 4, "batch_size": 8, "log_every": 2, "checkpoint_every": 2, "strategy": "one"},
    }
    return configuration.build(DistillPretrainConfig, apply_overrides(settings, [DISTILBERT, *overrides]))


def tensors(run):
    return load_file(run.checkpoints.latest()[0] / "model.safetensors")


LAYERS_TOO = ("predictions=all", "terms.hidden_states=0.1")


@pytest.fixture(scope="module")
def distilled(folder):
    """(run, metrics); "killed" is what a kill after the third step would leave of it."""
    with snapshot(Monitor, folder / "run", folder / "killed", lambda monitor: monitor.step == 3):
        return distill_pretraining(experiment(folder, *LAYERS_TOO), folder / "run")


def test_the_student_is_an_ordinary_run(distilled):
    run, metrics = distilled
    assert {"masked_lm_loss", "soft_labels_loss", "hidden_cosine_loss", "hidden_states_loss"} <= metrics.keys()
    weights = {"soft_labels": 5, "masked_lm": 2, "hidden_cosine": 1, "hidden_states": 0.1}
    total = sum(metrics[f"{name}_loss"] * weight for name, weight in weights.items())
    assert metrics["loss"] == pytest.approx(total, rel=1e-5)
    objective = bert_tf.load(run.path).objective
    assert type(objective.backbone.config).__name__ == "DistilBertConfig"
    encoder = bert_tf.load(run.path).encoder
    extra = tensors(run).keys() - {v.path for v in objective.variables}
    assert extra == {"hidden_states_projection/kernel", "hidden_states_projection/bias"}, "nothing of the teacher"
    kernel = "transformer_layer_1/attention/query/kernel"
    assert np.array_equal(next(v for v in encoder.variables if v.path == kernel), tensors(run)[kernel])


def test_progressive_transfer_trains_one_layer_after_the_other(folder):
    settings = ["model.family=bert", "student.layers=null", f"train.init_embeddings_from={folder / 'teacher'}"]
    settings += ["terms={progressive: {phase_steps: 8, earlier_rate: 0.01}}", "train.steps=16"]
    settings += ["train.log_every=8", "train.checkpoint_every=8"]
    run, _ = distill_pretraining(experiment(folder, *settings, "train.keep_checkpoints=5"), folder / "progressive")
    first, second = (load_file(file) for file in sorted(run.path.glob("checkpoints/*/model.safetensors")))
    teacher = {v.path: np.array(v) for v in bert_tf.load(folder / "teacher").objective.variables}
    kernel, table = "transformer_layer_{}/attention/query/kernel".format, "embeddings/token_embeddings"
    np.testing.assert_array_equal(second[table], teacher[table])
    assert np.abs(first["transformer_layer_0/attention/query/bias"]).max() > 0  # biases begin with zeros
    assert not first["transformer_layer_1/attention/query/bias"].any()
    step = [np.abs(second[kernel(i)] - first[kernel(i)]).max() for i in (0, 1)]
    assert 0 < step[0] < 0.02 * step[1]  # with 1 / 300 of the rate


@pytest.mark.slow
def test_the_teacher_is_on_every_device(folder, tmp_path):
    """XLA, which is on by default on several GPUs, cannot read weights of another device."""
    write_pretrained(tmp_path / "teacher", MODEL | {"num_layers": 1})
    settings = f"teacher.path={tmp_path / 'teacher'} train.steps=2 model.num_layers=1 model.dropout=0.0"
    settings = [*settings.split(), "model.attention_dropout=0.0", "terms={soft_labels: 1, hidden_states: 1}"]
    found = []
    for strategy, xla in (("one", "false"), ("mirrored", "true")):
        chosen = experiment(folder, *settings, f"train.strategy={strategy}", f"train.xla={xla}")
        found.append(distill_pretraining(chosen, tmp_path / strategy)[1])
    assert found[0]["loss"] == pytest.approx(found[1]["loss"], rel=1e-5)


def test_phases_fill_the_run(folder):
    settings = ["model.family=bert", "student.layers=null", "terms={progressive: {phase_steps: 3}}"]
    message = "phase_steps=3 for each of 2 layers are 6 updates, and train.steps=4; make them"
    with pytest.raises(ConfigError, match=message):
        distill_pretraining(experiment(folder, *settings), folder / "refused")
    assert not (folder / "refused").exists()


def test_a_killed_run_continues_bitwise(folder, distilled, tmp_path):
    shutil.copytree(folder / "killed", tmp_path / "run")
    again, _ = distill_pretraining(experiment(folder, *LAYERS_TOO), tmp_path / "run")
    ours, theirs = (run.checkpoints.latest()[0] for run in (again, distilled[0]))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes()


def test_the_student_begins_with_layers_of_the_teacher(folder, tmp_path):
    run, _ = distill_pretraining(experiment(folder, "optimizer.learning_rate=0.0", "train.steps=2"), tmp_path / "run")
    ours, theirs = tensors(run), tensors(RunDirectory(folder / "teacher"))
    for layer, there in ((0, 0), (1, 3)):  # the first and the last
        names = [f"transformer_layer_{i}/output/kernel" for i in (layer, there)]
        assert np.array_equal(ours[names[0]], theirs[names[1]])
    for name in ("embeddings/token_embeddings", "masked_lm_head/dense/kernel", "masked_lm_head/output_bias"):
        assert np.array_equal(ours[name], theirs[name])


def test_a_student_equal_to_its_teacher(folder):
    """No divergence and no distance; at masked and at all tokens the same hard labels."""
    teacher, tokenizer = objective_and_tokenizer(folder / "teacher")
    student = bert_tf.load(folder / "teacher").objective
    reader = ShardReader(folder / "shards", tokenizer)
    dataset = reader.dataset(8, seed=0, corrupt=MaskedLMCorruption.of_shards(reader, tokenizer, MaskingConfig()))
    features = next(iter(dataset))
    features = {k: v for k, v in features.items() if not k.startswith("pair")} | {
        "pair_labels": np.zeros(8, "int32"), "pair_weights": np.zeros(8, "float32"),
    }  # fmt: skip
    names = {"hard_labels": 1, "soft_labels": {"divergence": True, "temperature": 3}, "hidden_cosine": 1}
    names |= {"attention_scores": 1, "minilm": 1, "minilm2": {"relation_heads": 8}, "patient": 1}
    terms = read_terms(names)
    found = []
    for everywhere in (False, True):
        views = MaskedLMView(student, everywhere), MaskedLMView(teacher, everywhere)
        model = Distiller(*views, terms, teacher.backbone.config)
        sums, weights = model.loss_sums(features, training=False)[0], model.loss_weights(features)
        found.append(float(sums["masked_lm"] / weights["masked_lm"]))
        for name in ("soft_labels", "hidden_cosine", "attention_scores", "minilm", "minilm2", "patient"):
            assert abs(float(sums[name] / weights[name])) < 1e-5, name
        assert not {id(v) for v in model.variables} & {id(v) for v in teacher.variables}
    assert found[0] == pytest.approx(found[1], rel=1e-5) and not math.isnan(found[0])
    # Two replicas with half of the batch each have the sums and weights of one.
    for variable in student.variables:
        variable.assign(variable * 0.5)
    half = [{k: v[i : i + 4] for k, v in features.items()} for i in (0, 4)]
    of = [model.loss_weights(part) for part in (features, *half)]
    of += [model.loss_sums(part, training=False)[0] for part in (features, *half)]
    for whole, first, second in (of[:3], of[3:]):
        for name in whole.keys() - {"pair"}:  # the rows are no pairs
            assert float(first[name] + second[name]) == pytest.approx(float(whole[name]), rel=1e-4) != 0


def test_a_teacher_without_head_teaches_its_layers(folder, tmp_path):
    encoder, tokenizer = encoder_and_tokenizer(folder / "teacher")
    bert_tf.save(encoder, tokenizer, tmp_path / "encoder", format="run")
    chosen = [f"teacher.path={tmp_path / 'encoder'}", "terms={hidden_states: 1, minilm2: {relation_heads: 4}}"]
    # The second of the teacher with head.
    found = [distill_pretraining(experiment(folder, *chosen[i:]), tmp_path / f"run {i}")[1] for i in (0, 1)]
    assert found[0]["loss"] == found[1]["loss"] > 0
    assert "masked_lm_accuracy" not in found[0]  # of a head that learns nothing
    message = "has no masked LM head, and soft_labels and squared_error compare predictions"
    with pytest.raises(ConfigError, match=message):
        distill_pretraining(experiment(folder, chosen[0]), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize(("overrides", "message"), [
    (["objective={name: causal_lm}"], "pretraining is distilled by objective.name=masked_lm"),
    (["data.shards=''"], "data.shards must name the folder"), (["teacher.top_k=5"], "unknown key 'teacher.top_k'"),
    (["student.model={preset: bert_tiny}"], "unknown key 'student.model'"),
    (["train.init_from=x"], "student.layers takes weights of the teacher, train.init_from those of another"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused(folder, overrides, message):
    with pytest.raises(ConfigError, match=message):
        check_distilled_pretraining(experiment(folder, *overrides))


def test_shards_of_another_vocabulary(folder, tmp_path):
    other = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *REST, "word"])
    write_shards(folder / "corpus.txt", tmp_path / "shards", other, SHARDS, progress=False)
    chosen = experiment(folder, f"data.shards={tmp_path / 'shards'}", "student.layers=null")
    with pytest.raises(DataError, match="shards has another vocabulary than .*teacher; write it"):
        distill_pretraining(chosen, tmp_path / "run")
