"""The uses of a word: their vectors by plain calls, cosines and neighbours by their definitions, and the map."""

import numpy as np
import pytest
from fakes import bert, tokenizer_of

from bert_tf.errors import DataError
from bert_tf.probing import LayerReader, WordUse, WordUses
from bert_tf.probing.word_uses import use_vectors

TOKENIZER = tokenizer_of("the ri ##ver bank money is a of good .")
ROWS = ["The river bank is good.\tshore", "a bank of the river\tshore", "money of the bank\tmoney", "a bank.\tmoney"]


@pytest.fixture(scope="module")
def encoder():
    return bert(TOKENIZER, 2, positions=9, output_hidden_states=True)


def test_files(tmp_path):
    (tmp_path / "a.tsv").write_text("text\tsense\n" + "\n".join(ROWS) + "\n")
    (tmp_path / "a.txt").write_text("Bank, bank\nbanks and bank_2\n\nthe BANK-bank\n")
    found = WordUses().read("bank", tmp_path / "a.tsv")
    assert found[0] == WordUse("The river bank is good.", 10, 14, "shore") and len(found) == 4
    found = WordUses().read("bank", tmp_path / "a.txt")
    assert ([use.start for use in found], {use.sense for use in found}) == ([0, 6, 4, 9], {None})
    assert len(WordUses().read("bank", tmp_path / "a.txt", most=3)) == 3
    (tmp_path / "k.txt").write_text("은행에 갔다. 은행은 닫혔다.\n새은행 은행\n我去銀行，銀行在哪裡？大銀行\n")
    assert [use.start for use in WordUses().read("은행", tmp_path / "k.txt")] == [0, 8, 4]
    assert len(WordUses().read("銀行", tmp_path / "k.txt")) == 3
    with pytest.raises(DataError, match="a.txt has 'money' 0 times; at least 3"):
        WordUses().read("money", tmp_path / "a.txt")


def test_vectors_are_the_mean_of_the_word_s_tokens(encoder):
    uses = [WordUse("the river bank", 4, 9), WordUse("a good bank of money is the river the good money.", 28, 33)]
    found = use_vectors(LayerReader(encoder, TOKENIZER), uses)
    of_first = np.stack(encoder({"token_ids": np.array([[2, 5, 6, 7, 8, 3]])})["hidden_states"])[:, 0, 2:4].mean(axis=1)
    np.testing.assert_allclose(found[:, 0], of_first, atol=1e-5)
    # Of the long text the seven tokens around the word: "money is the ri ##ver the good".
    row = {"token_ids": np.array([[2, 9, 10, 5, 6, 7, 5, 13, 3]])}
    np.testing.assert_allclose(found[:, 1], np.stack(encoder(row)["hidden_states"])[:, 0, 4:6].mean(axis=1), atol=1e-5)


def test_numbers_by_their_definitions(encoder, tmp_path):
    (tmp_path / "a.tsv").write_text("text\tsense\n" + "\n".join(ROWS) + "\n")
    uses = WordUses().read("bank", tmp_path / "a.tsv")
    table = WordUses(layer=1).run(LayerReader(encoder, TOKENIZER), uses)
    (*cosines, _), (*within, _), (*between, _), (*nearest_of_sense, chance) = (values for _, values in table.rows)
    vectors = use_vectors(LayerReader(encoder, TOKENIZER), uses).astype(np.float64)

    def cosine(layer, i, j):
        a, b = vectors[layer, [i, j]]
        return a @ b / np.sqrt((a @ a) * (b @ b))

    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    for layer in range(3):
        same = [cosine(layer, i, j) for i, j in pairs if i // 2 == j // 2]
        other = [cosine(layer, i, j) for i, j in pairs if i // 2 != j // 2]
        assert within[layer] == pytest.approx(np.mean(same), abs=1e-5)
        assert between[layer] == pytest.approx(np.mean(other), abs=1e-5)
        assert cosines[layer] == pytest.approx(np.mean(same + other), abs=1e-5)
        nearest = [max((j for j in range(4) if j != i), key=lambda j: cosine(layer, i, j)) for i in range(4)]
        assert nearest_of_sense[layer] == np.mean([i // 2 == j // 2 for i, j in enumerate(nearest)])
        if layer == table.facts["layer"]:
            assert [near[0][0] for near in table.facts["neighbours"]] == nearest
    assert chance == pytest.approx(1 / 3) and table.facts["layer"] == 1
    centred = vectors[1] - vectors[1].mean(axis=0)
    _, singular, _ = np.linalg.svd(centred)
    np.testing.assert_allclose(np.linalg.norm(table.facts["points"], axis=0), singular[:2], rtol=1e-6)


def test_without_senses(encoder):
    text = "a bank of the river"
    uses = [WordUse(text, 2, 6), WordUse(text, 14, 19), WordUse("the bank", 4, 8)]
    reader = LayerReader(encoder, TOKENIZER)
    table = WordUses().run(reader, uses)
    names = [name for name, _ in table.beside(table).all_rows()]
    assert names == ["cosine of two uses", "cosine of two uses: random weights"] and table.facts["layer"] == 2
    with pytest.raises(DataError, match="no layer 3; the model has 0 .* to 2"):
        WordUses(layer=3).run(reader, uses)
