"""A published checkpoint of every family, imported, exported and asked."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.export import export_run, load_pretrained
from bert_tf.export.fill_mask import fill_mask

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
#: Folder of the fixtures -> what it is imported as, and whether it fills masks.
FAMILIES = {
    "bert": ("bert", True),
    "spanbert": ("spanbert", True),  # of BERT's shape
    "roberta": ("roberta", True),
    "albert": ("albert", True),
    "distilbert": ("distilbert", True),
    "electra": ("electra", False),
    "electra_generator": ("electra", True),
    "modernbert": ("modernbert", True),
    "xlnet": ("xlnet", False),
}
TEXTS = ["the people of the united states", "", "peace and war, tax and law: the nation and the states"]


def asking(path):
    function = tf.saved_model.load(str(path)).signatures["serving_default"]
    return lambda texts: {key: value.numpy() for key, value in function(text=tf.constant(texts)).items()}


@pytest.mark.parametrize("name", FAMILIES)
def test_an_imported_family_is_exported_and_answers(name, tmp_path):
    family, fills_masks = FAMILIES[name]
    folder = FIXTURES / ("bert" if name == "spanbert" else name)
    bert_tf.import_run(folder, tmp_path / "run", family=family)
    objective, tokenizer = load_pretrained(tmp_path / "run")
    encoder = bert_tf.load(tmp_path / "run").encoder
    length = min(encoder.config.max_positions, 512)

    ids = tokenizer.pack(tokenizer.tokenize(tf.constant(TEXTS)), sequence_length=length, dynamic=True)
    sequence, real = np.asarray(encoder(ids)["sequence_output"]), ids["padding_mask"].numpy()
    is_cls = ids["token_ids"].numpy() == tokenizer.cls_id
    assert (is_cls.sum(1) == 1).all()
    for static in (False, True):
        ask = asking(export_run(tmp_path / "run", kind="embedding", static=static))
        answer = ask(TEXTS)
        np.testing.assert_allclose(answer["cls"], sequence[is_cls], atol=2e-5)
        np.testing.assert_allclose(answer["mean"][0], sequence[0][real[0]].mean(0), atol=2e-5)
        assert ask(np.array([], object).astype(str))["mean"].shape == (0, encoder.config.hidden_size)
        if fills_masks and static:  # the other layout of a batch is seen above
            mask = tokenizer.id_to_token(tokenizer.mask_id)
            texts = [f"the people of the {mask}", f"the {mask} of the union"]
            answer = asking(export_run(tmp_path / "run", static=static, top_k=3))(texts)
            for row, guesses in zip(answer["tokens"], fill_mask(objective, tokenizer, texts, top_k=3), strict=True):
                assert [token.decode() for token in row[0]] == [token for token, _ in guesses[0]]
    shutil.rmtree(tmp_path / "run")
