"""The pages: what they show is what the records hold, whatever the data hold."""

import json
import re
from html.parser import HTMLParser

import pytest
from browser import BROWSER, browse
from records_of_runs import FINDINGS, HOSTILE, benchmark, finetuning, grid, pretraining, study

from bert_tf.cli.main import main
from bert_tf.config import read_record
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.reporting import write_report
from bert_tf.runs.experiment import Results

VOID = {"meta", "link", "wbr", "br", "img", "input"}


class Page(HTMLParser):
    """A page as tags with attributes, the texts in them, and the numbers of its `data` elements."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.texts, self.values, self.open = [], [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "data":
            self.values.append(float(dict(attributes)["value"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a run and a study of every sort, each with its page."""
    folder = tmp_path_factory.mktemp("runs")
    pretraining(folder / "run")
    pretraining(folder / "long", steps=3000, report=False)
    finetuning(folder / "task")
    finetuning(folder / "seeds", seeds=3)
    study(folder / "study")
    grid(folder / "grid")
    benchmark(folder / "glue")
    for name in ("run", "long", "task", "seeds", "study", "grid", "glue"):
        assert write_report(folder / name) == folder / name / "report.html"
    write_report(folder / "task", folder / "seeds", output=folder / "both.html")
    write_report(folder / "run", folder / "long", output=folder / "pretrainings.html")
    return folder


def pages(folder):
    return {path.relative_to(folder).as_posix(): Page(path) for path in sorted(folder.rglob("*.html"))}


def test_pages_refer_to_nothing_outside_and_run_nothing(runs):
    found = pages(runs)
    assert len(found) == 9
    for page in found.values():
        for tag, attributes in page.tags:
            assert tag not in ("script", "img", "iframe", "object", "embed", "base", "form")
            assert not any(name.startswith("on") for name in attributes)
            for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
                assert attributes.get(name, "data:,") == "data:,"
            assert "url(" not in attributes.get("style", "")
        assert "url(" not in page.source and "@import" not in page.source and "://" not in page.source
        assert "default-src 'none'" in page.source


def test_what_data_hold_is_text_and_nothing_else(runs):
    for name in ("task/report.html", "seeds/report.html"):
        page = Page(runs / name)
        shown = HOSTILE.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
        assert page.texts.count(shown) >= 4  # the text and its pair, the label, the true label
        assert not {"script", "img"} & {tag for tag, _ in page.tags}
        titles = [attributes["title"] for tag, attributes in page.tags if tag == "td" and "title" in attributes]
        assert f"2 of the 3 that are {shown} are predicted neg" in titles, "in attributes too"


def test_the_numbers_are_those_of_the_records(runs):
    page = Page(runs / "task" / "report.html")
    finished = json.loads((runs / "task" / "finished.json").read_text())
    summary = json.loads((runs / "task" / "summary.json").read_text())
    assert summary["dev"]["mean"]["accuracy"] in page.values
    baseline = finished["baselines"]["dev"]["majority class"]
    assert set(baseline.values()) & set(page.values) == {0.51234}, "of the metrics shown"
    assert page.values.count(FINDINGS["calibration"]["ece"]) == 2, "as a tile and below the diagram"
    assert {0.75, 0.5, 0.6, 4, 3, 0.97} <= set(page.values)
    table = re.search(r"<table class=\"matrix\">.*?</table>", page.source).group()
    assert [int(v) for v in re.findall(r'<data value="(\d+)"', table)] == [3, 1, 2, 1]
    for line in (json.loads(line) for line in (runs / "task" / "metrics.jsonl").read_text().splitlines()):
        assert f"dev, epoch {line['epoch'] + 1}: {line['accuracy']:.4f}" in page.text


def test_the_page_of_a_pretraining_has_its_baselines_and_last_numbers(runs):
    page = Page(runs / "run" / "report.html")
    lines = [json.loads(line) for line in (runs / "run" / "metrics.jsonl").read_text().splitlines()]
    for name in ("loss", "masked_lm_loss", "masked_lm_accuracy"):
        assert lines[-2][name] in page.values
    held_out = lines[-1]["eval_masked_lm_loss"], lines[-1]["eval_masked_lm_accuracy"]
    assert {*held_out, 6.54321, 0.07654} <= set(page.values)
    assert "unigram: 6.5432" in page.text
    assert (runs / "long" / "report.html").stat().st_size < 400_000, "thousands of lines are thinned"


def test_all_seeds_are_shown(runs):
    page = Page(runs / "seeds" / "report.html")
    for i in range(3):
        finished = json.loads((runs / "seeds" / f"seed-{i}" / "finished.json").read_text())
        assert finished["dev"]["accuracy"] in page.values
        assert f"seed {i}, epoch 3" in page.text
    assert re.findall(r"the same of seed \d", page.text) == ["the same of seed 0", "the same of seed 1"]
    assert page.values.count(FINDINGS["calibration"]["ece"]) == 4, "a tile, the best seed and the two others"


