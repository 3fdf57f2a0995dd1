"""`bert-tf probe` on the small published-format BERT of the fixtures."""

import json
from pathlib import Path

import pytest
from typed_command import run

from bert_tf.probing import PROBES, text_scorer
from bert_tf.training.loading import load_pretrained

pytestmark = pytest.mark.usefixtures("loaded_once")
BERT = str(Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert")


def test_questions(tmp_path, capsys):
    cloze, pairs, crows = (tmp_path / name for name in ("cloze.tsv", "pairs.tsv", "crows.csv"))
    cloze.write_text("kind\ttext\tanswers\toptions\nfacts\tthe ___ of a war\tpeople\tlaw\nb\ta ___\twar of\tlaw\n")
    pairs.write_text("sentence_good\tsentence_bad\nthe war\twar the\na law\tlaw a\n")
    crows.write_text("sent_more,sent_less,stereo_antistereo,bias_type\nthe war,a war,stereo,age\n")
    out, scorer = tmp_path / "probe.json", text_scorer(*load_pretrained(BERT))
    for name, file, words in (
        ("cloze", cloze, "mean of kinds"), ("pairs", pairs, "minimal pairs"), ("crows_pairs", crows, "do not call one fair")
    ):  # fmt: skip
        run(f"probe {name} {BERT} {file} --output {out}")
        printed, probe = capsys.readouterr().out, PROBES[name]()
        assert f"<h2>{probe.title}</h2>" in out.with_suffix(".html").read_text()
        assert all(text in printed for text in (probe.title, "by pseudo-log-likelihood", words))
        found = json.loads(out.read_text())
        assert found["probe"] == name and found["model"] == probe.run(scorer, probe.read(file)).numbers()
        if name == "cloze":
            random, trained = (found[of]["rows"]["facts"] for of in ("random weights", "model"))
            assert random["questions"] == trained["questions"] == 1
            assert random["median rank"] != trained["median rank"]


def test_questions_in_another_language_are_a_warning(tmp_path, caplog):
    known = tmp_path / "cloze.tsv"
    known.write_text("kind\ttext\tanswers\toptions\nfacts\tthe ___ of a war\tpeople\tlaw\n")
    for questions, warned in (("korean", True), (str(known), False)):
        caplog.clear()
        run(f"probe cloze {BERT} {questions} --most 3 --output {tmp_path}/p")
        warnings = [m for m in caplog.messages if "unknown to the model's tokenizer" in m]
        assert len(warnings) == warned, "once for both models"


def test_layers(tmp_path, capsys):
    file = tmp_path / "words.conll"
    file.write_text("a D\nlaw N\n\nthe D\nwar N\nof P\npeople N\n\n" * 6 + "and C\n\n")
    out = tmp_path / "probe.json"
    run(f"probe layers {BERT} {file} {file} --most 12 --no-control --output {out}")
    printed = capsys.readouterr().out
    assert "selectivity" in printed and "likelihood" not in printed
    found = json.loads(out.read_text())
    assert found["model"]["rows"]["tags"]["0"] == 1.0 and found["model"]["classes"]["tags"] == 3
    assert "random weights" not in found


def test_uses_of_a_word(tmp_path, capsys):
    uses = ["the law of </b> war\ta", "a law\ta", "people of law\tb", "law and war\tb"]
    (tmp_path / "law.tsv").write_text("\n".join(["text\tsense", *uses, ""]))
    out = tmp_path / "law.html"
    run(f"probe word {BERT} law {tmp_path}/law.tsv --set layer=1 --output {out}")
    assert "nearest of same sense: random weights" in capsys.readouterr().out
    found, page = json.loads((tmp_path / "law.json").read_text())["model"], out.read_text()
    assert len(found["points"]) == 4 and found["uses"][2]["text"] == "people of law" and found["layer"] == 1
    assert "<title>1 (a): the law of &lt;/b&gt; war</title>" in page and page.count('class="dot c1"') >= 2


def test_word_in_context(tmp_path, capsys):
    mark = {"start1": 4, "end1": 7, "start2": 0, "end2": 3}
    rows = [
        {"sentence1": "the law of war", "sentence2": f"law and {word}", "label": word == "war"} | mark
        for word in ("war", "people")
    ]
    (tmp_path / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 3))
    file, out = tmp_path / "val.jsonl", tmp_path / "wic.html"
    run(f"probe wic {BERT} {file} {file} --most 4 --output {out}")
    printed = capsys.readouterr().out
    assert "accuracy: random weights" in printed and "4 pairs, by layer" in printed
    found = json.loads((tmp_path / "wic.json").read_text())["model"]["rows"]["accuracy"]
    assert found["0"] == 0.5 and max(found.values()) == 1.0  # without context both pairs are alike
    assert "<svg" in out.read_text()


