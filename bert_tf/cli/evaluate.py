"""Evaluate a fine-tuned model on a labelled file.

Prints the metrics, and beside them those of baselines that use only the labels of the training
file, if that file still exists. Then prints precision, recall and F1 of each label (or entity
type), and for classification the confusion matrix. With more than 20 labels this second part is
printed only with --report.

example:
  bert-tf evaluate sentiment test.tsv
  bert-tf evaluate sentiment reviews.csv --columns text=document --report --json

in Python:
  import bert_tf
  sentiment = bert_tf.load("sentiment")
  print(sentiment.task.evaluate(sentiment.model, sentiment.task.read("test.tsv"), report=True))
"""

import bert_tf
from bert_tf.cli import labelled
from bert_tf.reporting.tables import labels_table, metrics_table
from bert_tf.table import Table

#: The largest number of labels whose report is printed without --report.
REPORT_LABELS = 20


def add_arguments(parser):
    add = parser.add_argument
    add("run", help="the fine-tuned run directory, or a Hugging Face directory of a fine-tuned class")
    add("file", help="a labelled file in the format of the training file")
    add("--report", action="store_true", help="print the scores of each label, however many there are")
    add("--json", action="store_true", help="print everything as one line of JSON")
    labelled.add_arguments(parser)


def run(arguments):
    import json

    columns = labelled.check_arguments(arguments)

    opened = bert_tf.load(arguments.run)
    task, model = opened.task, opened.model
    train, why_not = _read(task, (opened.source.settings.get("data") or {}).get("train"))
    examples = task.read(arguments.file, columns=columns)
    report = arguments.report or (task.labels is not None and len(task.labels) <= REPORT_LABELS)
    metrics = task.evaluate(model, examples, arguments.batch_size, report)
    if train is not None:
        metrics["baselines"] = task.baselines(train, examples)
        not_above = task.not_above(metrics, metrics["baselines"])
        if not_above:
            metrics["not_above_baseline"] = not_above
    if arguments.json:
        print(json.dumps(metrics, ensure_ascii=False))
        return
    print_metrics(metrics)
    if train is None:
        print(f"  no baselines: they need the training file ({why_not})")


def print_metrics(metrics):
    """The metrics with the baselines beside them, then the warnings, then the report."""
    others = ("baselines", "report", "warning", "not_above_baseline")
    shown = {"mean": {name: value for name, value in metrics.items() if name not in others}}
    print(metrics_table({"": shown | {"baselines": metrics.get("baselines", {})}}).text())
    for name in ("warning", "not_above_baseline"):
        if name in metrics:
            print(f"  warning: {metrics[name]}")
    if "report" in metrics:
        print_report(metrics["report"])


def print_report(report):
    """The scores of each label or type of entity, and the confusion matrix where there is one."""
    scores = labels_table(report)
    print("", scores.text(), sep="\n")
    if "confusion" in report:
        print("\n  confusion: a row for each true label, a column for each predicted one")
        rows = [[name, *counts] for (name, *_), counts in zip(scores.rows, report["confusion"])]
        print(Table(["", *(name for name, *_ in rows)], rows).text())


def _read(task, path):
    """(`Examples` of the training file, None), or (None, why there are none)."""
    from bert_tf.errors import UserError

    if not path:
        return None, "the run does not name one"
    try:
        return task.read(path), None
    except UserError as error:
        return None, str(error)
