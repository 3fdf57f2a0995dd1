"""The page of a folder that holds many runs: of a study, a grid, a benchmark."""

from bert_tf.config import read_record
from bert_tf.markup import h
from bert_tf.parsing import bare_name
from bert_tf.reporting.diagrams import dots
from bert_tf.reporting.document import details, section
from bert_tf.reporting.parts import curves, header, kept, line_labels, settings_of
from bert_tf.reporting.records import RESULTS, Results, read_run
from bert_tf.reporting.tables import configuration, differences


def results_page(folder):
    """(title, parts) of the page of a folder with results.json."""
    results, title = read_record(Results, folder / RESULTS), folder.name or folder.resolve().name
    labels, legend = line_labels(list(results.runs))
    shown, entries, configs = dict(zip(results.runs, labels)), [], []
    for color, (name, folders) in enumerate(results.runs.items()):
        runs = [read_run(folder.joinpath(*(bare_name(p, RESULTS) for p in one.split("/")))) for one in folders]
        entries += [("" if i else shown[name], color, run.best) for i, run in enumerate(runs) if run.best.lines]
        configs.append(settings_of(runs[0]))
    plots = [
        dots(chart, [(shown.get(name, name), *rest) for name, *rest in points])
        for chart, points in results.charts.items()
    ]
    parts = [
        section("Results", results.table.html(), note=results.note),
        legend,
        section("One by one", h("div", plots, class_="grid")),
        section("Curves", curves(entries) if entries else None),
        section("What differs in the configuration", differences(labels, configs) if configs else None),
        section("Configuration", details("the first run", configuration(configs[0])) if configs else None),
    ]
    return f"{title} · {results.kind}", [header(title, results.about), *kept(parts)]
