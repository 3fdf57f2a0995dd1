"""The published heads: which layers each family is fine-tuned with."""

from pathlib import Path

import numpy as np
import pytest
import tiny
from opened import encoder_and_tokenizer

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError
from bert_tf.models.families import FAMILIES, preset, task_head
from bert_tf.models.task_heads import TaskHead
from bert_tf.tasks import Classifier, build_task, check_task
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
