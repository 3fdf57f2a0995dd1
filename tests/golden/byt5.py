"""Writes tests/fixtures/tokenizers/byt5.json: what Hugging Face's ByT5Tokenizer makes of texts and of ids.

Run by hand, in an environment of its own with transformers (5.23 was used):

    python tests/golden/byt5.py tests/fixtures/tokenizers/byt5.json

`texts`: each with its ids, with the ids of the whole sequence, and what `decode` makes of them. `ids`: random rows, many
of them no UTF-8, with their texts. `files`: the folder of a tokenizer with three sentinels and a token of its own.
"""

import json
import random
import sys
import tempfile
from pathlib import Path

from transformers import ByT5Tokenizer

TEXTS = (
    "", " ", "The dog chases a ball in the park.", "모든 국민은 법 앞에 평등하다.", "한글", "👩‍👩‍👧 🏳️‍🌈 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "e\u0301\u0323 \u0301 a\u0308", "\x00\x01\x07\x1b\x7f\u200b\ufeff", "a\tb\nc\r\n", "\ufffd\uffff\U0010ffff", "नमस्ते مرحبا ไทย",
    "<extra_id_0>", "법 <extra_id_0> 평등 <extra_id_124><extra_id_12>", "<extra_id_125> <extra_id_1", "<EXTRA_ID_0>",
    "a </s> b", "<pad> <unk>\t</s>", "x<unk>y", " <pad>\u3000z ", "<0x41> A",
)  # fmt: skip


def main(path):
    tokenizer = ByT5Tokenizer()
    texts = []
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False).input_ids
        row = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids)}
        # It adds no second </s> where the text ends with one; this library's `pack` always adds it.
        texts.append(row | {"sequence": tokenizer(text).input_ids} if ids[-1:] != [1] else row)
    draw = random.Random(0)
    bytes_of_text = [3 + byte for byte in "한é🏳a€\x00".encode()]
    rows = [draw.choices(bytes_of_text, k=draw.randint(0, 12)) for _ in range(60)]
    rows += [draw.choices(range(384), k=draw.randint(0, 12)) for _ in range(60)]
    ids = [
        {"ids": r, "decoded": tokenizer.decode(r), "text": tokenizer.decode(r, skip_special_tokens=True)} for r in rows
    ]
    small = ByT5Tokenizer(extra_ids=3)
    small.add_tokens(["<문단>"], special_tokens=True)
    with tempfile.TemporaryDirectory() as folder:
        small.save_pretrained(folder)
        files = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in sorted(Path(folder).iterdir())}
    text = "가 <extra_id_2> <문단>나"
    own = {"text": text, "ids": small(text, add_special_tokens=False).input_ids, "files": files}
    golden = {"texts": texts, "ids": ids, "own": own}
    Path(path).write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
