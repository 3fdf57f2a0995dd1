"""The table at the end of a distillation: how good, how large and how fast teacher and students are."""

import dataclasses
import time

from bert_tf.table import Table
from bert_tf.training.freezing import count

#: Texts whose time is taken, and texts of a batch.
TIMED, BATCH = 512, 32


def measure(name, task, model, paths, metric):
    """The row of a model.

    Args:
        name: of the row.
        task, model: of a `OpenedModel`.
        paths: split ("dev", "test") -> labelled file.
        metric: the name of the metric; None where it is not measured, because the head of the model is not trained.

    Returns:
        dict: "model", each split with its metric (None where it is not measured), "parameters", "megabytes" (of the
        weights in float32) and "texts_per_second" (batches of 32 on this machine, tokens at hand, the first batches not
        counted).
    """
    examples = {split: task.read(path) for split, path in paths.items()}
    row = {"model": name}
    for split, examples_of_split in examples.items():
        row[split] = None if metric is None else task.evaluate(model, examples_of_split, BATCH)[metric]
    parameters = count(model.variables)
    speed = _speed(task, model, next(iter(examples.values())))
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


def _speed(task, model, examples):
    """Texts per second, of at most `TIMED` texts."""
    lists = {f.name: x for f in dataclasses.fields(examples) if isinstance(x := getattr(examples, f.name), list)}
    some = dataclasses.replace(examples, **{name: value[:TIMED] for name, value in lists.items()})
    times = []
    for _ in range(3):  # the first traces and tokenizes
        start = time.perf_counter()
        task.evaluate(model, some, BATCH)
        times.append(time.perf_counter() - start)
    return len(some) / min(times[1:])