def test_several_runs_are_compared(runs, tmp_path):
    page = Page(runs / "both.html")
    for name in ("task", "seeds"):
        assert json.loads((runs / name / "summary.json").read_text())["dev"]["mean"]["accuracy"] in page.values
    assert "task, epoch 1" in page.text and "seeds, epoch 1" in page.text
    changed = finetuning(tmp_path / "other", config={"task": {"kind": "tagging"}, "train": {"epochs": 3, "seed": 0}})
    text = Page(write_report(runs / "task", changed, output=tmp_path / "x.html")).text
    assert "task.kind" in text and "tagging" in text and "train.epochs" not in text


def test_the_page_of_a_study_is_its_table(runs):
    page = Page(runs / "study" / "report.html")
    for means in read_record(Results, runs / "study" / "results.json").table.means().values():
        assert set(means.values()) <= set(page.values)
    assert "± 0.0247" in page.text
    best = [re.search(r"value=\"([^\"]+)", cell)[1] for cell in re.findall(r'<td class="best">.*?</td>', page.source)]
    assert sorted(best) == ["0.61239", "3.21234"], "the highest F1 and the lowest loss"


def test_the_page_of_a_grid_is_its_table(runs):
    page = Page(runs / "grid" / "report.html")
    assert {0.71357, 0.81357} <= set(page.values) and "± 0.0135" in page.text
    (best,) = re.findall(r'<td class="best">.*?value="([^"]+)', page.source)
    assert best == "0.81357" and "grid of 2 runs" in page.text
    assert "learning_rate=5e-05,epochs=2" in page.text


def test_the_page_of_a_benchmark_is_its_table_beside_the_published_numbers(runs):
    page = Page(runs / "glue" / "report.html")
    assert "2 of 9 tasks of GLUE" in page.text and "61.2/62.3" in page.text and "57.9 ± 1.2" in page.text
    (bert,) = re.findall(r'<tr><th scope="row">BERT-large</th>.*?</tr>', page.source)
    assert "86.6" in bert and "70.4" in bert
    with pytest.raises(ConfigError, match="a study, a grid or a benchmark; give it alone"):
        write_report(runs / "glue", runs / "task", output=runs / "x.html")


def test_the_same_records_make_the_same_page(runs):
    before = (runs / "seeds" / "report.html").read_bytes()
    assert main(["report", str(runs / "seeds")]) == 0
    assert (runs / "seeds" / "report.html").read_bytes() == before


def test_mistakes_are_explained(runs, tmp_path, capsys):
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        write_report(tmp_path)
    with pytest.raises(ConfigError, match="study is a study"):
        write_report(runs / "run", runs / "study", output=tmp_path / "x.html")
    elsewhere = study(tmp_path / "elsewhere")
    text = (elsewhere / "results.json").read_text()
    (elsewhere / "results.json").write_text(text.replace("b/seed-0/pretrained", "../run"))
    with pytest.raises(DataError, match="results.json is '..'; it must be the name of a file in the same folder"):
        write_report(elsewhere)
    damaged = finetuning(tmp_path / "damaged", findings={"labels": {"a": {"precision": "high"}}})
    assert main(["report", str(damaged)]) == 1
    shown = capsys.readouterr().err
    assert re.search("do not have the form.*report.json alone may also be deleted", shown, re.DOTALL)
    assert "Traceback" not in shown


def test_a_run_that_has_only_begun_has_a_page(tmp_path):
    (tmp_path / "config.yaml").write_text("task: {kind: classification}\n")
    assert "This run is not finished." in Page(write_report(tmp_path)).text


@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is installed")
def test_a_browser_shows_the_pages_without_an_error(runs, tmp_path):
    """All pages in frames of one page, as wide as a telephone; a last one with an error shows that errors are seen."""
    names = [*pages(runs), "wrong.html"]
    frames = "".join(f'<iframe src="{runs.as_uri()}/{name}" width=390 height=800></iframe>' for name in names)
    (runs / "wrong.html").write_text("<title>x</title><script>nothing.here()</script>")
    measure = """<script>onload = () => { for (const frame of document.querySelectorAll('iframe')) {
        const page = frame.contentDocument.documentElement;
        frame.title = [page.scrollWidth, page.querySelectorAll('svg').length].join(' '); } }</script>"""
    outer = tmp_path / "outer.html"
    outer.write_text(f"<!doctype html><title>x</title>{frames}{measure}")
    dom, console = browse(outer, "--allow-file-access-from-files")
    (runs / "wrong.html").unlink()
    assert len(console) == 1 and "nothing is not defined" in console[0], console
    sizes = re.findall(r'<iframe[^>]* title="(\d+) (\d+)"', dom)
    assert len(sizes) == len(names)
    for name, (width, drawings) in list(zip(names, sizes))[:-1]:
        assert int(width) <= 390, f"{name} is {width} wide on a telephone"
        assert int(drawings) >= 2
