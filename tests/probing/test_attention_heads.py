"""Attention for looking at: the model's probabilities, words from tokens, and the page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fakes import bert, tokenizer_of
from opened import encoder_and_tokenizer
from reporting.browser import BROWSER, browse

from bert_tf.cli.main import main
from bert_tf.errors import DataError
from bert_tf.probing import TextAttention, text_attention, write_attention_page

TOKENIZER = tokenizer_of("the un ##believ ##able film is good . <script>")
CHECKPOINTS = Path(__file__).parents[1] / "fixtures" / "checkpoints"


@pytest.fixture(scope="module")
def encoder():
    return bert(TOKENIZER, 4, positions=16, heads=4, initializer_range=0.5, output_attention_scores=True)


def test_the_model_s_probabilities(encoder):
    found = text_attention(encoder, TOKENIZER, "the unbelievable film", "is good")
    assert found.tokens == "[CLS] the un believ able film [SEP] is good [SEP]".split()
    assert found.words == [0, 1, 2, 2, 2, 3, 4, 5, 6, 7]
    row = {"token_ids": np.array([[2, 5, 6, 7, 8, 9, 3, 10, 11, 3]]), "segment_ids": np.array([[0] * 7 + [1] * 3])}
    expected = np.stack(encoder(row)["attention_scores"])[:, 0]
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    with pytest.raises(DataError, match="has 18 tokens, and at most 16 can be shown"):
        text_attention(encoder, TOKENIZER, "film " * 16)


def test_words_sum_what_is_looked_at_and_average_who_looks():
    weights = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]], np.float32)[None, None]
    words = TextAttention(["a", "un", "do"], [0, 1, 1], ["a", "undo"], weights).of_words()
    assert words.tokens == ["a", "undo"]
    np.testing.assert_allclose(words.weights[0, 0], [[0.2, 0.8], [0.25, 0.75]], atol=1e-6)


@pytest.mark.parametrize(("family", "tokens", "words"), [
    ("roberta", "<s> t he ␣ L a w s ␣ é é . </s> </s> t </s>", "<s> the Laws é . </s> </s> t </s>"),
    ("albert", "[CLS] t h e ␣ L a w s ␣ é <unk> [SEP] t [SEP]", "[CLS] the Laws é <unk> [SEP] t [SEP]"),
])  # fmt: skip
def test_tokens_are_spelled_as_in_the_text(family, tokens, words):
    """Not as in the vocabulary, where byte-level BPE has Ġ for a space, and a letter for each byte."""
    found = text_attention(*encoder_and_tokenizer(CHECKPOINTS / family), "the Laws é.", "t")
    assert (found.tokens, found.of_words().tokens) == (tokens.split(), words.split())


def test_the_page(encoder, tmp_path):
    path = tmp_path / "attention.html"
    attention = text_attention(encoder, TOKENIZER, "the unbelievable film")
    attention.tokens[5] = "</script><b>"  # whatever a token is, it stays text
    write_attention_page(attention, path, "A <title>")
    page = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert data["tokens"]["tokens"][5] == "</script><b>" and data["words"]["tokens"][2] == "unbelievable"
    weights = np.array(data["tokens"]["weights"]).reshape(2, 4, 7, 7)
    np.testing.assert_allclose(weights / 255, attention.weights, atol=0.5 / 255 + 1e-6)
    assert page.count("<b>") == 0 and "https://" not in page and "A &lt;title&gt;" in page
    if BROWSER is None:
        pytest.skip("no chromium or chrome is installed")
    keys = "<script>for (const key of ['ArrowRight', 'ArrowDown', 'w']) document.onkeydown(new KeyboardEvent('keydown', {key}));</script>"
    page = re.sub(r"; script-src 'sha256-[^']*'", "", page).replace("default-src 'none'; ", "")
    path.write_text(page.replace("</body>", f"{keys}</body>"))
    dom, console = browse(path)
    assert not console and "layer 2, head 2</output>" in dom and ">unbelievable</text>" in dom
    assert dom.count("<canvas") == 8


def test_the_command(tmp_path, capsys):
    bert = str(CHECKPOINTS / "bert")
    out = tmp_path / "a.html"
    assert main(["probe", "attention", bert, "the law of people", "a war", "--output", str(out)]) == 0
    assert "layers  heads  tokens" in capsys.readouterr().out and "Attention of bert" in out.read_text()
    assert json.loads((tmp_path / "a.json").read_text())["model"]["rows"]["the law of people"]["layers"] == 2
