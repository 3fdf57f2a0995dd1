"""`bert-tf probe` on the small published-format BERT of the fixtures."""

import json
from pathlib import Path

import pytest
from opened import objective_and_tokenizer
from typed_command import run

from bert_tf.probing import read_crows_pairs, read_pairs, run_crows_pairs, run_pairs, text_scorer

pytestmark = pytest.mark.usefixtures("loaded_once")
BERT = str(Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert")


def test_all_probes(tmp_path, capsys):
    cloze, pairs, crows = (tmp_path / name for name in ("cloze.tsv", "pairs.tsv", "crows.csv"))
    cloze.write_text("kind\ttext\tanswers\toptions\nfacts\tthe ___ of a war\tpeople\tlaw\nb\ta ___\twar of\tlaw\n")
    pairs.write_text("sentence_good\tsentence_bad\nthe war\twar the\na law\tlaw a\n")
    crows.write_text("sent_more,sent_less,stereo_antistereo,bias_type\nthe war,a war,stereo,age\n")
    out = tmp_path / "probe.json"
    run(f"probe {BERT} --cloze {cloze} --pairs {pairs} --crows-pairs {crows} --output {out}")
    printed = capsys.readouterr().out
    titles, page = ("cloze questions", "minimal pairs", "CrowS-Pairs"), out.with_suffix(".html").read_text()
    assert all(f"<h2>{title}</h2>" in page for title in titles)
    for text in (*titles, "by pseudo-log-likelihood", "mean of kinds", "do not call one fair"):
        assert text in printed
    found = json.loads(out.read_text())
    scorer = text_scorer(*objective_and_tokenizer(BERT))
    assert found["model"]["pairs"]["accuracy"] == run_pairs(scorer, read_pairs(pairs)).accuracy
    assert found["model"]["crows_pairs"]["score"] == run_crows_pairs(scorer, read_crows_pairs(crows)).score
    random, trained = (found[name]["cloze"]["facts"] for name in ("random weights", "model"))
    assert found["model"].keys() == {"cloze", "pairs", "crows_pairs"}
    assert random["count"] == trained["count"] == 1 and random["median_rank"] != trained["median_rank"]


def test_questions_in_another_language_are_a_warning(tmp_path, caplog):
    known = tmp_path / "cloze.tsv"
    known.write_text("kind\ttext\tanswers\toptions\nfacts\tthe ___ of a war\tpeople\tlaw\n")
    for questions, warned in (("korean", True), (str(known), False)):
        caplog.clear()
        run(f"probe {BERT} --cloze {questions} --most 3 --output {tmp_path}/p")
        warnings = [m for m in caplog.messages if "unknown to the model's tokenizer" in m]
        assert len(warnings) == warned, "once for both models"


def test_layers(tmp_path, capsys):
    file = tmp_path / "words.conll"
    file.write_text("a D\nlaw N\n\nthe D\nwar N\nof P\npeople N\n\n" * 6 + "and C\n\n")
    out = tmp_path / "probe.json"
    run(f"probe {BERT} --layers {file} {file} --most 12 --no-control --output {out}")
    printed = capsys.readouterr().out
    assert "selectivity" in printed and "likelihood" not in printed
    found = json.loads(out.read_text())["model"]["layers"]
    assert found["tags"]["layers"][0] == 1.0 and found["tags"]["classes"] == 3


def test_uses_of_a_word(tmp_path, capsys):
    uses = ["the law of </b> war\ta", "a law\ta", "people of law\tb", "law and war\tb"]
    (tmp_path / "law.tsv").write_text("\n".join(["text\tsense", *uses, ""]))
    out = tmp_path / "law.html"
    run(f"probe {BERT} --word law --corpus {tmp_path}/law.tsv --layer 1 --output {out}")
    assert "nearest of same sense: random weights" in capsys.readouterr().out
    found, page = json.loads((tmp_path / "law.json").read_text())["model"]["word"], out.read_text()
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
    run(f"probe {BERT} --wic {file} {file} --most 4 --output {out}")
    printed = capsys.readouterr().out
    assert "accuracy: random weights" in printed and "4 pairs, by layer" in printed
    found = json.loads((tmp_path / "wic.json").read_text())["model"]["wic"]
    assert found["accuracy"][0] == 0.5 and max(found["accuracy"]) == 1.0  # without context both pairs are alike
    assert "<svg" in out.read_text()


def test_trees(tmp_path, capsys):
    words = [("the", "DET", 2, "det"), ("law", "NOUN", 0, "root"), ("of", "ADP", 4, "case"), ("war", "NOUN", 2, "nmod")]
    lines = [f"{i}\t{word}\t_\t{tag}\t_\t_\t{head}\t{kind}\t_\t_" for i, (word, tag, head, kind) in enumerate(words, 1)]
    file = tmp_path / "a.conllu"
    file.write_text("\n".join([*lines, ""] * 6))
    run(f"probe {BERT} --heads {file} --trees {file} {file} --most 4 --output {tmp_path}/heads.html")
    printed, found = capsys.readouterr().out, json.loads((tmp_path / "heads.json").read_text())
    assert "attention to relations" in printed and "attention to positions" in printed
    assert "UUAS: random weights" in printed and found["model"]["trees"]["count"] == 4
    assert found["random weights"]["heads"]["counts"] == {"all": 12, "det": 4, "case": 4, "nmod": 4}


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
    files = f"--stereoset {stereoset} --winobias {pro} {anti} --ettinger {negation}"
    run(f"probe {BERT} {files} --output {tmp_path}/bias.html")
    printed, found = capsys.readouterr().out, json.loads((tmp_path / "bias.json").read_text())["model"]
    assert all(text in printed for text in ("do not call one fair", "NEG, negative", "pro minus anti"))
    assert found["stereoset"]["all"]["count"] == 2, "also how sentences follow, by next sentence prediction"
    assert found["winobias"]["count"] == 2 == found["ettinger"]["NEG, all"]["count"]


def test_the_first_of_each_file(tmp_path):
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
    asked = f"--cloze {cloze} --lama {lama} --crows-pairs {crows} --stereoset {stereoset}"
    asked += f" --winobias {pro} {anti} --ettinger {negation.rename(tmp_path / 'e.tsv')}"
    out = tmp_path / "found.json"
    run(f"probe {BERT} {asked} --most 1 --no-control --output {out}")
    found = json.loads(out.read_text())["model"]
    assert len(found) == 6 and found["cloze"]["facts"]["count"] == found["lama"]["l"]["count"] == 1
    assert found["crows_pairs"]["count"] == found["stereoset"]["all"]["count"] == found["winobias"]["count"] == 1
    assert found["ettinger"]["e, all"]["count"] == 1


@pytest.mark.parametrize(("arguments", "message"), [
    ("--most 0", "--most is 0; it must be at least 1"),
    ("--cloze klingon", "klingon"),
    ("--relations a.jsonl", "--relations is for --lama"),
    ("--word bank", "--word and --corpus belong together"),
    ("--layer 1", "--layer is for --word"),
    ("--pairs nowhere.zip", "there is no file nowhere.zip"),
])  # fmt: skip
def test_errors_come_before_the_model_is_loaded(arguments, message, capsys):
    run(f"probe no_such_run {arguments}", status=1)
    assert message in capsys.readouterr().err
