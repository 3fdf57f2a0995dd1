from rich.cells import cell_len

from bert_tf.console import split_words, wrap


def test_wide_text_is_wrapped_and_nothing_is_lost():
    text = "漢" * 70 + " 이 영화는 정말 재미있었다" * 9
    lines = list(wrap(split_words(text, 49), 49))
    assert max(map(cell_len, lines)) <= 49
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert list(wrap(["aa", "bbbb", "c"], 4)) == ["aa", "bbbb", "c"]
