"""Published checkpoints, imported and exported: the written version answers as the model."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from opened import objective_and_tokenizer

import bert_tf
from bert_tf.export import ServedEmbedding, export_run
from bert_tf.export.fill_mask import ServedMaskedLM
from bert_tf.testing import check_served

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
LENGTH = 16  # the positions of the fixtures
TEXTS = ["the people", "", "peace and war, tax and law: the nation and the states"]


@pytest.fixture(scope="module")
def imported(request, tmp_path_factory):
    """(folder of the run, the `LanguageModel` that was written), of families whose texts or positions are not BERT's.

    XLNet's special tokens stand at the end, GPT has none, and RoBERTa's positions begin behind its padding id.
    """
    folder = tmp_path_factory.mktemp(request.param)
    opened = bert_tf.load(FIXTURES / request.param, family=request.param)
    opened.save(folder, format="run")
    return folder, opened


@pytest.mark.slow
@pytest.mark.parametrize("imported", ["roberta"], indirect=True)
def test_it_is_exported_and_answers(imported):
    folder, _ = imported
    objective, tokenizer = objective_and_tokenizer(folder)
    mask = tokenizer.id_to_token(tokenizer.mask_id)
    texts = [*TEXTS, f"{mask} of the {mask}", mask]
    answer = check_served(export_run(folder, precision="float32"), texts)
    guesses = ServedMaskedLM(objective, tokenizer, LENGTH).fill(texts[3:])
    for found, masks in zip(answer["tokens"][3:], guesses, strict=True):
        for tokens, best in zip(found, masks):
            assert [token.decode() for token in tokens] == [token for token, _ in best]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("imported", ["xlnet", "gpt1"], indirect=True)
def test_its_vectors_are_those_of_the_encoder(imported, static):
    loaded = imported[1]
    module = ServedEmbedding(loaded.encoder, loaded.tokenizer, LENGTH, static=static)
    answer = module.answer_text(tf.constant(TEXTS))
    for text, cls, mean in zip(TEXTS, answer["cls"].numpy(), answer["mean"].numpy(), strict=True):
        tokenizer = loaded.tokenizer
        features = tokenizer.pack(tokenizer.tokenize(tf.constant([text])), sequence_length=LENGTH, dynamic=True)
        vectors, ids = np.asarray(loaded.encoder(features)["sequence_output"])[0], features["token_ids"].numpy()[0]
        if not features["padding_mask"].numpy().any():  # GPT's tokenizers add no special tokens to an empty text
            vectors = 0 * vectors
        # XLNet's is last, too.
        position = -1 if loaded.encoder.structure == "decoder" else list(ids).index(tokenizer.cls_id)
        np.testing.assert_allclose(mean, vectors.mean(0), atol=2e-5)
        np.testing.assert_allclose(cls, vectors[position], atol=2e-5)
