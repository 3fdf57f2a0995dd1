"""Evaluate a model: the metrics of a fine-tuned one on a labelled file, or the perplexity of a decoder on a corpus.

Beside the metrics stand those of baselines that use the labels of the training file alone; below them, with at most 20
labels, the scores of each label and the confusion matrix.

Of a pretrained decoder files, folders and globs are a corpus, read as `bert-tf shards` reads it: perplexity per
token and per word, and bits per byte; the last two compare models with different vocabularies. Documents longer than
--length tokens are read in windows that begin every --stride tokens: a smaller stride gives a lower perplexity.

--continuation: the natural log-likelihood of a text, and whether greedy generation would give it. A space between context
and text belongs to the text. Of a model that answers sources (T5) the context is the source, the text the whole target.

example:
  bert-tf evaluate sentiment reviews.csv --columns text=document --report
  bert-tf evaluate gpt test.txt --stride 256
  bert-tf evaluate gpt --continuation "The capital of France is" " Paris"

in Python:
  bert_tf.load("sentiment").evaluate("test.tsv", report=True)
  bert_tf.load("gpt").score("The capital of France is", " Paris")
"""

import dataclasses
import json

import bert_tf
from bert_tf.cli import settings
from bert_tf.errors import ConfigError, UserError
from bert_tf.progress import Progress, reporter
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
    settings.add_labelled(parser)
    pair = {"nargs": 2, "action": "append", "default": [], "metavar": ("CONTEXT", "TEXT")}
    add("--continuation", **pair, help="the log-likelihood of a text after a context; may be repeated")
    add("--continuations", metavar="FILE", help="the same of a file with the columns context and continuation")
    settings.add_text_field(parser, default="text")
    settings.add_number(parser, "--length", "tokens of a window (default: the sequence length of pretraining)")
    settings.add_number(parser, "--stride", "tokens between two windows (default: length - 1)")


def run(arguments):
    columns = settings.columns_of(arguments)
    sources = [bool(arguments.files), bool(arguments.continuation), bool(arguments.continuations)]
    if sources.count(True) != 1:
        raise ConfigError("give files, or --continuation, or --continuations; one of the three")
    if not arguments.files:
        if arguments.length or arguments.stride:
            raise ConfigError("--length and --stride are for a corpus; remove them")
        return _print_continuations(arguments)
    opened = bert_tf.load(arguments.run)
    if opened.source.task is None:
        if arguments.report or columns:
            raise ConfigError(f"{arguments.run} is not fine-tuned, its files are a corpus; remove --report, --columns")
        return _print_perplexity(opened, arguments)
    if len(arguments.files) > 1 or arguments.length or arguments.stride:
        raise ConfigError(f"{arguments.run} is fine-tuned: give one labelled file, without --length and --stride")
    return _evaluate(opened, arguments, columns)


def _evaluate(opened, arguments, columns):
    task, model = opened.task, opened.model
    train, why_not = _read_training_file(task, (opened.source.settings.get("data") or {}).get("train"))
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


def _read_training_file(task, path):
    """(`Examples` of the training file, None), or (None, why there are none)."""
    if not path:
        return None, "the run does not name one"
    try:
        return task.read(path), None
    except UserError as error:
        return None, str(error)


def _print_continuations(arguments):
    """A line of JSON for each pair, with a line of progress where there are many."""
    from bert_tf.tasks.rows.opening import read_dicts

    pairs = [tuple(pair) for pair in arguments.continuation]
    if arguments.continuations:
        rows = read_dicts(arguments.continuations, ("context", "continuation"))
        pairs = [(row["context"], row["continuation"]) for row in rows]
    scorer = bert_tf.load(arguments.run).scorer
    scorer.batch_size, size = arguments.batch_size, 32 * arguments.batch_size
    progress = reporter("score", "pairs")
    for begin in range(0, len(pairs), size):
        for pair, score in zip(pairs[begin:], scorer.continuations(pairs[begin : begin + size])):
            about = {"log_likelihood": round(score.log_likelihood, 6), "tokens": score.tokens}
            about |= {"is_greedy": score.is_greedy, "context": pair[0], "continuation": pair[1]}
            print(json.dumps(about, ensure_ascii=False))
        progress(min(begin + size, len(pairs)), len(pairs))


def _print_perplexity(model, arguments):
    """The perplexity of the files as a corpus, with a line of progress."""
    from tfrecords.corpus.documents import CorpusReader
    from tfrecords.corpus.files import find_files

    scorer, length = model.scorer, arguments.length
    scorer.batch_size = arguments.batch_size
    if not scorer.frame.is_source:  # which `perplexity` refuses
        length = length or model.sequence_length
    files = find_files(arguments.files)
    reader = CorpusReader(files, arguments.text_field, max_document_bytes=1 << 24)
    progress = Progress("score", sum(file.bytes for file in files) / 1e6, "MB")
    texts = (document.text.decode("utf-8") for document in reader)

    def show(result, fraction):
        text = f"{result.tokens:,} tokens  perplexity {result.per_token:.2f}"
        progress.update(fraction * reader.position / 1e6, text)

    result = scorer.perplexity(texts, length, arguments.stride, show)
    progress.update(reader.position / 1e6)
    progress.finish()
    if arguments.json:
        values = {name: getattr(result, name) for name in ("per_token", "per_word", "bits_per_byte")}
        print(json.dumps(dataclasses.asdict(result) | values))
        return
    print(f"  perplexity per token  {result.per_token:,.4f}")
    print(f"  perplexity per word   {result.per_word:,.4f}")
    print(f"  bits per byte         {result.bits_per_byte:.4f}")
    print(f"  {result.nll:,.1f} nats over {result.tokens:,} tokens, {result.words:,} words, {result.bytes:,} bytes")
