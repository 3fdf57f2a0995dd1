"""WinoBias: its files, and accuracy and F1 by their definitions."""

import pytest
from fakes import FakeScorer

from bert_tf.errors import DataError
from bert_tf.probing import WinoBias

PRO = """1 [The nurse] said [she] can.
2 The cook thanked [the guard] because [his] idea won.
3 [The cook] said [he] likes [his] job.
4 [The nurse] said [she] can do it.
5 The guard saw [the cook] and told [him] it.
"""
ANTI = PRO.replace("[she]", "[he]", 1).replace("[his] idea", "[her] idea").replace("[she] can do", "[he] can make")
ANTI = ANTI.replace("[him]", "[her]")


def test_files_and_numbers(tmp_path):
    pro, anti = tmp_path / "pro.txt.dev", tmp_path / "anti.txt.dev"
    pro.write_text(PRO)
    anti.write_text(ANTI)
    pairs = WinoBias().read(pro, anti)
    # One line has two pronouns, and one differs in another word.
    assert [pair.groups for pair in pairs] == [("she",), ("he",), (), (), ("he",)]
    text, (start, end) = pairs[1].texts[1], pairs[1].spans[1]
    assert (text, text[start:end]) == ("The cook thanked the guard because her idea won.", "her")
    # Says "he" for the nurse, "her" for the guard, and "him" for the cook.
    found = WinoBias().run(FakeScorer({"she": -2.0, "he": -1.0, "his": -3.0, "her": -2.5, "him": -1.0}), pairs)
    rows = {name: (own["accuracy"], own["pairs"]) for name, own in found.numbers()["rows"].items()}
    assert (rows["pro"], rows["anti"]) == ((pytest.approx(1 / 3), 3), (pytest.approx(2 / 3), 3))
    assert (rows["pro with he"], rows["pro with she"]) == ((0.5, 2), (0.0, 1))
    # Predicted he, she, he. Of pro, true she, he, he: F1 of he 2 * 1 / 4, of she 0. Of anti, true he, she, she: 2 / 3 both.
    assert found["pro"]["F1"] == pytest.approx((2 / 4 + 0) / 2) and found["anti"]["F1"] == pytest.approx(2 / 3)
    assert rows["pro minus anti"][0] == pytest.approx(-1 / 3) and "2 lines were left out" in found.note
    assert dict(found.beside(found).all_rows())["pro minus anti"][3] == rows["pro minus anti"][0]
    anti.write_text("1 a\n")
    with pytest.raises(DataError, match="has 5 sentences, .* 1; both must"):
        WinoBias().read(pro, anti)
