"""The corpus, and texts that break tokenizers. They are inputs: kept in FOLDER when the values are written."""

import json

#: What WordPiece, byte-level BPE and SentencePiece do not take alike.
AWKWARD = [
    "", " ", "\n\t\u3000", "a", "The quick brown fox jumps over 12 lazy dogs, isn't it?", "unbelievably antidisestablishmentarian",
    "모든 국민은 법 앞에 평등하다. 이 영화는 정말 좋았다!", "\u1112\u1161\u11ab\u1100\u116e\u11a8 한국", "人人生而自由 文字。", "ひらがなカタカナ漢字",
    "Все люди рождаются свободными", "मानव अधिकार", "مرحبا بالعالم", "กขสวัสดี", "naïve Café façade Ünïcödé", "e\u0301\u0323a \u0301",
    "ﬁ Å ½ ² İ ẞ ß ŉ", "ＡＢＣ １２３", "👩\u200d👩\u200d👧 🏳️ 🙂🙂", "\U00040000\u0378\ue000", "\x00", "a\x00b", "\x01\x7f\u200b", "\ufeffa\ufffd",
    "  spaces \t and\nlines  ", "two  spaces   three", "trailing \n", "\r\nwindows\r\n", "x" * 300, "no spaces " * 30, "(((", "a-b_c/d\\e@f#g",
    "don't can't I'll we've 'tis", "3.14159 1,000,000 10% $5 €7 £9", "http://example.com/a?b=c&d=e", "<html><b>bold</b></html>",
    "[CLS] [SEP] [MASK] [PAD] [UNK]", "the [MASK]of the[MASK] union", "<s> </s> <mask> <pad> <unk>", "<|endoftext|>the end<|endoftext|>",
    "<extra_id_0> and <extra_id_1>", "[mask] <MASK> <Extra_id_0>", "<cls> <sep> <eod> <eop>", "``quotes'' and ''more``", "\u2581 metaspace \u2581a",
    "Fellow citizens of the Senate and House of Representatives:", "THE UNITED STATES", "the united states of america", "McDonald iPhone eBay",
    "def f(x):\n    return x + 1\n", "a\u00adb\u00a0c\u2028d", "…—–“”‘’", "ǅ ǆ Ǆ", "Ａ\u0301", "\u0e33\u0eb3", "सत्यमेव जयते 2024", "1st 2nd 3rd x2 y3z",
    "\u202eright to left\u202c", "a" * 120 + " b", "ok. Ok! OK? o.k.", "é" * 40, "🇰🇷🇩🇪", "tab\tseparated\tvalues", "...!!!???",
]  # fmt: skip
#: Pairs for the layouts, one of them too long.
PAIRS = [
    ("the state", "of the union"),
    ("", "alone"),
    ("alone", ""),
    ("people " * 30, "of the states " * 20),
    ("한국", "naïve 🙂"),
]
#: Documents with what sentences and masks stumble over.
ODD = [
    "모든 국민은 법 앞에 평등하다. 누구든지 차별을 받지 아니한다.\n이 영화는 정말 좋았다! 다시 보고 싶다.",
    "Café au lait, s'il vous plaît. Naïve façade; Ünïcödé everywhere. El niño comió piñata.",
    "🙂 Emoji 👩\u200d👩\u200d👧 in the text 🏳️. And more 🙂🙂.",
    "The [MASK] and the [SEP] are written out. <mask> <s> </s> <|endoftext|> too.",
    "One.\n\n\n\nTwo after empty lines.\n   \nThree.",
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。",
    "x" * 200 + " is one long word. " + "supercalifragilistic " * 20,
    "Short.",
]


def documents():
    """Some 100 kB of speeches in lines of sentences, and the odd documents between them: list of str."""
    from bert_tf.samples import STATE_OF_THE_UNION

    found = []
    for number, line in enumerate(STATE_OF_THE_UNION.read_text("utf-8").splitlines()[:16]):
        words = json.loads(line)["text"].split(" ")
        for start in range(0, 1100, 220):  # the begin of each speech, as documents of unequal length
            text = " ".join(words[start : start + 120 + 10 * number])
            found.append(text.replace(". ", ".\n"))
        found.append(ODD[number % len(ODD)])
    return found


def _paragraphs():
    return "\n\n".join("\n".join(line for line in text.splitlines() if line.strip()) for text in documents()) + "\n"


def _lines():
    rows = [{"text": text, "id": number} for number, text in enumerate(documents()[::3])]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _pairs():
    """Source and target: a sentence, and its words backwards."""
    sentences = [line for text in documents()[:40] for line in text.splitlines() if 2 < len(line.split()) < 40]
    clean = [" ".join(line.replace("\t", " ").split()) for line in sentences]
    return "".join(f"{line}\t{' '.join(reversed(line.split()))}\n" for line in clean[:160])


def _code():
    functions = [
        f"def function_{i}(x):\n\tif x > {i}:\n\t\treturn x * {i}\n\n    # indented\n    return  {i}\n\n\n"
        for i in range(40)
    ]
    return "".join(functions)


#: File of the corpus -> function that makes its content.
FILES = {"speeches.txt": _paragraphs, "speeches.jsonl": _lines, "pairs.tsv": _pairs, "code.txt": _code}