def test_trees(tmp_path, capsys):
    words = [("the", "DET", 2, "det"), ("law", "NOUN", 0, "root"), ("of", "ADP", 4, "case"), ("war", "NOUN", 2, "nmod")]
    lines = [f"{i}\t{word}\t_\t{tag}\t_\t_\t{head}\t{kind}\t_\t_" for i, (word, tag, head, kind) in enumerate(words, 1)]
    file = tmp_path / "a.conllu"
    file.write_text("\n".join([*lines, ""] * 6))
    printed, found = "", {}
    for files in (f"heads {BERT} {file}", f"positions {BERT} {file}", f"trees {BERT} {file} {file}"):
        run(f"probe {files} --most 4 --output {tmp_path}/heads.html")
        printed += capsys.readouterr().out
        found[files.split()[0]] = json.loads((tmp_path / "heads.json").read_text())
    assert "attention to relations" in printed and "attention to positions" in printed
    assert "UUAS: random weights" in printed and found["trees"]["model"]["count"] == 4
    rows = found["heads"]["random weights"]["rows"]
    assert {name: own["words"] for name, own in rows.items()} == {"all": 12, "det": 4, "case": 4, "nmod": 4}


def test_bias_and_expectations(tmp_path, capsys):
    stereoset, pro, anti, negation = (tmp_path / name for name in ("dev.json", "pro.txt", "anti.txt", "NEG.tsv"))
    labels = ("stereotype", "anti-stereotype", "unrelated")
    row = {"id": "1", "target": "law", "bias_type": "x"}
    inside = [{"gold_label": label, "sentence": f"the {word}"} for label, word in zip(labels, ("law", "war", "people"))]
    after = [{"gold_label": label, "sentence": f"a {word}"} for label, word in zip(labels, ("law", "war", "people"))]
    splits = {"intrasentence": [row | {"context": "the BLANK", "sentences": inside}]}
    splits["intersentence"] = [row | {"context": "the war", "sentences": after}]
    stereoset.write_text(json.dumps({"data": splits}))
    pro.write_text("1 [The law] and [he].\n2 [The war] and [she].\n")
    anti.write_text("1 [The law] and [she].\n2 [The war] and [he].\n")
    columns = "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"
    negation.write_text(columns + "0\tthe war of\tthe war of a\tpeople\tlaw\n")
    counts = {}
    for files in (f"stereoset {BERT} {stereoset}", f"winobias {BERT} {pro} {anti}", f"ettinger {BERT} {negation}"):
        run(f"probe {files} --output {tmp_path}/bias.html")
        rows = json.loads((tmp_path / "bias.json").read_text())["model"]["rows"]
        counts |= {name: own[list(own)[-1]] for name, own in rows.items()}
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("do not call one fair", "NEG, negative", "pro minus anti"))
    assert counts["all"] == 2, "also how sentences follow, by next sentence prediction"
    assert counts["pro"] == 2 == counts["NEG, all"]


def test_the_first_of_each_file(tmp_path):
    scorer = text_scorer(*load_pretrained(BERT))
    cloze, lama, crows, stereoset, pro, anti, negation = files = [tmp_path / f"{name}.jsonl" for name in "clsnpae"]
    rows = [[{"kind": "facts", "text": "the ___ of", "answers": word, "options": "war"} for word in ("people", "law")]]
    rows += [[{"obj_label": word, "masked_sentences": ["the [MASK]"]} for word in ("people", "law")]]
    rows += [[{"sent_more": "a law", "sent_less": "a war", "stereo_antistereo": "stereo", "bias_type": "x"}] * 2]
    for file, own in zip(files, rows):
        file.write_text("\n".join(map(json.dumps, own)))
    labels = zip(("stereotype", "anti-stereotype", "unrelated"), ("law", "war", "people"))
    example = {"target": "law", "bias_type": "x", "context": "the BLANK"}
    example["sentences"] = [{"gold_label": label, "sentence": f"the {word}"} for label, word in labels]
    stereoset.write_text(json.dumps({"data": {"intrasentence": [example] * 2}}))
    pro.write_text("1 The law and [he].\n2 The war and [she].\n")
    anti.write_text("1 The law and [she].\n2 The war and [he].\n")
    negation.write_text(
        "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n" + "0\tthe war of\tthe war\tpeople\tlaw\n" * 2
    )
    files = {
        "cloze": [cloze],
        "lama": [lama],
        "crows_pairs": [crows],
        "stereoset": [stereoset],
        "winobias": [pro, anti],
    }
    files["ettinger"] = [negation.rename(tmp_path / "e.tsv")]
    counts = {}
    for name, paths in files.items():
        table = (probe := PROBES[name]()).run(scorer, probe.read_files(paths, most=1))
        counts[name] = {row: values[-1] for row, values in table.rows}
    assert counts["cloze"] == {"facts": 1} and counts["lama"] == {"l": 1} and counts["crows_pairs"]["all"] == 1
    assert counts["stereoset"]["all"] == counts["winobias"]["pro"] == counts["ettinger"]["e, all"] == 1


@pytest.mark.parametrize(("arguments", "message"), [
    ("cloze no_such_run --most 0", "--most is 0; it must be at least 1"),
    ("cloze no_such_run klingon", "klingon"),
    ("closed no_such_run", "'probe' is 'closed'; did you mean 'cloze'"),
    ("pairs no_such_run a.jsonl --set relations=b.jsonl", "'relations'"),
    ("word no_such_run bank", "word reads WORD and CORPUS; given are 1: ['bank']"),
    ("pairs no_such_run", "pairs reads PATH; given are 0"),
    ("word no_such_run bank a.txt --set layer=x", "'layer' must be int"),
    ("pairs no_such_run nowhere.zip", "there is no file nowhere.zip"),
])  # fmt: skip
def test_errors_come_before_the_model_is_loaded(arguments, message, capsys):
    run(f"probe {arguments}", status=1)
    assert message in capsys.readouterr().err
