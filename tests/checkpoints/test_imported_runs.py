"""What a published checkpoint becomes: a run that every later step takes as one of our own."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from published_models import assert_same_weights, change_arrays
from training.sample_corpus import write_sample

import bert_tf
from bert_tf import config
from bert_tf.checkpoints import open_source
from bert_tf.cli.main import main
from bert_tf.cli.settings import apply_overrides
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.pretraining import PretrainConfig, pretrain
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.starting import finetuning_dropout

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
MODEL = {"family": "bert", "hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64,
         "max_positions": 32, "dropout": 0.0, "attention_dropout": 0.0}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Shards, a model pretrained on them for 60 steps, and that model as others publish theirs."""
    folder = tmp_path_factory.mktemp("made")
    write_sample(folder, count=4, characters=20_000, vocabulary=500)
    pretrain(experiment(folder, "train.steps=60"), folder / "run")
    model = bert_tf.load(folder / "run")
    bert_tf.save(model.objective, model.tokenizer, folder / "hf")
    bert_tf.save(model.objective, model.tokenizer, folder / "tf1", format="tf1")
    bert_tf.save(model.encoder, model.tokenizer, folder / "bare")
    return folder


def experiment(made, *overrides):
    settings = {"model": MODEL, "data": {"shards": str(made / "shards")}}
    settings["optimizer"] = {"learning_rate": 3e-3, "warmup_steps": 3}
    settings["train"] = {"steps": 1, "batch_size": 32, "log_every": 1, "seed": 5, "strategy": "one"}
    return config.build(PretrainConfig, apply_overrides(settings, overrides))


def first_loss(made, output, *overrides):
    return pretrain(experiment(made, *overrides), output)[0].metrics()[0]["masked_lm_loss"]


def test_pretraining_continues_from_every_format(made, tmp_path):
    fresh = RunDirectory.open(made / "run").metrics()[0]["masked_lm_loss"]
    names = ("run", "hf", "tf1")
    starts = [first_loss(made, tmp_path / f"from-{name}", f"train.init_from={made / name}") for name in names]
    assert starts[0] < fresh - 0.5
    # The same weights, batch and masks: the same number.
    assert len(set(starts)) == 1
    # An encoder alone needs leave to start the heads afresh, and is still ahead of all fresh.
    message = "has no masked_lm_head, pair_head; to initialize them randomly, list them in train.init_fresh"
    with pytest.raises(DataError, match=message):
        first_loss(made, tmp_path / "refused", f"train.init_from={made / 'bare'}")
    leave = "train.init_fresh=[masked_lm_head, pair_head]"
    assert first_loss(made, tmp_path / "allowed", f"train.init_from={made / 'bare'}", leave) < fresh


def test_a_start_that_is_another_model_is_refused(made, tmp_path):
    source = f"train.init_from={made / 'hf'}"
    message = "model.activation is 'gelu_erf', but .* has 'gelu_tanh'; set model.activation"
    with pytest.raises(ConfigError, match=message):
        first_loss(made, tmp_path / "a", source, "model.activation=gelu_erf")
    with pytest.raises(DataError, match="was trained on another vocabulary"):
        first_loss(made, tmp_path / "b", f"train.init_from={FIXTURES / 'bert'}")


