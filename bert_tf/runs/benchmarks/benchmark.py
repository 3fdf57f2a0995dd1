"""A benchmark of several tasks as it is distributed and as it is submitted. No TensorFlow is imported.

`glue.py` and `superglue.py` describe GLUE and SuperGLUE; `bert_tf.runs.benchmark` runs them.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf.config import nearest, shipped_configs
from bert_tf.errors import ConfigError, DataError


@dataclasses.dataclass(frozen=True)
class Submitted:
    """A file of the submission.

    Attributes:
        title: its name without the ending.
        candidates: names of the unlabelled file, from the folder of the task; the first that exists is read.
        metrics: of a file with public labels: what `measure` returns, as tables show it.
        measure: function(path, answers of `Task.predict`) -> {metric: float}; None where the labels are not public.
        format: of `ColumnsConfig`, where the ending of a file does not say it; None where it does.
    """

    title: str
    candidates: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    measure: Callable | None = None
    format: str | None = None

    def file(self, folder):
        """The path of the unlabelled file; None if there is none."""
        return next((folder / name for name in self.candidates if (folder / name).is_file()), None)


@dataclasses.dataclass(frozen=True)
class BenchmarkTask:
    """The files of one task.

    Attributes:
        name: the key in `Benchmark.tasks`, in settings and of the folder of its run.
        title: how tables call it, which is also its folder in the benchmark.
        metrics: what tables show.
        submitted: the `Submitted` files that its model answers.
        settings: what is fixed under `task` of its fine-tuning: the preset, or the kind and the like.
        columns: `data.columns` of its files.
        train, dev: the labelled files; dev chooses the best epoch.
        other_dev: a second labelled file, or None.
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    submitted: tuple[Submitted, ...]
    settings: Mapping
    train: str
    dev: str
    other_dev: str | None = None
    columns: Mapping = dataclasses.field(default_factory=dict)


def read_published(name):
    """The published results in configs/benchmarks/NAME_published.tsv: model -> {task or submitted file: its result as str}."""
    file = shipped_configs()[f"benchmarks/{name}"].with_name(f"{name}_published.tsv")
    lines = file.read_text(encoding="utf-8").splitlines()
    (_, *keys), *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {model: dict(zip(keys, numbers, strict=True)) for model, *numbers in rows}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    Attributes:
        title: "GLUE".
        site: where it is submitted.
        tasks: name -> `BenchmarkTask`, in the order of the tables.
        from_mnli: names of the tasks that may start from a model fine-tuned on MNLI.
        published: model -> {name of a task, or title of a submitted file: its result as str}.
        published_note: a sentence: of which sets those are.
        ending: of the files of the submission.
        lines: function(name, path of the unlabelled file, answers of `Task.predict`) -> the lines of the submission.
        hint: function(name, folder) -> what to do where a labelled file is missing, "; ..." or "".
    """

    title: str
    site: str
    tasks: Mapping[str, BenchmarkTask]
    from_mnli: tuple[str, ...]
    published: Mapping[str, Mapping[str, str]]
    published_note: str
    ending: str
    lines: Callable
    hint: Callable = lambda name, folder: ""

    def check_name(self, name, where=""):
        """Raises ConfigError unless `name` is that of a task; `where` begins the message."""
        if name not in self.tasks:
            raise ConfigError(f"{where}{self.title} has no such task{nearest(name, self.tasks)}")

    def find(self, folder, names=None):
        """The tasks that a folder holds with their labelled files.

        Args:
            folder: holds a folder for each task, called as its title; upper and lower case and hyphens do not count.
            names: the tasks that are asked for; None for what there is.

        Returns:
            (name -> the task's folder, a Path, in the order of the sizes of the training files, and a list of sentences
            about what was found and cannot be used).

        Raises:
            ConfigError: an unknown name.
            DataError: no such folder, none of the tasks in it, or one that is asked for and lacks a file.
        """
        for name in names or ():
            self.check_name(name, f"'{name}': ")
        folder = Path(folder)
        if not folder.is_dir():
            raise DataError(f"no {self.title} at {folder}: there is no such folder")
        there = {_plain(path.name): path for path in sorted(folder.iterdir()) if path.is_dir()}
        sizes, unusable = {}, {}
        for name, task in self.tasks.items():
            path = there.get(name)
            missing = [file for file in (task.train, task.dev) if path is None or not (path / file).is_file()]
            if missing and path is not None:
                unusable[name] = f"{path} has no {' and no '.join(missing)}{self.hint(name, path)}"
            elif not missing:
                sizes[name] = (path / task.train).stat().st_size
        for name in names or ():
            if name not in sizes:
                raise DataError(unusable.get(name, f"{folder} has no folder {self.tasks[name].title}"))
        if not sizes:
            titles = ", ".join(task.title for task in self.tasks.values())
            raise DataError("; ".join(unusable.values()) or f"{folder} has no folder of {self.title}: {titles}")
        in_order = sorted((name for name in sizes if not names or name in names), key=sizes.get)
        return {name: there[name] for name in in_order}, [text for name, text in unusable.items() if not names]


def _plain(name):
    return name.lower().replace("-", "").replace("_", "")
