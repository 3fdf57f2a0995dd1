"""The table at the end of a distillation: how good, how large and how fast teacher and students are."""

import dataclasses
import time

from bert_tf.table import Table
from bert_tf.tasks.heads import TaskModel
from bert_tf.tasks.task import Task
from bert_tf.training.freezing import count

#: Texts whose time is taken, and texts of a batch.
TIMED, BATCH = 512, 32


@dataclasses.dataclass(frozen=True)
class Side:
    """A row of the table.

    Attributes:
        name: of the row.
        task, model: of `load_finetuned`.
        measured: whether its metrics are measured; they say nothing about a model whose head is not trained.
    """

    name: str
    task: Task
    model: TaskModel
    measured: bool = True


def measure(side, paths, metric):
    """The row of a model.

    Args:
        side: a `Side`.
        paths: split ("dev", "test") -> labelled file.
        metric: the name of the metric.

    Returns:
        dict: "model", each split with its metric (None where it is not measured), "parameters", "megabytes" (of the
        weights in float32) and "texts_per_second" (batches of 32 on this machine, tokens at hand, the first batches not
        counted).
    """
    task, row, examples = side.task, {"model": side.name}, {}
    for split, path in paths.items():
        examples[split] = task.read(path)
        row[split] = task.evaluate(side.model, examples[split], BATCH)[metric] if side.measured else None
    parameters = count(side.model.variables)
    speed = _speed(side, next(iter(examples.values())))
    row |= {"parameters": parameters, "megabytes": round(4 * parameters / 1e6, 1)}
    return row | {"texts_per_second": round(speed, 1)}


def table_of(rows, metric):
    """The `Table` of what `measure` returned for each model."""
    splits = [split for split in ("dev", "test") if split in rows[0]]
    lines = []
    for row in rows:
        scores = ("-" if row[split] is None else row[split] for split in splits)
        numbers = row["parameters"], f"{row['megabytes']:,.1f}", f"{row['texts_per_second']:,.0f}"
        lines.append([row["model"], *scores, *numbers])
    return Table(["", *(f"{split} {metric}" for split in splits), "parameters", "MB", "texts/s"], lines)


def _speed(side, examples):
    """Texts per second, of at most `TIMED` texts."""
    fewer = {
        field.name: value[:TIMED]
        for field in dataclasses.fields(examples)
        if isinstance(value := getattr(examples, field.name), list)
    }
    some = dataclasses.replace(examples, **fewer)
    times = []
    for _ in range(3):  # the first traces and tokenizes
        start = time.perf_counter()
        side.task.evaluate(side.model, some, BATCH)
        times.append(time.perf_counter() - start)
    return len(some) / min(times[1:])