def test_an_imported_run_is_a_run(made, tmp_path):
    loaded = bert_tf.load(made / "hf")
    loaded.save(tmp_path / "run", format="run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["checkpoints", "config.yaml", "tokenizer"]
    again = bert_tf.load(tmp_path / "run")
    assert_same_weights(loaded.objective, again.objective)
    assert again.encoder.config == loaded.encoder.config
    question = "the people of the united [MASK]"
    answers = [bert_tf.load(run).fill_mask(question, 3) for run in (made / "run", tmp_path / "run")]
    assert answers[0] == answers[1]
    with pytest.raises(RunDirectoryError, match="is not an empty folder"):
        bert_tf.load(made / "hf").save(tmp_path / "run", format="run")
    with pytest.raises(RunDirectoryError, match="holds another run"):
        pretrain(experiment(made), tmp_path / "run")


def fine_tuned(init_from, output):
    """The fine-tuned model, after two steps."""
    labelled = output.parent / "train.tsv"
    labelled.write_text("text\tlabel\n" + "peace and war\t1\ntax and law\t0\n" * 4)
    settings = {
        "init_from": str(init_from), "data": {"train": str(labelled), "dev": str(labelled)},
        "task": {"kind": "classification", "sequence_length": 16},
        "train": {"epochs": 1, "batch_size": 4, "strategy": "one"},
    }  # fmt: skip
    finetune(config.build(FinetuneConfig, settings), output)
    return bert_tf.load(output)


def test_fine_tuning_starts_from_a_published_encoder(made, tmp_path, capsys):
    tuned = fine_tuned(made / "tf1", tmp_path / "tf1")
    assert tuned.encoder.config.hidden_size == 32
    assert any(not name.startswith(("pooler/", "transformer")) for name in tuned.report.unused)
    # The dropout that the checkpoint was published with.
    assert tuned.encoder.config.dropout == tuned.encoder.config.attention_dropout == 0.0
    # The head that was trained is not dropped unasked.
    command = ["convert", str(tmp_path / "tf1"), str(tmp_path / "written"), "--to", "tf1"]
    assert main(command) == 1
    assert "head of its task cannot be written as 'tf1'" in capsys.readouterr().err
    assert not (tmp_path / "written").exists()
    assert main([*command, "--encoder-only"]) == 0
    table = bert_tf.load(tmp_path / "written").encoder.embedding_table
    np.testing.assert_array_equal(table, tuned.encoder.embedding_table)


@pytest.mark.parametrize("family, length", [("xlnet", 512), ("bert", 16)])
def test_an_imported_run_has_a_length_to_export_with(tmp_path, family, length):
    bert_tf.load(FIXTURES / family).save(tmp_path / "run", format="run")
    assert bert_tf.load(tmp_path / "run").sequence_length == length


def test_a_classifier_without_its_pretraining_head_becomes_a_run(tmp_path):
    """As `ModernBertForSequenceClassification` is saved: with the head's layers, without its output bias."""
    folder = shutil.copytree(FIXTURES / "modernbert", tmp_path / "classifier")

    def as_classifier(arrays):
        width = arrays["head.norm.weight"].shape[0]
        head = {"classifier.weight": np.ones((2, width), "float32"), "classifier.bias": np.ones(2, "float32")}
        return {name: array for name, array in arrays.items() if "decoder" not in name} | head

    change_arrays(folder, as_classifier)
    loaded = bert_tf.load(folder)
    loaded.save(tmp_path / "run", format="run")
    assert loaded.objective_settings is None
    assert {"head.dense.weight", "head.norm.weight", "classifier.weight"} <= set(loaded.report.unused)
    assert_same_weights(bert_tf.load(FIXTURES / "modernbert").encoder, loaded.encoder)
    with pytest.raises(DataError, match="holds no pretraining head"):
        _ = bert_tf.load(folder).objective


def test_a_damaged_head_can_be_left_out(tmp_path):
    folder = shutil.copytree(FIXTURES / "bert", tmp_path / "bert")
    lost = "cls.predictions.transform.dense.weight"
    change_arrays(folder, lambda arrays: {name: array for name, array in arrays.items() if name != lost})
    with pytest.raises(DataError, match="(?s)nothing fills 'masked_lm_head/dense/kernel'.*add encoder_only=True"):
        bert_tf.load(folder).save(tmp_path / "run", format="run")
    assert not (tmp_path / "run").exists()
    bert_tf.load(folder).save(tmp_path / "run", format="run", encoder_only=True)
    assert bert_tf.load(tmp_path / "run").source.task is None


def test_fine_tuning_of_a_run_has_its_own_dropout(made, tmp_path):
    assert finetuning_dropout(open_source(made / "run")) == 0.1  # pretrained here, without dropout
    assert finetuning_dropout(open_source(made / "hf")) is None
    bert_tf.load(made / "hf").save(tmp_path / "imported", format="run")
    assert finetuning_dropout(open_source(tmp_path / "imported")) is None
    tuned = fine_tuned(made / "run", tmp_path / "tuned").encoder.config
    assert (tuned.dropout, tuned.attention_dropout) == (0.1, 0.1)
    assert finetuning_dropout(open_source(tmp_path / "tuned")) is None  # fine-tuned again with the same


def test_an_encoder_with_what_the_caller_asks_for(made):
    loaded = bert_tf.load(made / "hf", output_hidden_states=True)
    batch = loaded.tokenizer.pack(loaded.tokenizer.tokenize(["the people"]), sequence_length=8)
    assert len(loaded.encoder(batch)["hidden_states"]) == 2
    untrained = bert_tf.load(made / "hf", trained=False).encoder
    assert not np.array_equal(untrained.embedding_table, loaded.encoder.embedding_table)


def test_the_command(tmp_path, capsys):
    assert main(["convert", str(FIXTURES / "bert"), str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "bert, 3,711 parameters, as run" in printed
    assert "next: bert-tf finetune --init-from" in printed
    assert main(["convert", str(tmp_path / "run"), str(tmp_path / "tf1"), "--to", "tf1"]) == 0
    assert main(["convert", str(tmp_path / "tf1"), str(tmp_path / "hf"), "--to", "hf", "--encoder-only"]) == 0
    assert "not used: cls/predictions" in capsys.readouterr().out
    original, back = (bert_tf.load(p).encoder for p in (FIXTURES / "bert", tmp_path / "hf"))
    assert_same_weights(original, back)
    assert main(["convert", str(tmp_path / "nothing"), str(tmp_path / "x")]) == 1
    assert "nothing is not a run directory" in capsys.readouterr().err
