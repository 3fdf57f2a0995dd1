"""Word in context: pairs by hand, cosines by plain calls, the threshold by trying all, the command."""

import json

import numpy as np
import pytest
from fakes import bert, tokenizer_of

from bert_tf.errors import DataError
from bert_tf.probing import LayerReader, WordInContext, WordUse
from bert_tf.probing.word_in_context import best_threshold

TOKENIZER = tokenizer_of("the ri ##ver bank money is a of good .")
TEXTS = [
    "the river bank is good .", "a bank of the river", "money of the bank", "a good bank", "the bank",
    "bank money is good",
]  # fmt: skip


def line(first, second, label=None):
    row = {"word": "bank", "sentence1": first, "sentence2": second, "idx": 3, "version": 1.1}
    for number, text in ((1, first), (2, second)):
        row |= {f"start{number}": text.index("bank"), f"end{number}": text.index("bank") + 4}
    return json.dumps(row | ({} if label is None else {"label": label})) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wic")
    pairs = [(TEXTS[i], TEXTS[j], (i + j) % 2 == 0) for i in range(6) for j in range(i)]
    (folder / "train.jsonl").write_text("".join(line(*pair) for pair in pairs[:10]))
    (folder / "val.jsonl").write_text("".join(line(*pair) for pair in pairs[10:]))
    return folder


@pytest.fixture(scope="module")
def encoder():
    return bert(TOKENIZER, 2, positions=9, output_hidden_states=True)


def test_files(folder, tmp_path):
    files = folder / "train.jsonl", folder / "val.jsonl"
    first, second, one_sense = WordInContext().read(*files)[0][0]
    assert (first, second) == (WordUse(TEXTS[1], 2, 6), WordUse(TEXTS[0], 10, 14)) and one_sense is False
    assert [pair[2] for pair in WordInContext().read(*files, most=2)[0]] == [False, True]
    (tmp_path / "test.jsonl").write_text(line("a bank", "the bank"))
    with pytest.raises(DataError, match="test.jsonl, line 1: the label is None"):
        WordInContext().read(files[0], tmp_path / "test.jsonl")
    target = {"span1_text": "bank,", "span1_index": 1, "span2_text": "bank", "span2_index": 3}
    row = {"text": "a bank, the bank", "target": target, "label": True}
    (tmp_path / "wsc.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="wsc.jsonl has one text in a row; WiC's files have sentence1 and sentence2"):
        WordInContext().read(tmp_path / "wsc.jsonl", files[1])


def test_the_threshold_is_the_best_of_all():
    generator = np.random.default_rng(0)
    for _ in range(50):
        values, labels = generator.integers(0, 5, 12) / 4, generator.random(12) < 0.6
        threshold, accuracy = best_threshold(values, labels)
        tried = [np.mean((values > t) == labels) for t in np.linspace(-1, 2, 400)]
        assert accuracy == pytest.approx(max(tried)) == np.mean((values > threshold) == labels)
    assert best_threshold(np.array([0.5, 0.5]), np.array([True, True])) == (-0.5, 1.0)
    assert best_threshold(np.array([0.5, 0.5]), np.array([False, False])) == (1.5, 1.0)


def test_numbers_by_their_definitions(encoder, folder):
    train, test = parts = WordInContext().read(folder / "train.jsonl", folder / "val.jsonl")
    found = WordInContext().run(LayerReader(encoder, TOKENIZER), parts)
    (*accuracy, baseline), (*one_sense, _), (*two_senses, _) = (values for _, values in found.rows)

    def vectors(use):
        ids = TOKENIZER.encode(use.text)
        states = np.stack(encoder({"token_ids": np.array([[2, *ids, 3]])})["hidden_states"])[:, 0].astype(np.float64)
        return states[:, 1 + ids.index(8)]

    def cosines(pairs):
        both = [(vectors(a), vectors(b)) for a, b, _ in pairs]
        return np.array([np.sum(a * b, -1) / np.sqrt(np.sum(a * a, -1) * np.sum(b * b, -1)) for a, b in both]).T

    labels, of_test = np.array([pair[2] for pair in test]), cosines(test)
    thresholds = [best_threshold(x, np.array([pair[2] for pair in train])) for x in cosines(train)]
    np.testing.assert_allclose(found.facts["threshold"], [threshold for threshold, _ in thresholds], atol=1e-5)
    wanted = [np.mean((x > threshold) == labels) for x, (threshold, _) in zip(of_test, thresholds)]
    np.testing.assert_allclose(accuracy, wanted)
    np.testing.assert_allclose(one_sense, of_test[:, labels].mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(two_senses, of_test[:, ~labels].mean(axis=1), atol=1e-5)
    best = [accuracy for _, accuracy in thresholds]
    layer = found.facts["layer"]
    assert best[layer] == max(best) and (found.facts["pairs"], baseline) == (5, np.mean(~labels))
    assert found.columns == ["0", "1", "2", "baseline"]
    assert f"Layer {layer}, the best on the training file" in found.note
