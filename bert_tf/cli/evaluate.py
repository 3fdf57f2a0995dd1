"""Evaluate a model: the metrics of a fine-tuned one on a labelled file, or the perplexity of a decoder on a corpus.

Beside the metrics stand those of baselines that use only the labels of the training file, if that file still exists;
below them, with at most 20 labels, the scores of each label and the confusion matrix.

Of a pretrained decoder files, folders and globs are a corpus, read as `bert-tf shards` reads it: exp(nll / tokens),
exp(nll / words) and bits per byte; the last two compare models with different vocabularies. Documents longer than --length
tokens are read in windows that begin every --stride tokens: a smaller stride gives a lower perplexity. State both.

--continuation: the natural log-likelihood of a text, and whether greedy generation would give it. A space between context
and text belongs to the text. Of a model that answers sources (T5) the context is the source, the text the whole target.

example:
  bert-tf evaluate sentiment test.tsv
  bert-tf evaluate sentiment reviews.csv --columns text=document --report --json
  bert-tf evaluate gpt test.txt --stride 256
  bert-tf evaluate gpt --continuation "The capital of France is" " Paris"
  bert-tf evaluate gpt --continuations pairs.tsv --output scored.tsv

in Python:
  import bert_tf
  bert_tf.load("sentiment").evaluate("test.tsv", report=True)
  gpt = bert_tf.load("gpt")
  gpt.score("The capital of France is", " Paris")
  gpt.scorer.perplexity(["One document.", "Another."], stride=256).per_word
"""

import bert_tf
from bert_tf.cli import labelled, text_scores
from bert_tf.errors import ConfigError
from bert_tf.reporting.tables import labels_table, metrics_table
from bert_tf.table import Table

#: The largest number of labels whose report is printed without --report.
REPORT_LABELS = 20


def add_arguments(parser):
    add = parser.add_argument
    add("run", help="a fine-tuned run or Hugging Face directory; or a pretrained decoder")
    add("files", nargs="*", metavar="FILE", help="one labelled file; or a corpus")
    add("--report", action="store_true", help="print the scores of each label, however many there are")
    add("--json", action="store_true", help="print everything as one line of JSON")
    labelled.add_arguments(parser)
    text_scores.add_arguments(parser)


def run(arguments):
    columns = labelled.columns(arguments)
    text_scores.check(arguments)
    if not arguments.files:
        return text_scores.print_continuations(arguments)
    opened = bert_tf.load(arguments.run)
    if opened.source.task is None:
        if arguments.report or columns:
            raise ConfigError(
                f"{arguments.run} is not fine-tuned, and its files are a corpus; remove --report and --columns"
            )
        return text_scores.print_perplexity(opened, arguments)
    if len(arguments.files) > 1 or arguments.length or arguments.stride:
        raise ConfigError(f"{arguments.run} is fine-tuned: give one labelled file, without --length and --stride")
    return _evaluate(opened, arguments, columns)


def _evaluate(opened, arguments, columns):
    import json

    task, model = opened.task, opened.model
    train, why_not = _read(task, (opened.source.settings.get("data") or {}).get("train"))
    examples = task.read(arguments.files[0], columns=columns)
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
