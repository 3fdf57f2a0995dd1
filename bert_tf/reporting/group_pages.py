"""The page of many runs: of a study, a grid, a benchmark, or of some that are compared."""

from bert_tf.config import read_record
from bert_tf.markup import h
from bert_tf.parsing import bare_name
from bert_tf.reporting.diagrams import dots
from bert_tf.reporting.document import details, section
from bert_tf.reporting.pages import kind_of, note_of, results_of
from bert_tf.reporting.parts import curves, distinct, header, line_labels, settings_of
from bert_tf.reporting.runs import read_run
from bert_tf.reporting.tables import configuration, differences, runs_table
from bert_tf.runs.experiment import RESULTS, Results

_NOTE = "Mean ± sample standard deviation over the seeds."


def results_page(folder):
    """(title, parts) of the page of a folder with results.json."""
    results, name, runs = read_record(Results, folder / RESULTS), folder.name or folder.resolve().name, {}
    for run, folders in results.runs.items():
        runs[run] = [read_run(folder.joinpath(*(bare_name(p, RESULTS) for p in one.split("/")))) for one in folders]
    return f"{name} · {results.kind}", _parts(name, results, runs)


def runs_page(runs):
    """(title, parts) of the page on which runs are compared."""
    names = distinct([run.name for run in runs])
    table = runs_table(names, [{"folder": str(run.path)} | results_of(run) for run in runs])
    kinds = ", ".join(dict.fromkeys(map(kind_of, runs)))
    results = Results("", kinds, table, note_of(runs), {}, {})
    return " · ".join(names), _parts(f"{len(runs)} runs", results, {n: [run] for n, run in zip(names, runs)})


def _parts(title, results, runs):
    """The parts of a page of `Results`; `runs` is name -> list of `Run`."""
    labels, legend = line_labels(list(runs))
    shown, entries, configs = dict(zip(runs, labels)), [], []
    for color, (name, seeds) in enumerate(runs.items()):
        entries += [("" if i else shown[name], color, run.best) for i, run in enumerate(seeds) if run.best.lines]
        configs.append(settings_of(seeds[0]))
    charts = results.charts.items()
    plots = [dots(chart, [(shown.get(name, name), *rest) for name, *rest in points]) for chart, points in charts]
    return [
        header(title, results.about),
        section("Results", results.table.html(), note=f"{_NOTE} {results.note or ''}"),
        legend,
        section("One by one", h("div", plots, class_="grid")) if plots else None,
        section("Curves", curves(entries), note="Pale: training, where something else is in the same chart."),
        section("What differs in the configuration", differences(labels, configs)),
        section("Configuration", details("the first run", configuration(configs[0])) if configs else None),
    ]
