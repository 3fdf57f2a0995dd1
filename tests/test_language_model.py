"""What `bert_tf.load` returns: the verbs, on the small published models of the fixtures."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.config import build, to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import GenerationConfig
from bert_tf.models import build_backbone, describe
from bert_tf.objectives import MaskedLM
from bert_tf.objectives.settings import ObjectiveConfig
from bert_tf.tasks import build_task
from bert_tf.training.converting import write_run

FIXTURES = Path(__file__).parent / "fixtures"
BERT, GPT2 = FIXTURES / "checkpoints" / "bert", FIXTURES / "checkpoints" / "gpt2"


@pytest.fixture(scope="module")
def bert():
    return bert_tf.load(BERT)


@pytest.fixture(scope="module")
def gpt():
    return bert_tf.load(GPT2)


def test_a_text_has_one_vector_and_a_list_a_row_each(bert):
    texts = ["the law", "the people of the war and the law", "a"]
    vectors = bert.embed(texts)
    assert vectors.shape == (3, bert.config.hidden_size) and vectors.dtype == np.float32
    for text, vector in zip(texts, vectors):
        row = bert.tokenizer.pack(bert.tokenizer.tokenize([text]), dynamic=True)
        mean = np.asarray(bert.encoder(row)["sequence_output"])[0].mean(axis=0)
        np.testing.assert_allclose(vector, mean, atol=1e-5)
        np.testing.assert_allclose(bert.embed(text), vector, atol=1e-5)
    unit = bert.embed(texts, normalize=True, batch_size=2)
    np.testing.assert_allclose(unit, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-5)
    assert np.abs(bert.embed(texts, pooling="cls") - vectors).max() > 0.01
    assert bert.embed([]).shape == (0, bert.config.hidden_size)
    with pytest.raises(DataError, match="the texts are 5; give a text, or a list of texts"):
        bert.embed(5)
    with pytest.raises(ConfigError, match="pooling is 'men'; did you mean 'mean'"):
        bert.embed(texts, pooling="men")


def test_later_answers_are_one_graph_with_the_same_numbers():
    lm = bert_tf.load(BERT)
    texts = ["the law", "the people of the war and the law", "a", "of the union"]
    vectors, masks = [], []
    for _ in range(5):
        vectors.append(lm.embed(texts, pooling="cls"))
        masks.append(lm.fill_mask("the [MASK] of [MASK]"))
    assert ["graph" in vars(module._here) for module, _ in lm._modules.values()] == [True] * 2
    for later in vectors[1:]:
        np.testing.assert_allclose(later, vectors[0], atol=1e-6)
    guesses = [[[token for token, _ in best] for best in row] for row in masks]
    assert guesses == [guesses[0]] * 5
    lm.encoder.embedding_table.assign(0 * lm.encoder.embedding_table)
    zeroed = lm.embed(texts, pooling="cls")
    assert np.abs(zeroed - vectors[0]).max() > 0.01  # the graph reads the weights anew
    value, *_ = (layer for layer in lm.encoder._flatten_layers() if layer.name == "value")
    value.enable_lora(2)
    value.lora_kernel_b.assign(value.lora_kernel_b + 1)
    assert np.abs(lm.embed(texts, pooling="cls") - zeroed).max() > 1e-4  # layers that changed are traced again


def test_masks(bert):
    ((best, *_),) = bert.fill_mask("the [MASK] of people")
    assert bert.fill_mask(["the [MASK] of people"], top_k=1) == [[[best]]]
    with pytest.raises(DataError, match="is not fine-tuned|holds no fine-tuned model"):
        bert.predict("the law")


def test_texts_are_written_as_the_generator_writes_them(gpt):
    (answer,) = gpt.generator(["the"], GenerationConfig(max_new_tokens=4))[0]
    assert gpt.generate("the", max_new_tokens=4) == answer.text
    assert "".join(gpt.stream("the", max_new_tokens=4)) == answer.text
    assert gpt.generate(["the", "a"], max_new_tokens=4)[0] == answer.text
    several = gpt.generate("the", max_new_tokens=2, method="beam_search", beams=3, n_best=2)
    assert len(several) == 2 and all(isinstance(text, str) for text in several)
    with pytest.raises(ConfigError, match="unknown key 'max_new_token'; did you mean 'max_new_tokens'"):
        gpt.generate("the", max_new_token=4)
    with pytest.raises(ConfigError, match="with causal_lm cannot fill masks; .* masked_lm"):
        gpt.fill_mask("the [MASK]")


def test_scores(gpt):
    pairs = [("the", " a"), ("the a", " the")]
    expected = [score.log_likelihood for score in gpt.scorer.continuations(pairs)]
    assert gpt.score(pairs) == pytest.approx(expected)
    assert gpt.score("the", " a") == pytest.approx(expected[0], abs=1e-5)


def test_what_was_trained_in_memory_is_saved_and_exported(tmp_path):
    model = bert_tf.load(BERT)
    head = model.objective.masked_lm_head.output_bias
    head.assign(np.arange(head.shape[0], dtype="float32"))
    expected = model.fill_mask("the [MASK] of people")
    for format in ("run", "hf"):
        model.save(tmp_path / format, format)
        assert bert_tf.load(tmp_path / format).fill_mask("the [MASK] of people")[0][0][0] == expected[0][0][0]
    path = model.export(tmp_path / "served", sequence_length=16)
    served = tf.saved_model.load(str(path)).signatures["serving_default"](text=tf.constant(["the [MASK] of people"]))
    assert served["tokens"].numpy()[0, 0, 0].decode() == expected[0][0][0]
    with pytest.raises(ConfigError, match="is not a run directory; say where the export is written"):
        model.export()


def test_a_head_that_was_trained_in_memory_is_published_without_the_others(bert, tmp_path):
    """No published format holds SpanBERT's second head, so that another objective is made for it."""
    settings = build(ObjectiveConfig, {"span_boundary": True, "masking": {"strategy": "span"}})
    objective = MaskedLM.from_settings(build_backbone(bert.config), settings)
    record = {"model": describe(bert.config), "objective": to_dict(settings), "data": {"sequence_length": 16}}
    write_run(tmp_path / "run", record, bert.tokenizer, {v.path: np.asarray(v) for v in objective.weights})
    opened = bert_tf.load(tmp_path / "run")
    bias = opened.objective.masked_lm_head.output_bias
    bias.assign(np.arange(bias.shape[0], dtype="float32"))
    opened.save(tmp_path / "hf", "hf")
    published = bert_tf.load(tmp_path / "hf").objective.masked_lm_head.output_bias
    np.testing.assert_array_equal(published, np.arange(bias.shape[0]))


def test_answers_of_a_task(bert, tmp_path):
    task = build_task({"kind": "classification", "labels": ("no", "yes"), "sequence_length": 16}, bert.tokenizer)
    made = task.model(bert_tf.load(BERT, fresh=("pooler",)).encoder)
    record = {"model": describe(bert.config), "task": to_dict(task.config)}
    write_run(tmp_path / "run", record, bert.tokenizer, {v.path: np.asarray(v) for v in made.variables}, task=task)
    tuned = bert_tf.load(tmp_path / "run")
    one, two = tuned.predict(["the law", "a war"])
    assert [tuned.predict(text)["label"] for text in ("the law", "a war")] == [one["label"], two["label"]]
    (tmp_path / "test.tsv").write_text(f"text\tlabel\nthe law\t{one['label']}\n")
    assert tuned.evaluate(tmp_path / "test.tsv", report=True)["accuracy"] == 1.0
    table = {"words": ["the law", "a war"], "label": [one["label"], two["label"]]}
    assert tuned.evaluate(table, {"text": "words"})["accuracy"] == 1.0
