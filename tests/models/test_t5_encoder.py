"""T5's encoder alone: parity with Hugging Face's in float64 (see tests/golden/t5.py), the checkpoints, the tasks."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf.checkpoints.saving import write_finetuned
from bert_tf.config import build
from bert_tf.errors import ConfigError
from bert_tf.export import export_run
from bert_tf.models import PRESETS, T5, T5Config, T5Encoder, T5EncoderConfig, Transformer, TransformerConfig
from bert_tf.models.families import encoder_alone
from bert_tf.models.t5_encoder import HF
from bert_tf.models.weights import load_weights
from bert_tf.objectives import Denoising, MaskedLM
from bert_tf.tasks import build_task
from bert_tf.tokenizers import train_unigram
from bert_tf.training.finetune_config import FinetuneConfig
from bert_tf.training.finetuning import finetune
from bert_tf.training.loading import load_encoder, load_finetuned
from bert_tf.training.published_tasks import publish

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
SIZES = dict(num_layers=2, num_heads=3, head_size=6, intermediate_size=28, num_buckets=8, max_distance=10)
TEXTS = ["the state of the union is strong", "people of the union"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A T5, `whole`, in the folder `theirs` of its format, and its tokenizer."""
    folder = tmp_path_factory.mktemp("t5")
    keras.utils.set_random_seed(2)
    tokenizer = train_unigram(TEXTS * 20, 30, family="t5")
    whole = T5(T5Config(tokenizer.vocabulary_size, 20, **SIZES))
    bert_tf.save(Denoising(whole), tokenizer, folder / "theirs", "hf")
    (folder / "labelled.tsv").write_text(
        "text\tlabel\nthe union\tgood\npeople of the state\tbad\nstrong people\tgood\n"
    )
    (folder / "tagged.conll").write_text("the O\nunion B\n\npeople B\nof O\nthe O\nstate B\n")
    return folder, whole, tokenizer


@pytest.mark.parametrize("name", ["t5_relu_tied", "t5_gated_untied"])
def test_hidden_states(name):
    with np.load(FIXTURES / f"{name}.npz") as file:
        golden = dict(file)
    theirs = json.loads(str(golden["config"]))
    weights = {k.removeprefix("weights/"): v for k, v in golden.items() if k.startswith("weights/")}
    model = T5Encoder(T5EncoderConfig(**HF.config.read(theirs, "config.json")), output_hidden_states=True)
    load_weights(model, weights, HF.weights)
    inputs = {"token_ids": golden["token_ids"].astype("int32"), "padding_mask": golden["padding_mask"]}
    found, real = model(inputs), golden["padding_mask"]
    for ours, states in zip(found["hidden_states"], golden["encoder_hidden_states"], strict=True):
        error = np.abs(np.asarray(ours, "float64") - states)[real].max() / np.abs(states).max()
        assert error < 1e-5
    np.testing.assert_array_equal(found["sequence_output"], found["hidden_states"][-1])


def test_packed_texts_do_not_see_each_other():
    keras.utils.set_random_seed(1)
    model = T5Encoder(T5EncoderConfig(30, 20, **SIZES))
    ids = np.array([[5, 6, 7, 8, 9]])
    packed = model({"token_ids": ids, "sequence_ids": np.array([[1, 1, 1, 2, 2]])})["sequence_output"]
    alone = model({"token_ids": ids[:, :3]})["sequence_output"], model({"token_ids": ids[:, 3:]})["sequence_output"]
    np.testing.assert_allclose(packed, np.concatenate(alone, axis=1), atol=1e-5)


@pytest.mark.parametrize(("name", "count"), [("t5_small", 35_330_816), ("t5_1_1_xxl", 4_762_310_656)])
def test_published_parameter_counts(name, count):
    """Those of Hugging Face's T5EncoderModel; the second is the text encoder of several image generators."""
    with keras.StatelessScope(initialize_variables=False):
        assert T5Encoder(encoder_alone(PRESETS[name].config)).count_params() == count


def test_a_published_t5_is_opened_as_its_encoder_and_written_as_their_class(folder, tmp_path):
    folder, whole, tokenizer = folder
    features = tokenizer.pack(tokenizer.tokenize(TEXTS), sequence_length=12)
    expected = whole.encode(features["token_ids"], features["padding_mask"])
    for loaded in (
        bert_tf.load(folder / "theirs", family="t5_encoder").encoder,
        load_encoder(folder / "theirs", pooler=False)[0],
    ):
        assert type(loaded) is T5Encoder
        np.testing.assert_array_equal(loaded(features)["sequence_output"], expected)
    bert_tf.save(loaded, tokenizer, tmp_path / "written", "hf")
    assert json.loads((tmp_path / "written" / "config.json").read_text())["architectures"] == ["T5EncoderModel"]
    assert not [name for name in load_file(tmp_path / "written" / "model.safetensors") if "decoder" in name]
    again = bert_tf.load(tmp_path / "written")  # the class says which family it is, the type of the model does not
    assert again.family == "t5_encoder"
    np.testing.assert_array_equal(again.encoder(features)["sequence_output"], expected)
    theirs = json.loads((tmp_path / "written" / "config.json").read_text())
    theirs |= {"model_type": "mt5", "architectures": ["MT5EncoderModel"], "tie_word_embeddings": False}
    (tmp_path / "written" / "config.json").write_text(json.dumps(theirs))
    again = bert_tf.load(tmp_path / "written")
    assert again.family == "t5_encoder"
    np.testing.assert_array_equal(again.encoder(features)["sequence_output"], expected)
    assert bert_tf.load(folder / "theirs").family == "t5"
    assert type(load_encoder(folder / "theirs", pooler=False, whole=True)[0]) is T5


