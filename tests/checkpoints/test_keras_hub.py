"""Presets that KerasHub wrote, see tests/golden/keras_hub_presets.py, and those that are written for it."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import ConfigError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "keras_hub"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.zip"))
TASKS = [name for name in NAMES if name.endswith("classifier")]


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """The folder that holds all of them."""
    folder = tmp_path_factory.mktemp("presets")
    for name in NAMES:
        with zipfile.ZipFile(FIXTURES / f"{name}.zip") as file:
            file.extractall(folder / name)
    return folder


def golden(folder):
    with np.load(folder / "expected.npz") as file:
        return dict(file)


def difference(ours, theirs, real=None):
    """Relative to the largest value, of real tokens."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if real is not None and theirs.ndim == 3:
        ours, theirs = ours[real], theirs[real]
    return np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))


def inputs(expected):
    """What our models read, under our names."""
    names = {key: key.removeprefix("encoder_") for key in expected if key.endswith(("_ids", "_mask", "_positions"))}
    return {"segment_ids": np.zeros((2, 8), "int32")} | {own: expected[key] for key, own in names.items()}


def real_tokens(expected):
    return expected.get("decoder_padding_mask", expected.get("padding_mask")).astype(bool)


@pytest.mark.parametrize("name", NAMES)
def test_the_backbone_computes_what_kerashub_computes(presets, name):
    expected, loaded = golden(presets / name), bert_tf.load(presets / name)
    outputs = loaded.backbone(loaded.backbone.select(inputs(expected)))
    assert loaded.report.fresh == ()
    theirs = expected["decoder_sequence_output" if name == "t5" else "sequence_output"]
    assert difference(outputs["sequence_output"], theirs, real_tokens(expected)) < 1e-6
    if "pooled_output" in expected and name != "electra":  # ours has no pooler
        assert difference(outputs["pooled_output"], expected["pooled_output"]) < 1e-6


@pytest.mark.parametrize("name", ["bert_masked_lm", "roberta_masked_lm", "albert_masked_lm", "gpt2", "t5"])
def test_the_logits_of_pretraining(presets, name):
    expected, loaded = golden(presets / name), bert_tf.load(presets / name)
    outputs = loaded.objective(inputs(expected))
    assert loaded.report.unused == loaded.report.fresh == ()
    logits = next(value for key, value in outputs.items() if key.endswith("logits"))
    assert difference(logits, expected["logits"], real_tokens(expected)) < 1e-6


@pytest.mark.parametrize("name", TASKS)
def test_a_classifier_is_a_task(presets, name):
    expected, loaded = golden(presets / name), bert_tf.load(presets / name)
    outputs = loaded.model(inputs(expected))
    key = {"roberta_classifier": "probabilities", "distilbert_classifier": "score"}.get(name, "logits")
    assert difference(outputs[key], expected["logits"].reshape(np.shape(outputs[key]))) < 1e-6
    assert loaded.task.kind == ("regression" if name == "distilbert_classifier" else "classification")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("electra", "t5", "xlnet")])
def test_the_tokenizer_gives_kerashubs_ids(presets, name):
    expected, tokenizer = golden(presets / name), bert_tf.load(presets / name).tokenizer
    for number, sentence in enumerate(map(str, expected["sentences"])):
        if (
            "[MASK]" not in sentence
        ):  # special tokens in a text are text for KerasHub's, unless they are asked not to be
            assert np.asarray(tokenizer.tokenize([sentence])[0]).tolist() == expected[f"ids_{number}"].tolist()


def test_through_here_a_preset_gets_to_hugging_face(presets, tmp_path):
    """Which KerasHub cannot do for a BERT: its encoder has the same outputs there, its masked LM head another epsilon."""
    loaded = bert_tf.load(presets / "bert_masked_lm")
    with pytest.raises(
        ConfigError, match="activation='gelu_erf' and layer_norm_epsilon=1e-05, as KerasHub's, and format 'hf'"
    ):
        loaded.save(tmp_path / "hf")
    loaded.save(tmp_path / "hf", encoder_only=True)
    expected = golden(presets / "bert_masked_lm")
    again = bert_tf.load(tmp_path / "hf")
    assert again.source.format == "hf"
    outputs = again.backbone(again.backbone.select(inputs(expected)))
    assert difference(outputs["sequence_output"], expected["sequence_output"], real_tokens(expected)) < 1e-6
    assert again.tokenizer.encode("the café") == loaded.tokenizer.encode("the café")
    classifier = bert_tf.load(presets / "bert_classifier")
    classifier.save(tmp_path / "classifier")
    assert bert_tf.load(tmp_path / "classifier").predict("the people") == classifier.predict("the people")


def test_the_head_of_its_own_goes_with_a_run(presets, tmp_path):
    loaded = bert_tf.load(presets / "bert_masked_lm")
    loaded.save(tmp_path / "run", format="run")
    expected, again = golden(presets / "bert_masked_lm"), bert_tf.load(tmp_path / "run")
    assert (
        difference(again.objective(inputs(expected))["masked_lm_logits"], expected["logits"], real_tokens(expected))
        < 1e-6
    )
