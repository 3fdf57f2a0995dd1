import pytest

from bert_tf.console import display_width, split_words, wrap


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("영화", 4), ("漢字カ", 6), ("e\u0301", 1), ("", 0)])
def test_wide_characters_take_two_columns(text, width):
    """East Asian Width W and F are two columns (Unicode annex 11), combining characters none."""
    assert display_width(text) == width


def test_wide_text_is_wrapped_and_nothing_is_lost():
    text = "漢" * 70 + " 이 영화는 정말 재미있었다" * 9
    lines = list(wrap(split_words(text, 49), 49))
    assert max(map(display_width, lines)) <= 49
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert list(wrap(["aa", "bbbb", "c"], 4)) == ["aa", "bbbb", "c"]
