"""SuperGLUE as it is distributed and as it is submitted: folders, files, names, labels. No TensorFlow is imported.

Wang et al. 2019 (SuperGLUE). The folders are those of the archive that super.gluebenchmark.com serves, the submission is
what it takes: a zip of JSONL files, whose labels are as the functions `_write_..._preds` of jiant 1.2.1,
`jiant/evaluate.py`, write them.
"""

import json

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.runs.benchmarks.benchmark import Benchmark, BenchmarkTask, Submitted, read_published
from bert_tf.tasks.rows.files import read_table

_ENTAILMENT = ["entailment", "not_entailment"]


def measure_broad_coverage(path, answers):
    """{"matthews": float}, Matthews' correlation on AX-b; {} for a file without labels.

    Args:
        path: AX-b.jsonl.
        answers: of `Task.predict` for the file.
    """
    from sklearn.metrics import matthews_corrcoef

    pairs = [(row["label"], label) for _, row, label in _rows(path, answers) if "label" in row]
    return {"matthews": float(matthews_corrcoef(*zip(*pairs)))} if pairs else {}


def measure_gender_parity(path, answers):
    """{"gender_parity", "accuracy": float} on AX-g; {} for a file without labels.

    The gender parity score is the fraction of pairs, which differ in the gender of a pronoun, with the same prediction
    (section 3.3 of the paper). A pair are two rows one after the other, as in jiant 1.2.1,
    `metrics/winogender_metrics.py`: `pair_id` of the published file is another number in each row.

    Raises:
        DataError: two rows of a pair with different hypotheses, or a row without the other one.
    """
    rows = [row for row in _rows(path, answers) if "label" in row[1]]
    same = []
    for (line, first, label), (_, second, other) in zip(rows[::2], [*rows[1::2], (None, {}, None)]):
        if first.get("hypothesis") != second.get("hypothesis"):
            raise DataError(
                f"{path}, line {line}: the hypothesis is not that of the next line; AX-g holds pairs of lines that differ "
                "in the premise alone, restore the published order"
            )
        same.append(label == other)
    right = [row["label"] == label for _, row, label in rows]
    return {"gender_parity": sum(same) / len(same), "accuracy": sum(right) / len(right)} if rows else {}


def _task(name, title, metrics, settings, further=(), columns=None):
    submitted = (Submitted(title, ("test.jsonl",)), *further)
    return BenchmarkTask(name, title, metrics, submitted, settings, "train.jsonl", "val.jsonl", columns=columns or {})


_DIAGNOSTICS = (
    Submitted("AX-b", ("../AX-b/AX-b.jsonl", "AX-b.jsonl"), ("matthews",), measure_broad_coverage),
    Submitted("AX-g", ("../AX-g/AX-g.jsonl", "AX-g.jsonl"), ("gender_parity", "accuracy"), measure_gender_parity),
)
_BOOLQ = {"kind": "classification", "labels": ["false", "true"]}
_BOOLQ_COLUMNS = {"text": "passage", "text_pair": "question"}  # the order of jiant 1.2.1
_CB = {"kind": "classification", "labels": ["entailment", "contradiction", "neutral"], "metric": "f1_macro"}
_COPA = {"kind": "multiple_choice", "format": "copa"}
_WORD_PAIR = {"kind": "word_pair"}
#: In the order of the tables of the papers.
_TASKS = (
    _task("boolq", "BoolQ", ("accuracy",), _BOOLQ, columns=_BOOLQ_COLUMNS),
    _task("cb", "CB", ("f1_macro", "accuracy"), _CB),
    _task("copa", "COPA", ("accuracy",), _COPA),
    _task("multirc", "MultiRC", ("f1a", "exact_match"), {"kind": "multirc"}),
    _task("record", "ReCoRD", ("f1", "em"), {"kind": "record"}),
    # Columns by their usual names: those of the diagnostics differ.
    _task("rte", "RTE", ("accuracy",), {"kind": "classification", "labels": _ENTAILMENT}, _DIAGNOSTICS),
    _task("wic", "WiC", ("accuracy",), _WORD_PAIR | {"pooling": "mean"}),
    _task("wsc", "WSC", ("accuracy",), _WORD_PAIR | {"pooling": "attention"}),
)


#: What the submission says of a row without a text.
_FIRST_LABELS = {task.name: task.settings["labels"][0] for task in _TASKS if "labels" in task.settings}
_FIRST_LABELS |= {"wic": "false", "wsc": "false"}


def _rows(path, answers):
    """(line, row, the label that was predicted for it; the first one for a row without a text) of each row."""
    of_line = _by_line(answers)
    for line, row in _lines(path):
        yield line, row, of_line[line][0].get("label", _ENTAILMENT[0])


def _lines(path):
    return [(line, row) for line, row in read_table(path, "jsonl").rows if row is not None]


def _by_line(answers):
    """Line or item -> the answers of `Task.predict` to it, in order."""
    by_line = {}
    for answer in answers:
        by_line.setdefault(answer.get("line", answer.get("item")), []).append(answer)
    return by_line


def submission_lines(name, path, answers):
    """The lines of a file of the submission: JSON objects with "idx" and "label", in the form that each task has.

    Args:
        name: of the task.
        path: the unlabelled file.
        answers: of `Task.predict` for it. A row without a text gets the first label.

    Raises:
        DataError: a row without "idx"; with file and line.
    """
    of_line, first = _by_line(answers), _FIRST_LABELS.get(name, 0)
    for line, row in _lines(path):
        where, answers_of_row = f"{path}, line {line}", iter(of_line[line])
        if name == "record":
            objects = [{"idx": _idx(query, where), "label": next(answers_of_row)["answer"]} for query in row["qas"]]
        elif name == "multirc":
            objects = [{"idx": _idx(row, where), "passage": {"questions": _multirc(row, answers_of_row, where)}}]
        else:
            label = next(answers_of_row).get("label", first)
            objects = [{"idx": _idx(row, where), "label": label.capitalize() if name == "wsc" else label}]
        yield from (json.dumps(one, ensure_ascii=False) for one in objects)


def _multirc(row, answers, where):
    questions = []
    for question in row["passage"]["questions"]:
        labels = [{"idx": _idx(one, where), "label": int(next(answers)["label"])} for one in question["answers"]]
        questions.append({"idx": _idx(question, where), "answers": labels})
    return questions


def _idx(row, where):
    if "idx" not in row:
        raise DataError(f"{where}: {brief(row)} has no 'idx' for the submission; take the published file")
    return row["idx"]


SUPERGLUE = Benchmark(
    title="SuperGLUE",
    site="super.gluebenchmark.com",
    tasks={task.name: task for task in _TASKS},
    from_mnli=("boolq", "cb", "rte"),  # BERT++: jiant 1.2.1, scripts/superglue-baselines.sh
    published=read_published("superglue"),
    published_note="Each published model says of which sets its numbers are.",
    ending=".jsonl",
    lines=submission_lines,
)
