"""The published heads: which layers each family is fine-tuned with."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tiny
from opened import encoder_and_tokenizer

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.checkpoints.published_tasks import publish
from bert_tf.errors import ConfigError
from bert_tf.models.families import FAMILIES, preset, task_head
from bert_tf.models.task_heads import TaskHead
from bert_tf.tasks import build_task, check_task
from bert_tf.tasks.heads import Classifier
from bert_tf.training.starting import fill_head

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
#: Preset -> what the head for texts reads, its activation, its dropout, and the dropout of the head for tokens.
HEADS = {
    "bert_base": ("pooled", None, 0.1, 0.1), "spanbert_base": ("pooled", None, 0.1, 0.1),
    "roberta_base": ("first", "tanh", 0.0, 0.1), "albert_base_v2": ("pooled", None, 0.1, 0.1),
    "electra_base": ("pooled", None, 0.1, 0.1), "distilbert_base": ("first", "relu", 0.2, 0.1),
    "xlnet_base_cased": ("pooled", None, 0.1, 0.0), "modernbert_base": ("mean", "gelu_erf", 0.0, 0.0),
    "gpt1": ("pooled", None, 0.1, 0.1), "gpt2_small": ("pooled", None, 0.0, 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_the_heads_of_the_families(name):
    config = preset(name)
    texts, tokens = (task_head(config, kind) for kind in ("classification", "tagging"))
    assert (texts.reads, texts.activation, texts.dropout, tokens.dropout) == HEADS[name]
    assert tokens.reads == "tokens" and tokens.activation == (texts.activation if name == "modernbert_base" else None)
    for kind, reads in (("classification", "pooled"), ("tagging", "tokens")):
        bert = task_head(config, kind, "bert")
        assert (bert.reads, bert.activation, bert.dropout) == (reads, None, 0.1)


def test_hugging_faces_heads():
    assert task_head(preset("electra_base"), "classification", "hugging_face").activation == "gelu_erf"
    assert not task_head(preset("gpt1"), "classification", "hugging_face").bias
    assert task_head(preset("roberta_base"), "tagging", "hugging_face") == task_head(preset("roberta_base"), "tagging")
    with pytest.raises(ConfigError, match="no class for tagging with 'gpt1'"):
        task_head(preset("gpt1"), "tagging", "hugging_face")
    assert {name for name, record in FAMILIES.items() if record.maps("hf") and record.maps("hf").heads} == {
        "bert", "roberta", "albert", "distilbert", "modernbert", "electra", "spanbert", "xlnet", "gpt1", "gpt2", "t5_encoder",
    }  # fmt: skip


def test_the_mean_of_all_tokens_for_any_family():
    for name, kind in (("bert_base", "classification"), ("gpt2_small", "choices")):
        assert task_head(preset(name), kind, "mean") == TaskHead("mean", dropout=0.1)
    with pytest.raises(ConfigError, match="task.head.name=mean is for tasks on texts, and tagging predicts each word"):
        task_head(preset("bert_base"), "tagging", "mean")
    with pytest.raises(ConfigError, match="decoder.lm_weight=0.5 has no effect with head.name=mean"):
        check_task({"kind": "classification", "head": {"name": "mean"}, "decoder": {"lm_weight": 0.5}})
    model, tokenizer = Classifier(tiny.encoder(), 3, head=TaskHead("mean")), tiny.tokenizer()
    features = tokenizer.pack(tokenizer.tokenize(["a b c", "a"]), sequence_length=8)
    hidden, mask = model.backbone(features)["sequence_output"].numpy(), features["padding_mask"].numpy()[..., None]
    mean = (hidden * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(model.outputs(features), model.head(mean), atol=1e-6)


def test_where_dropout_is():
    config = tiny.encoder().config
    head = task_head(preset("roberta_base"), "classification")
    roberta = Classifier(tiny.encoder(pooler=False), 2, dropout=0.5, head=head)
    assert roberta.head.input_dropout.rate == roberta.head.dropout.rate == 0.5 and roberta.pooler is None
    distilbert = Classifier(tiny.encoder(), 2, head=task_head(preset("distilbert_base"), "classification"))
    assert distilbert.head.input_dropout is None and distilbert.head.dropout.rate == 0.2
    assert distilbert.head.hidden.kernel.shape == (config.hidden_size, config.hidden_size)


def test_the_mean_leaves_padding_out():
    head = task_head(preset("modernbert_base"), "classification")
    model, tokenizer = Classifier(tiny.encoder(pooler=False), 3, head=head), tiny.tokenizer()
    assert [v.path for v in model.head.weights] == [
        "head/layer_norm/gamma", "head/dense/kernel", "head/dense/bias", "head/hidden/kernel",
    ]  # fmt: skip
    texts = tokenizer.tokenize(["the film was good", "bad"])
    both = model(tokenizer.pack(texts, sequence_length=8))["logits"]
    alone = model(tokenizer.pack(texts[1:], sequence_length=3))["logits"]
    np.testing.assert_allclose(both[1:], alone, atol=1e-5)
    vectors = np.asarray(model.backbone(tokenizer.pack(texts[1:], sequence_length=3))["sequence_output"], "float64")
    z = vectors.mean(axis=1) @ np.asarray(model.head.hidden.kernel, "float64")
    gelu = np.asarray(keras.activations.gelu(z, approximate=False), "float64")
    normal = (gelu - gelu.mean(-1, keepdims=True)) / np.sqrt(gelu.var(-1, keepdims=True) + 1e-5)
    wanted = normal @ np.asarray(model.head.dense.kernel, "float64") + np.asarray(model.head.dense.bias)
    np.testing.assert_allclose(alone, wanted, atol=1e-4)


def test_modernbert_starts_from_its_pretrained_layers(tmp_path):
    objective = bert_tf.load(FIXTURES / "modernbert").objective
    bert_tf.load(FIXTURES / "modernbert").save(tmp_path / "run", format="run")
    for source in (FIXTURES / "modernbert", tmp_path / "run"):
        encoder, tokenizer = encoder_and_tokenizer(source)
        task = build_task({"kind": "tagging", "labels": ["A", "B"], "sequence_length": 16}, tokenizer)
        model = task.model(encoder)
        fill_head(model, open_source(source))
        np.testing.assert_array_equal(model.head.hidden.kernel, objective.masked_lm_head.dense.kernel)
        np.testing.assert_array_equal(model.head.norm.gamma, objective.masked_lm_head.layer_norm.gamma)


def test_a_head_of_other_layers_is_not_published(tmp_path):
    encoder, tokenizer = encoder_and_tokenizer(FIXTURES / "distilbert", pooler=True, fresh=("pooler",))
    settings = {"kind": "classification", "labels": ["a", "b"], "sequence_length": 16, "head": {"name": "bert"}}
    task = build_task(settings, tokenizer)
    with pytest.raises(ConfigError, match="has other layers in its head .* fine-tune with task.head.name=hugging_face"):
        publish(task, task.model(encoder), tmp_path)


def test_the_scale_of_a_regression_is_written_into_its_output_layer(tmp_path):
    task = build_task({"kind": "regression", "sequence_length": 16}, tiny.tokenizer())
    task.read({"text": ["good", "bad", "film"], "label": [1.0, 4.0, 10.0]})
    model = task.model(tiny.encoder())
    _, arrays = publish(task, model, tmp_path)
    features = task.tokenizer.pack(task.tokenizer.tokenize(["the film"]), sequence_length=8)
    pooled = np.asarray(model.backbone(features)["pooled_output"], "float64")
    score = pooled @ arrays["head/dense/kernel"] + arrays["head/dense/bias"]
    np.testing.assert_allclose(model(features)["score"], score[:, 0], rtol=1e-4)