def test_a_class_of_their_taggers(folder, tmp_path):
    folder, whole, tokenizer = folder
    theirs = json.loads((folder / "theirs" / "config.json").read_text())
    theirs |= {
        "architectures": ["T5ForTokenClassification"],
        "id2label": {"0": "O", "1": "B"},
        "classifier_dropout": 0.0,
    }
    arrays = load_file(folder / "theirs" / "model.safetensors")
    kept = {f"transformer.{name}": x for name, x in arrays.items() if name.startswith(("shared.", "encoder."))}
    kernel, bias = np.random.default_rng(0).normal(size=(2, 20)).astype("float32"), np.array([0.5, -0.5], "float32")
    tokenizer.save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    save_file(kept | {"classifier.weight": kernel, "classifier.bias": bias}, tmp_path / "model.safetensors")
    task, model, _ = load_finetuned(tmp_path)
    assert (task.kind, task.labels, type(model.backbone)) == ("tagging", ("O", "B"), T5Encoder)
    features = tokenizer.pack(tokenizer.tokenize(TEXTS[:1]), sequence_length=12)
    expected = np.asarray(whole.encode(features["token_ids"], features["padding_mask"])) @ kernel.T + bias
    real = features["padding_mask"].numpy()
    np.testing.assert_allclose(np.asarray(model.outputs(features))[real], expected[real], atol=1e-5)
    published, weights = publish(task, model, tmp_path)
    write_finetuned(model.backbone, weights, published, task.tokenizer, tmp_path / "written")
    written = load_file(tmp_path / "written" / "model.safetensors")
    assert written.keys() == load_file(tmp_path / "model.safetensors").keys()


def finetuned(folder, output, kind, file, **changes):
    settings = {
        "init_from": str(folder / "theirs"),
        "task": {"kind": kind, "sequence_length": 12},
        "data": {"train": str(folder / file), "dev": str(folder / file)},
        "train": {"epochs": 1, "strategy": "one", "precision": "float32"},
    }
    return finetune(build(FinetuneConfig, settings | changes), output)


def test_a_task_that_writes_no_text_is_on_the_encoder(folder, tmp_path):
    folder, whole, tokenizer = folder
    still = {"optimizer": {"learning_rate": 0.0}}
    for kind, file in (("classification", "labelled.tsv"), ("tagging", "tagged.conll")):
        finetuned(folder, tmp_path / kind, kind, file, **still)
        task, model, _ = load_finetuned(tmp_path / kind)
        assert type(model.backbone) is T5Encoder
        for variable in model.backbone.weights:
            theirs = next(v for v in whole.weights if v.path == variable.path)
            np.testing.assert_array_equal(variable, theirs)
        assert len(task.predict(model, ["the union is strong"])) == 1
    # A text's vector is the mean of all tokens: none of them stands for the text.
    model = load_finetuned(tmp_path / "classification")[1]
    features = tokenizer.pack(tokenizer.tokenize(TEXTS[:1]), sequence_length=12)
    real = features["padding_mask"].numpy()
    mean = np.asarray(whole.encode(features["token_ids"], features["padding_mask"]))[real].mean(axis=0)
    kernel, bias = (np.asarray(v) for v in model.head.weights)
    np.testing.assert_allclose(np.asarray(model.outputs(features))[0], mean @ kernel + bias, atol=1e-5)


def test_a_task_that_writes_text_is_on_the_whole(folder, tmp_path):
    task = {"kind": "text_to_text", "sequence_length": 12, "target_length": 4, "columns": {"label": "label"}}
    finetuned(folder[0], tmp_path / "run", "text_to_text", "labelled.tsv", task=task)
    assert type(load_finetuned(tmp_path / "run")[1].backbone) is T5


@pytest.mark.slow_except("t5")
@pytest.mark.parametrize("family", ["t5", "t5_encoder"])
def test_its_vectors_are_exported(folder, tmp_path, family):
    folder, whole, tokenizer = folder
    bert_tf.import_run(folder / "theirs", tmp_path / "run", family=family)
    served = tf.saved_model.load(str(export_run(tmp_path / "run", kind="embedding", precision="float32")))
    features = tokenizer.pack(tokenizer.tokenize(TEXTS), sequence_length=64)
    states, real = (
        np.asarray(whole.encode(features["token_ids"], features["padding_mask"])),
        features["padding_mask"].numpy(),
    )
    found = served.signatures["serving_default"](tf.constant(TEXTS))["mean"]
    np.testing.assert_allclose(found, [x[mask].mean(axis=0) for x, mask in zip(states, real)], atol=2e-5)


def test_a_masked_lm_is_refused():
    with pytest.raises(ConfigError, match="model.family=t5_encoder has no masked LM: pretrain model.family=t5 with"):
        MaskedLM(T5Encoder(T5EncoderConfig(30, 20, **SIZES)), pair_task=None)


def test_another_encoder_decoder_is_still_refused(folder):
    config = TransformerConfig(40, 16, num_layers=1, num_heads=2, intermediate_size=32)
    assert encoder_alone(config) is config
    task = build_task({"kind": "classification", "labels": ["a", "b"], "sequence_length": 12}, folder[2])
    with pytest.raises(
        ConfigError, match="the tasks fine-tune encoders and decoders, and Transformer is an encoder-decoder"
    ):
        task.model(Transformer(config))
