"""A published checkpoint of every family, imported: the model that is exported of it answers."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.export import export_run, run
from bert_tf.export.fill_mask import fill_mask
from bert_tf.training.loading import load_pretrained

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
#: Family -> folder of the fixtures, and whether it fills masks.
FAMILIES = {
    "bert": ("bert", True),
    "spanbert": ("bert_sharded", True),  # which was published in BERT's format
    "roberta": ("roberta", True),
    "albert": ("albert", True),
    "distilbert": ("distilbert", True),
    "electra": ("electra", False),
    "modernbert": ("modernbert", True),
    "xlnet": ("xlnet", False),
    "gpt1": ("gpt1", False),
    "gpt2": ("gpt2", False),
}
TEXTS = ["the people", "", "peace and war, tax and law: the nation and the states"]


def answer(module, texts):
    """What the graph of `serving_default` answers."""
    function = module.signatures()["serving_default"].traced()
    return {key: value.numpy() for key, value in function(text=tf.constant(texts)).items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_imported_family_is_exported_and_answers(family, tmp_path, monkeypatch):
    folder, fills_masks = FAMILIES[family]
    imported = bert_tf.import_run(FIXTURES / folder, tmp_path, family=family)
    # What would be written: writing and reading back is the same for all, and takes most of the time.
    loaded = load_pretrained(tmp_path)
    monkeypatch.setattr(run, "load_pretrained", lambda path, precision: loaded)
    monkeypatch.setattr(run, "write_saved_model", lambda module, output, version: module)
    modules = {static: export_run(tmp_path, kind="embedding", static=static) for static in (False, True)}
    length = modules[False].sequence_length
    assert length == min(imported.encoder.config.max_positions, 512)

    tokenizer = imported.tokenizer
    ids = tokenizer.pack(tokenizer.tokenize(tf.constant(TEXTS)), sequence_length=length, dynamic=True)
    sequence, real = np.asarray(imported.encoder(ids)["sequence_output"]), ids["padding_mask"].numpy()
    sequence = sequence * real[..., None]
    if imported.encoder.kind == "decoder":  # the last token; an empty text has none
        wanted = np.where(real.any(1)[:, None], sequence[np.arange(len(real)), real.sum(1) - 1], 0)
    else:
        wanted = sequence[ids["token_ids"].numpy() == tokenizer.cls_id]  # XLNet's stands last
    for module in modules.values():
        found = answer(module, TEXTS)
        np.testing.assert_allclose(found["cls"], wanted, atol=2e-5)
        means = sequence.sum(1) / np.maximum(real.sum(1), 1)[:, None]
        np.testing.assert_allclose(found["mean"], means, atol=2e-5)
    if not fills_masks:
        assert export_run(tmp_path).signatures().keys() == {"serving_default", "ids", "tokens"}  # an embedding
        return
    texts = [f"{tokenizer.id_to_token(tokenizer.mask_id)} of"]
    [[guesses]] = fill_mask(*loaded, texts, top_k=3)  # the dynamic export, operation by operation
    found = answer(export_run(tmp_path, static=True, top_k=3), texts)
    assert [token.decode() for token in found["tokens"][0, 0]] == [token for token, _ in guesses]


def test_an_imported_xlnet_is_written(tmp_path):
    bert_tf.import_run(FIXTURES / "xlnet", tmp_path / "run")
    path = export_run(tmp_path / "run", sequence_length=16)
    vectors = tf.saved_model.load(str(path)).signatures["serving_default"](text=tf.constant(TEXTS))
    assert vectors["mean"].shape == (3, 12) and np.isfinite(vectors["mean"]).all()
