"""Tables of probes on the terminal, and the page: all numbers, whatever the names are, and nothing from outside."""

import re

from bert_tf.probing import ProbeTable, layer_table, write_probe_page

ROWS = [("<b>good</b>", [0.25, 12.5, 1234]), ("bad", [None, float("nan"), 5])]
TABLE = ProbeTable("films", ["right", "rank", "n"], ROWS, "A note.")


def test_lines():
    assert TABLE.table().text().splitlines() == [
        "                right     rank      n",
        "  <b>good</b>  0.2500  12.5000  1,234",
        "  bad                               5",
    ]


def test_the_page(tmp_path):
    layers, random = (
        layer_table("layers", {"tags": (tags, 0.65), "tags: selectivity": (other, None)}, "guess", "", curves=("tags",))
        for tags, other in (((0.7, 0.8), (0.1, 0.3)), ((0.5, 0.4), (0.4, 0.3)))
    )
    layers = layers.beside(random)
    names = ["tags", "tags: selectivity", "tags: random weights"]
    assert [name for name, _ in layers.all_rows()] == names and layers.all_rows()[2][1] == [0.5, 0.4, None]
    write_probe_page([TABLE, layers], tmp_path / "probe.html", "run </title>", "about it")
    page = (tmp_path / "probe.html").read_text(encoding="utf-8")
    assert "<script" not in page and "://" not in page and "default-src 'none'" in page and "<b>good" not in page
    assert "run &lt;/title&gt; · probes" in page and "&lt;b&gt;good" in page and "A note." in page
    values = [float(value) for value in re.findall(r'<data value="([^"]*)"', page)]
    assert values[:4] == [0.25, 12.5, 1234, 5]
    assert values[4:7] == [0.7, 0.8, 0.65] and "--v:0.2500" in page
    # Of the chart: a point with its number for each layer of both models.
    assert len(re.findall(r"<title>(?:model|random), layer [01]: 0\.\d+</title>", page)) == 4
