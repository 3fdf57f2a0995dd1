"""Tables: one content for a terminal, Markdown and a page, and one rule for the best number."""

import pytest
from rich.cells import cell_len

from bert_tf.cli.evaluate import print_report
from bert_tf.markup import render
from bert_tf.table import Table


@pytest.fixture
def table():
    rows = [["bert", 2, (0.5, 0.25), 3.25], ["gpt", 1, (0.75, None), 3.5], ["lstm", 1200, "diverged", None]]
    return Table(["row", "seeds", "f1", "loss"], rows, lower={"f1": False, "loss": True})


def test_the_best_number_is_marked(table):
    assert table.text().splitlines() == [
        "  row   seeds                 f1      loss",
        "  bert      2  0.5000 ± 0.2500    3.2500 *",
        "  gpt       1           0.7500 *  3.5000",
        "  lstm  1,200         diverged",
    ]
    bert, gpt = "| bert | 2 | 0.5000 ± 0.2500 | **3.2500** |", "| gpt | 1 | **0.7500** | 3.5000 |"
    assert table.markdown().splitlines()[1:4] == ["| --- | --- | --- | --- |", bert, gpt]
    page = render(table.html())
    assert page.count('class="best"') == 2 and '<td class="best"><data value="0.75">0.7500</data></td>' in page
    assert table.best("f1") == 1 and table.best("loss") == 0
    assert table.means()["lstm"] == {"seeds": 1200} and table.points("f1", ["a", "b", "c"])[1] == ["b", 0.75, None]


def test_one_row_is_not_the_best_of_any(table):
    assert "*" not in Table(table.columns, table.rows[:1], table.lower).text()
    assert Table(["row", "loss"], [["a", float("nan")], ["b", None]], {"loss": True}).best("loss") is None
    assert Table(["row", "loss"], [["a", 1.0], ["b", 1.0]], {"loss": True}).best("loss") == 0, "the first of equals"


def test_tables_are_aligned_by_columns_of_the_terminal():
    lines = Table(["name", "f1", "why"], [["영화", "0.25", "x"], ["b", "10", "y"]], left=(0, 2)).text().splitlines()
    assert lines == ["  name    f1  why", "  영화  0.25  x", "  b       10  y"]
    assert {cell_len(line[: line.rindex(" ")]) for line in lines} == {13}


def test_a_page_draws_fractions_as_bars():
    table = Table(["probe", "accuracy", "pairs"], [["all", 0.75, 4], ["none", None, 0]], bars=("accuracy",))
    page = render(table.html())
    assert page.count('class="bar"') == 1 and '<td class="bar" style="--v:0.7500"><data value="0.75">' in page


def test_wide_characters_are_two_cells_of_a_report(capsys):
    scores = dict.fromkeys(("precision", "recall", "f1"), 0.5) | {"support": 3}
    print_report({"labels": {"긍정": scores}})
    header, row = capsys.readouterr().out.splitlines()[1:]
    assert header.index("precision") == row.index("0.5000") + 2 - len("precision") + len("0.5000") + len("긍정") - 2
