"""Guessing encodings: real sentences of eight languages, whole and in pieces, and what is no text."""

import random
import subprocess

import pytest

from bert_tf.encodings import conversion_advice, guess_encoding

TEXTS = {
    "Korean": "모든 국민은 법 앞에 평등하다. 이 영화는 정말 재미있었고 배우들의 연기도 훌륭했다. 하지만 결말이 조금 아쉬웠다. "
    "세종대왕이 훈민정음을 창제하여 반포하였다. 오늘 아침에는 비가 많이 내려서 길이 막혔다. 평점 1점도 아깝다.",
    "Japanese": "日本国民は、正当に選挙された国会における代表者を通じて行動し、われらとわれらの子孫のために、自由のもたらす恵沢を確保する。"
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。東京タワーは港区にある。",
    "Chinese": "中华人民共和国是工人阶级领导的社会主义国家。这家酒店的服务很好，房间也很干净，就是早餐种类少了一点。"
    "人工智能是计算机科学的一个分支。今天天气很好，我们去公园散步吧。",
    "Chinese, traditional": "人民有居住及遷徙之自由。這家餐廳的服務很好，環境也很乾淨，就是價格有點貴。人工智慧是電腦科學的一個分支。"
    "今天天氣很好，我們去公園散步吧。人民有言論、講學、著作及出版之自由。",
    "German": "Die Würde des Menschen ist unantastbar. Über den Wolken muß die Freiheit grenzenlos sein. Männer und Frauen "
    "sind gleichberechtigt. Öffentliche Ämter sind für jeden zugänglich. „Grüß Gott“ sagte er – und ging.",
    "French": "À Noël, où un zéphyr haï me vêt de glaçons würmiens, je dîne d'exquis rôtis de bœuf au kir à l'aÿ d'âge mûr ! "
    "L’été dernier, nous avons été à la plage, c’était très agréable. Ça coûte 10 €. Être ou ne pas être, voilà.",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах. Мой дядя самых честных правил, когда не в "
    "шутку занемог, он уважать себя заставил. Москва — столица России. Отличный фильм, всем советую.",
}
LEGACY = [
    ("Korean", "cp949"), ("Japanese", "cp932"), ("Japanese", "euc-jp"), ("Chinese", "gb18030"),
    ("Chinese, traditional", "big5"), ("Chinese, traditional", "gb18030"), ("German", "cp1252"), ("French", "cp1252"),
    ("Russian", "cp1251"), ("Russian", "koi8-r"),
]  # fmt: skip


@pytest.mark.parametrize("language, name", LEGACY)
def test_languages_in_their_encodings(language, name):
    text, draw = TEXTS[language], random.Random(0)
    assert guess_encoding(b"plain ASCII before it\n" * 20_000 + text.encode(name, "ignore")) == name
    pieces = [text[at : at + 60] for at in (draw.randrange(len(text) - 60) for _ in range(100))]
    encoded = [piece.encode(name, "ignore") for piece in pieces if not piece.isascii()]
    assert sum(guess_encoding(data) == name for data in encoded) >= 0.98 * len(encoded) > 50


@pytest.mark.parametrize("language, name", [pair for pair in LEGACY if pair[1] not in ("cp1252", "cp1251", "koi8-r")])
def test_a_sample_that_ends_within_a_character(language, name):
    data = (TEXTS[language] * 100).encode(name, "ignore")
    assert [guess_encoding(data[:length]) for length in (400, 401, 402, 403)] == [name] * 4
    for before in range(4):  # at its own end, too
        assert guess_encoding(b"x" * before + data) == name


@pytest.mark.parametrize("language", TEXTS)
def test_unicode(language):
    text = TEXTS[language].replace("。", "。\n")
    for name in ("utf-8", "utf-16", "utf-16le", "utf-16be", "utf-32"):
        assert guess_encoding(text.encode(name)) == name
    assert guess_encoding(text.encode("utf-8-sig")) == "utf-8"
    assert guess_encoding(text.encode("utf-16")[:81]) == "utf-16"
    assert guess_encoding(text.encode()[:-2]) == "utf-8"  # the end of a sample may be cut off
    if language != "German":  # too few letters of two bytes
        assert guess_encoding(text.encode().replace("\u3002".encode(), b"\xff", 1) + b"\xfe.") == "utf-8"


def test_what_is_no_text():
    assert guess_encoding(b"") == guess_encoding(b"ASCII") == "utf-8"
    assert guess_encoding(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))) is None
    assert guess_encoding(random.Random(0).randbytes(1000)) is None
    assert conversion_advice("a.png", bytes(range(256))) == "it does not look like text"


def test_the_advice_can_be_pasted(tmp_path):
    path = tmp_path / "two words.txt"
    path.write_bytes(TEXTS["Korean"].encode("cp949"))
    advice = conversion_advice(path, path.read_bytes())
    assert advice.startswith("it looks like cp949; convert it: iconv -f cp949 -t utf-8 '")
    subprocess.run(advice.partition("convert it: ")[2], shell=True, check=True)
    assert (tmp_path / "two words.txt.utf8").read_text(encoding="utf-8") == TEXTS["Korean"]
    assert "iconv -f cp1252" in conversion_advice("a.txt", b"caf\xe9")
    advice = conversion_advice("a.txt", TEXTS["Korean"].encode() + b"\xff")
    assert advice == "the rest of it is UTF-8, so it is damaged there"
