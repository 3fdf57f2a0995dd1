"""T5's encoder alone: parity with Hugging Face's in float64 (see tests/golden/t5.py), the checkpoints, the tasks."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from opened import task_and_model
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf.checkpoints.hugging_face import write_finetuned
from bert_tf.checkpoints.published_tasks import publish
from bert_tf.config import build
from bert_tf.errors import ConfigError
from bert_tf.export import export_run
from bert_tf.models import T5, T5Config, T5Encoder, T5EncoderConfig, Transformer, TransformerConfig
from bert_tf.models.families import encoder_alone
from bert_tf.objectives import Denoising, MaskedLM
from bert_tf.tasks import build_task
from bert_tf.tokenizers import train_unigram
from bert_tf.training.finetune_config import FinetuneConfig
from bert_tf.training.finetuning import finetune

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
    rows = ["text\tlabel", "the union\tgood", "people of the state\tbad", "strong people\tgood"]
    (folder / "labelled.tsv").write_text("\n".join(rows))
    return folder, whole, tokenizer


def test_a_published_t5_is_opened_as_its_encoder_and_written_as_their_class(folder, tmp_path):
    folder, whole, tokenizer = folder
    features, expected, _ = encoded(whole, tokenizer, TEXTS)
    opened = bert_tf.load(folder / "theirs", family="t5_encoder").encoder
    for loaded in (opened, bert_tf.load(folder / "theirs").encoder):
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
    assert type(bert_tf.load(folder / "theirs").backbone) is T5


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
    task, model = task_and_model(tmp_path)
    assert (task.kind, task.labels, type(model.backbone)) == ("tagging", ("O", "B"), T5Encoder)
    features, states, real = encoded(whole, tokenizer, TEXTS[:1])
    np.testing.assert_allclose(np.asarray(model.outputs(features))[real], (states @ kernel.T + bias)[real], atol=1e-5)
    published, weights = publish(task, model, tmp_path)
    write_finetuned(model.backbone, weights, published, task.tokenizer, tmp_path / "written")
    written = load_file(tmp_path / "written" / "model.safetensors")
    assert written.keys() == load_file(tmp_path / "model.safetensors").keys()


def encoded(whole, tokenizer, texts, length=12):
    """(features, the encoder's vectors, where they are of tokens), by the whole model."""
    features = tokenizer.pack(tokenizer.tokenize(texts), sequence_length=length)
    states = np.asarray(whole.encode(features["token_ids"], features["padding_mask"]))
    return features, states, features["padding_mask"].numpy()


def test_a_task_that_writes_no_text_is_on_the_encoder(folder, tmp_path):
    folder, whole, tokenizer = folder
    labelled = str(folder / "labelled.tsv")
    settings = {
        "init_from": str(folder / "theirs"), "task": {"kind": "classification", "sequence_length": 12},
        "data": {"train": labelled, "dev": labelled}, "optimizer": {"learning_rate": 0.0},
        "train": {"epochs": 1, "strategy": "one", "precision": "float32"},
    }  # fmt: skip
    finetune(build(FinetuneConfig, settings), tmp_path / "run")
    task, model = task_and_model(tmp_path / "run")
    assert type(model.backbone) is T5Encoder
    known = {v.path: v for v in whole.weights}
    for variable in model.backbone.weights:
        np.testing.assert_array_equal(variable, known[variable.path])
    assert len(task.predict(model, ["the union is strong"])) == 1
    # A text's vector is the mean of all tokens: none of them stands for the text.
    features, states, real = encoded(whole, tokenizer, TEXTS[:1])
    mean = states[real].mean(axis=0)
    kernel, bias = (np.asarray(v) for v in model.head.weights)
    np.testing.assert_allclose(np.asarray(model.outputs(features))[0], mean @ kernel + bias, atol=1e-5)


def test_its_vectors_are_exported(folder, tmp_path):
    folder, whole, tokenizer = folder
    bert_tf.load(folder / "theirs", family="t5").save(tmp_path / "run", format="run")
    served = tf.saved_model.load(str(export_run(tmp_path / "run", kind="embedding", precision="float32")))
    _, states, real = encoded(whole, tokenizer, TEXTS, length=64)
    found = served.signatures["serving_default"](tf.constant(TEXTS))["mean"]
    np.testing.assert_allclose(found, [x[mask].mean(axis=0) for x, mask in zip(states, real)], atol=2e-5)


def test_what_is_refused(folder):
    with pytest.raises(ConfigError, match="model.family=t5_encoder has no masked LM: pretrain model.family=t5 with"):
        MaskedLM(T5Encoder(T5EncoderConfig(30, 20, **SIZES)), pair_task=None)
    config = TransformerConfig(40, 16, num_layers=1, num_heads=2, intermediate_size=32)
    assert encoder_alone(config) is config
    task = build_task({"kind": "classification", "labels": ["a", "b"], "sequence_length": 12}, folder[2])
    message = "this task fine-tunes encoders and decoders, and Transformer is an encoder-decoder"
    with pytest.raises(ConfigError, match=message):
        task.model(Transformer(config))
