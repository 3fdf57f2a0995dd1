"""`bert-tf probe` on the small published-format BERT of the fixtures."""

import html
import json
from pathlib import Path

import pytest
from opened import objective_and_tokenizer
from typed_command import error_of, output_of, run

from bert_tf.probing import PROBES, text_scorer

pytestmark = pytest.mark.usefixtures("loaded_once")
BERT = str(Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert")


LABELS = zip(("stereotype", "anti-stereotype", "unrelated"), ("law", "war", "people"))
OPTIONS = [{"gold_label": label, "sentence": f"the {word}"} for label, word in LABELS]
EXAMPLE = {"target": "law", "bias_type": "x", "context": "the BLANK", "sentences": OPTIONS}
#: Probe -> its files, each with two rows, the row of its table, and what that counts of the first rows.
QUESTIONS = {
    "cloze": (["kind\ttext\tanswers\toptions\n" + "facts\tthe ___ of a war\tpeople\tlaw\n" * 2], "facts", 1),
    "lama": (['{"obj_label": "law", "masked_sentences": ["the [MASK]"]}\n' * 2], "lama-0", 1),
    "pairs": (["sentence_good\tsentence_bad\n" + "the war\twar the\n" * 2], "all", 1),
    "crows_pairs": (["sent_more,sent_less,stereo_antistereo,bias_type\n" + "the war,a war,stereo,age\n" * 2], "age", 1),
    "stereoset": ([json.dumps({"data": {"intrasentence": [EXAMPLE] * 2, "intersentence": [EXAMPLE] * 2}})], "all", 2),
    "winobias": (["1 [The law] and [he].\n" * 2, "1 [The law] and [she].\n" * 2], "pro", 1),
    "ettinger": (
        ["item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n" + "0\tthe war\tthe war of a\tpeople\tlaw\n" * 2],
        "ettinger-0, all", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_first_questions_of_each_file(name, tmp_path):
    texts, row, count = QUESTIONS[name]
    suffix = "csv" if name == "crows_pairs" else "tsv"
    files = [tmp_path / f"{name}-{number}.{suffix}" for number in range(len(texts))]
    for file, text in zip(files, texts):
        file.write_text(text)
    out, probe = tmp_path / "probe.json", PROBES[name]()
    printed = output_of(f"probe {name} {BERT} {' '.join(map(str, files))} --most 1 --output {out}")
    found, page = json.loads(out.read_text()), out.with_suffix(".html").read_text()
    table = probe.run(text_scorer(*objective_and_tokenizer(BERT)), probe.read_files(files, most=1))
    assert f"<h2>{html.escape(probe.title, quote=False)}</h2>" in page and "by pseudo-log-likelihood" in printed
    assert found["probe"] == name and found["model"] == table.numbers()
    assert found["random weights"].keys() == found["model"].keys()
    assert found["random weights"] != found["model"] or name not in ("cloze", "lama"), "ranks of other weights differ"
    assert table[row][probe.unit] == count, "of StereoSet also how sentences follow, by next sentence prediction"
    assert ("do not call one fair" in printed) == (name in ("crows_pairs", "stereoset", "winobias"))


def test_questions_in_another_language_are_a_warning(tmp_path, caplog):
    known = tmp_path / "cloze.tsv"
    known.write_text("kind\ttext\tanswers\toptions\nfacts\tthe ___ of a war\tpeople\tlaw\n")
    for questions, warned in (("korean", True), (str(known), False)):
        caplog.clear()
        run(f"probe cloze {BERT} {questions} --most 3 --output {tmp_path}/p")
        warnings = [m for m in caplog.messages if "hold an unknown token" in m]
        assert len(warnings) == warned, "once for both models"


def test_layers(tmp_path):
    file = tmp_path / "words.conll"
    file.write_text("a D\nlaw N\n\nthe D\nwar N\nof P\npeople N\n\n" * 6 + "and C\n\n")
    out = tmp_path / "probe.json"
    printed = output_of(f"probe layers {BERT} {file} {file} --most 12 --no-control --output {out}")
    assert "selectivity" in printed and "likelihood" not in printed
    found = json.loads(out.read_text())
    assert found["model"]["rows"]["tags"]["0"] == 1.0 and found["model"]["classes"]["tags"] == 3
    assert "random weights" not in found


def test_uses_of_a_word(tmp_path):
    uses = ["the law of </b> war\ta", "a law\ta", "people of law\tb", "law and war\tb"]
    (tmp_path / "law.tsv").write_text("\n".join(["text\tsense", *uses, ""]))
    out = tmp_path / "law.html"
    printed = output_of(f"probe word {BERT} law {tmp_path}/law.tsv --set layer=1 --output {out}")
    assert "nearest of same sense: random weights" in printed
    found, page = json.loads((tmp_path / "law.json").read_text())["model"], out.read_text()
    assert len(found["points"]) == 4 and found["uses"][2]["text"] == "people of law" and found["layer"] == 1
    assert "<title>1 (a): the law of &lt;/b&gt; war</title>" in page and page.count('class="dot c1"') >= 2


def test_trees(tmp_path):
    words = [("the", "DET", 2, "det"), ("law", "NOUN", 0, "root"), ("of", "ADP", 4, "case"), ("war", "NOUN", 2, "nmod")]
    lines = [f"{i}\t{word}\t_\t{tag}\t_\t_\t{head}\t{kind}\t_\t_" for i, (word, tag, head, kind) in enumerate(words, 1)]
    file = tmp_path / "a.conllu"
    file.write_text("\n".join([*lines, ""] * 6))
    printed, found = "", {}
    for files in (f"heads {BERT} {file}", f"positions {BERT} {file}", f"trees {BERT} {file} {file}"):
        printed += output_of(f"probe {files} --most 4 --output {tmp_path}/heads.html")
        found[files.split()[0]] = json.loads((tmp_path / "heads.json").read_text())
    assert "attention to relations" in printed and "attention to positions" in printed
    assert "UUAS: random weights" in printed and found["trees"]["model"]["count"] == 4
    assert found["heads"]["random weights"]["rows"]["all"]["words"] == 12


@pytest.mark.parametrize(("arguments", "message"), [
    ("cloze no_such_run klingon", "klingon"), ("closed no_such_run", "'probe' is 'closed'; did you mean 'cloze'"),
    ("pairs no_such_run a.jsonl --set relations=b.jsonl", "'relations'"),
    ("word no_such_run bank", "word reads WORD and CORPUS, not 1: ['bank']"),
    ("ettinger no_such_run", "ettinger reads PATH and OTHERS, not 0"),
])  # fmt: skip
def test_errors_come_before_the_model_is_loaded(arguments, message):
    assert message in error_of(f"probe {arguments}")
