"""Writes tests/fixtures/tokenizers/unigram.tar.xz: small unigram models as Hugging Face's tokenizer.json.

Run by hand, first in the project's environment, then in one of its own with transformers (5.x was used):

    python tests/golden/unigram.py train unigram
    python tests/golden/unigram.py convert unigram tests/fixtures/tokenizers/unigram.tar.xz

For each of ALBERT, XLNet and T5 a folder with the spiece.model that `train_unigram` gives for a part of
the bundled sample and the tokenizer.json that Hugging Face's own converter makes of it. One archive,
since all six files hold the same table of characters, which xz then keeps twice.
"""

import io
import json
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

SAMPLE = Path(__file__).parents[2] / "bert_tf" / "samples" / "state_of_the_union.jsonl"
PIECES = {"albert": 500, "xlnet": 450, "t5": 400}


def train(folder):
    from bert_tf.tokenizers import train_unigram

    texts = [json.loads(line)["text"] for line in SAMPLE.read_text(encoding="utf-8").splitlines()[::8]]
    # Some of what a sample of speeches lacks: other scripts, and digits before commas.
    other = "中文 日本語 Ελλάς Москва हिन्दी한국어 naïve café Ünïcödé"
    texts += [other, "in 1987, of 1999, the 7, and 7, 1,000, 3,"] * 40
    for family, size in PIECES.items():
        (folder / family).mkdir(parents=True, exist_ok=True)
        model = train_unigram(texts, size, family, character_coverage=0.9999).model
        (folder / family / "spiece.model").write_bytes(model)


def convert(folder, archive):
    import sentencepiece
    from tokenizers import AddedToken
    from transformers.convert_slow_tokenizer import AlbertConverter, T5Converter, XLNetConverter

    with tarfile.open(archive, "w:xz", preset=9) as out:
        for family in PIECES:
            file = folder / family / "spiece.model"
            ids = sentencepiece.SentencePieceProcessor(model_file=str(file)).piece_to_id
            slow = SimpleNamespace(
                vocab_file=str(file), keep_accents=False, do_lower_case=family == "albert", _extra_ids=100,
                convert_tokens_to_ids=ids,
            )  # fmt: skip
            converter = {"albert": AlbertConverter, "xlnet": XLNetConverter, "t5": T5Converter}[family]
            whole = converter(slow).converted()
            # What their classes add when they are built around it: each token with a role.
            roles = {
                "albert": ["<pad>", "<unk>", "[CLS]", "[SEP]"],
                "xlnet": ["<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<eop>", "<eod>"],
                "t5": ["</s>", "<unk>", "<pad>", *(f"<extra_id_{i}>" for i in range(100))],
            }[family]
            whole.add_special_tokens(roles)
            if family != "t5":
                mask = "[MASK]" if family == "albert" else "<mask>"
                whole.add_special_tokens([AddedToken(mask, lstrip=True, normalized=False)])
            for name, content in (("spiece.model", file.read_bytes()), ("tokenizer.json", whole.to_str().encode())):
                member = tarfile.TarInfo(f"{family}/{name}")
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    train(Path(sys.argv[2])) if sys.argv[1] == "train" else convert(Path(sys.argv[2]), sys.argv[3])
