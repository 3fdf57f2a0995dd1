"""The model card of what is published: metadata that parses, scores beside their baselines, no folders of ours."""

import json

import labelled_runs
import pytest
import yaml

import bert_tf
from bert_tf.errors import ConfigError


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    labelled_runs.write_encoder(folder / "pretrained")
    files = labelled_runs.write_labelled(folder, "train", "dev", "test")
    task = {"kind": "classification", "sequence_length": 16, "head": {"name": "hugging_face"}}
    return bert_tf.finetune(folder / "pretrained", **files, task=task, output=folder / "run", epochs=1, batch_size=4)


def metadata_of(card):
    _, metadata, text = card.split("---\n", 2)
    return yaml.safe_load(metadata), text


def test_a_fine_tuned_model(tuned, tmp_path):
    tuned.save(tmp_path / "films", license="apache-2.0")
    card = (tmp_path / "films" / "README.md").read_text()
    metadata, text = metadata_of(card)
    assert (metadata["license"], metadata["pipeline_tag"]) == ("apache-2.0", "text-classification")
    results = metadata["model-index"][0]["results"][0]
    finished = json.loads((tuned.path / "finished.json").read_text())
    values = {score["name"]: score["value"] for score in results["metrics"]}
    assert values["accuracy (test)"] == finished["test"]["accuracy"]
    assert values["loss (dev)"] == finished["dev"]["loss"]
    baseline = finished["baselines"]["test"]["majority class"]["accuracy"]
    assert f"| test | accuracy | {finished['test']['accuracy']:.4g} | {baseline:.4g} |" in text
    assert "`0`, `1`" in text and "train: `train.tsv`" in text and "`bert-tf finetune` with this" in text
    assert str(tuned.path.parent) not in card
    config = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    assert config["train"]["epochs"] == 1 and config["init_from"] == "pretrained"
    labels = json.loads((tmp_path / "films" / "config.json").read_text())["id2label"]
    assert list(labels.values()) == list(tuned.task.labels)
    assert bert_tf.load(tmp_path / "films").predict("the film good") == tuned.predict("the film good")


def test_a_model_without_its_head(tuned, tmp_path):
    tuned.save(tmp_path / "encoder", encoder_only=True)
    metadata, text = metadata_of((tmp_path / "encoder" / "README.md").read_text())
    assert "pipeline_tag" not in metadata and "license" not in metadata and "## Results" not in text
    with pytest.raises(ConfigError, match="license='mit' is for the model card of the format 'hf'"):
        tuned.save(tmp_path / "run", format="run", license="mit")
    assert not (tmp_path / "run").exists()
