"""`LanguageModel.add_tokens`: what the files hold grows, the rest stays."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError
from bert_tf.models import build_backbone
from bert_tf.models.electra.config import ElectraConfig
from bert_tf.models.electra.model import make_generator
from bert_tf.models.weights import by_path
from bert_tf.objectives import ReplacedTokenDetection

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
TEXT = "the law of the people"
SHORT = {"kind": "classification", "sequence_length": 16}


@pytest.mark.parametrize("name", ["bert", "albert", "roberta", "modernbert", "gpt2", "xlnet"])
def test_the_model_gives_the_same_and_has_a_row_more(name, tmp_path):
    old = bert_tf.load(FIXTURES / name)
    new = bert_tf.load(FIXTURES / name).add_tokens(["<e1>", "people-law"])
    assert new.tokenizer.vocabulary_size == old.tokenizer.vocabulary_size + 2
    before, after = by_path(old.objective), by_path(new.objective)
    grown = new.config.vocabulary_size - old.config.vocabulary_size
    changed = {path for path in before if before[path].shape != after[path].shape}
    assert "embeddings/token_embeddings" in changed or not grown
    for path, variable in before.items():
        value, size = after[path].numpy(), variable.shape[0] if variable.shape else None
        known = old.tokenizer.vocabulary_size if path in changed or (not grown and "token_emb" in path) else size
        assert value.shape[:1] == (size + grown,) if path in changed else value.shape == tuple(variable.shape)
        np.testing.assert_array_equal(value[:known], variable.numpy()[:known])
    table = after["embeddings/token_embeddings"].numpy()
    pieces = [i for i in old.tokenizer.encode("people-law") if i != old.tokenizer.unk_id]
    np.testing.assert_allclose(table[new.tokenizer.token_to_id("people-law")], table[pieces].mean(0), atol=1e-6)
    np.testing.assert_array_equal(old.embed(TEXT), new.embed(TEXT))
    new.save(tmp_path / "run", format="run")
    again = bert_tf.load(tmp_path / "run")
    assert again.tokenizer.fingerprint == new.tokenizer.fingerprint
    np.testing.assert_array_equal(again.embed("<e1> the people-law"), new.embed("<e1> the people-law"))
    new.save(tmp_path / "hf", format="hf")
    published = bert_tf.load(tmp_path / "hf")
    np.testing.assert_allclose(published.embed("<e1> the people-law"), new.embed("<e1> the people-law"), atol=1e-6)


def test_both_models_of_electra_grow(tmp_path):
    sizes = {"vocabulary_size": 300, "embedding_size": 8, "hidden_size": 16, "num_layers": 1, "num_heads": 2}
    backbone = build_backbone(ElectraConfig(**sizes, intermediate_size=32))
    generator = make_generator(backbone, ElectraConfig(**sizes | {"hidden_size": 8}, intermediate_size=16))
    tokenizer = bert_tf.load(FIXTURES / "bert").tokenizer
    assert tokenizer.vocabulary_size <= 300
    size = tokenizer.vocabulary_size
    bert_tf.save(ReplacedTokenDetection(backbone, generator), tokenizer, tmp_path / "pair")
    words = [f"neu{number}wort" for number in range(301 - size)]
    new = bert_tf.load(tmp_path / "pair").add_tokens(words)
    shapes = {path: tuple(variable.shape) for path, variable in by_path(new.objective).items()}
    assert new.config.vocabulary_size == 301
    assert shapes["embeddings/token_embeddings"] == (301, 8)
    assert shapes["generator/masked_lm_head/output_bias"] == (301,)


def test_what_was_trained_is_not_lost():
    opened = bert_tf.load(FIXTURES / "bert")
    assert opened.encoder is not None
    with pytest.raises(ConfigError, match="has been used already .its (backbone|encoder) was made.*add the tokens"):
        opened.add_tokens(["covid"])


def test_a_grown_model_is_fine_tuned(tmp_path):
    main(["convert", str(FIXTURES / "bert"), str(tmp_path / "grown"), "--add-tokens", "covid", "<e1>"])
    rows = [{"text": f"<e1> covid {word}", "label": word} for word in ("law", "people")] * 4
    tuned = bert_tf.finetune(tmp_path / "grown", train=rows, dev=0.25, task=SHORT, output=tmp_path / "run", epochs=1)
    assert tuned.tokenizer.token_to_id("covid") != tuned.tokenizer.unk_id
    assert tuned.predict("<e1> covid law")["label"] in ("law", "people")
