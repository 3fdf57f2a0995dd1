"""The Python calls that train: `bert_tf.pretrain`, `bert_tf.finetune` and `bert_tf.distill`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf import config as configuration
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import atomic_write, is_there, writes_to
from bert_tf.language_model import LanguageModel
from bert_tf.parsing import brief
from bert_tf.types import StrPath


def pretrain(
    text: Any,
    *,
    minutes: float,
    output: StrPath,
    init_from: StrPath | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> LanguageModel:
    """Pretrains a model on text for so many minutes, and opens it.

    Vocabulary, sizes and schedule are those of the recipes that the searches of docs/results/laptop_recipe.md found: a small ModernBERT that
    predicts masked tokens. How many updates the time allows is measured on this machine. What is chosen is said, with the
    commands that do the same; they are where settings can be changed. The same call again resumes a run that was
    interrupted, or returns the one that is finished.

    Args:
        text: a file, folder or glob of text, as `bert-tf shards` reads it, or a list of `Path`s; or a list or generator of
            texts. Every twentieth piece is held out.
        minutes: the time for all of it.
        output: the run directory: a new one, or one to resume.
        init_from: a run directory, a published checkpoint or hf://owner/name to train on, with its tokenizer and objective
            (masked LM or causal LM); None for a new model.
        seed: of the weights, the order of reading and the masks.
        overwrite: whether a run that is in `output` is deleted first.

    Returns:
        A `LanguageModel`, with `results`: the last metrics, those of the held-out text with the prefix "eval_".

    Raises:
        ConfigError: too few minutes; a model that cannot be trained on.
        DataError: text that cannot be read, or too little.
        RunDirectoryError: `output` holds another run.

    Example:
        model = bert_tf.pretrain("books/", minutes=30, output="run")
        model.fill_mask("The [MASK] of the United States.")
        bert_tf.pretrain("reports/", init_from="hf://google-bert/bert-base-uncased", minutes=30, output="domain")
    """
    from bert_tf.checkpoints import open_source
    from bert_tf.training.budget import pretrain_within

    if overwrite:
        _delete(output)
    if isinstance(text, (str, Path)) or (isinstance(text, list) and text and all(isinstance(t, Path) for t in text)):
        given = {"files": text}
    elif isinstance(text, Iterable):
        given = {"texts": text}
    else:
        raise DataError(f"the text is {brief(text)}; give a file, folder or glob, or a list or generator of texts")
    _, metrics = pretrain_within(minutes, output, **given, init_from=init_from, seed=seed)
    model = LanguageModel(open_source(output))
    model.results = metrics
    return model


def finetune(
    init_from: StrPath,
    *,
    train: Any,
    output: StrPath,
    dev: Any = 0.1,
    test: Any = None,
    task: str | dict[str, Any] | None = None,
    columns: dict[str, Any] | None = None,
    config: StrPath | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> LanguageModel:
    """Fine-tunes a pretrained model on labelled data, and opens the result.

    The same call again resumes a run that was interrupted, or returns the one that is finished. A call with other
    settings or other data is refused.

    Args:
        init_from: a run directory, a published checkpoint, or hf://owner/name.
        train, dev, test: labelled data: a file in one of the formats of docs/guides/tasks/data.md; or Python objects: a list
            or a generator of dicts, a dict of columns, a DataFrame of pandas, or a split of the package datasets. They are
            written to `data/` in the output. The epoch with the best metric on `dev` is kept; `test` is measured with it.
            `dev` may be a share of `train`, such as 0.1, drawn at random, of each label alike, and left out of the training:
            of rows, of the documents or sentences of CoNLL files, of SQuAD's articles.
        output: the run directory: a new one, or one to resume.
        task: the kind of the task, such as "tagging" or "regression", or a dict of its settings, such as {"kind":
            "question_answering", "sequence_length": 384} or {"preset": "rte"}. None: that of `config`.
        columns: which columns are read, {"text": "review", "label": "stars"}; others are found by the usual names of their
            roles.
        config: a YAML file, or the name of a configuration that ships with the library, such as
            "finetune/published/squad2". None: the one of the kind of the task, for texts finetune/classification.
        overwrite: whether a run that is in `output` is deleted first.
        settings: of fine-tuning: epochs, batch_size, seed, seeds, precision, trainable and the others of `train` by their
            names, and the sections `optimizer` and `encoder` as dicts. A setting with a list of values is a grid:
            every combination is fine-tuned, and the best one is what the result opens.

    Returns:
        A `LanguageModel`, with `results`: "dev" and "test" with the means of the metrics, their spread over seeds and the
        baselines, and "warnings".

    Raises:
        ConfigError: a wrong setting; the message names the one that is meant.
        DataError: data that cannot be used; with file, line and what to do.
        RunDirectoryError: `output` holds another run, or this one with other data.

    Example:
        rows = [{"text": "a good film", "label": "pos"}, {"text": "a bad film", "label": "neg"}] * 8
        model = bert_tf.finetune("run", train=rows, dev=0.25, output="films", optimizer={"learning_rate": 3e-5}, epochs=1)
        model.predict("a fine film")["label"]  # "pos"
        model.results["dev"]["mean"]["accuracy"]
    """
    from bert_tf.runs.grid_config import read_grid

    own = {} if task is None else {"kind": task} if isinstance(task, str) else dict(task)
    if config is None:
        shipped = f"finetune/{own.get('kind', 'classification')}"
        config = shipped if shipped in configuration.shipped_configs() else None
    mapping = _settings(config, columns, settings)
    mapping["init_from"] = str(init_from)
    mapping["task"] = own if "preset" in own else (mapping.get("task") or {}) | own

    def run(grid):
        from bert_tf.runs.grid import finetune_grid

        return finetune_grid(grid, output)[0]

    data = {"train": train, "dev": dev, "test": test}
    return _train(mapping, data, output, overwrite, read_grid, lambda grid: grid.configs[0], run)


def distill(
    teacher: StrPath,
    *,
    student: str | dict[str, Any],
    output: StrPath,
    train: Any = None,
    unlabelled: Any = None,
    dev: Any = 0.1,
    test: Any = None,
    columns: dict[str, Any] | None = None,
    config: StrPath = "distill/soft_labels",
    overwrite: bool = False,
    **settings: Any,
) -> LanguageModel:
    """Trains a small model, the student, to give the answers of a fine-tuned one, the teacher, and opens it.

    The same call again resumes or returns what is there, as of `finetune`.

    Args:
        teacher: a fine-tuned run or published model, or hf://owner/name.
        student: a published size such as "bert_mini"; a run or published model to start from; or a dict of the section
            `student`: {"layers": [0, 2, 4]} takes these layers of the teacher.
        output: the run directory: a new one, or one to resume.
        train, dev, test: labelled data, as of `finetune`; `train` may be left out where `unlabelled` is given. The same
            share of the same data is the same rows: those that a teacher of this share was not trained on.
        unlabelled: further texts, which only the teacher labels: a file, or rows.
        columns: as of `finetune`.
        config: a YAML file, or the name of one that ships with the library: they hold the terms of the loss.
        overwrite: whether a run that is in `output` is deleted first.
        settings: as of `finetune`; also `terms`, `teacher` and `alone`, which fine-tunes the same student on the labels
            alone, to compare with.

    Returns:
        A `LanguageModel`, with `results`: those of `finetune`, and "comparison", a row for the teacher and each student.

    Raises:
        ConfigError, DataError, RunDirectoryError: as `finetune`; also a teacher that cannot teach this student.

    Example:
        small = bert_tf.distill("sentiment", student="bert_mini", train="train.tsv", dev="dev.tsv", output="small")
        small.predict("a fine film")
    """
    from bert_tf.distillation.distill_config import DistillConfig, check_distillation
    from bert_tf.models.families import PRESETS

    mapping = _settings(config, columns, settings)
    given = {"teacher": {"path": str(teacher)}}
    if isinstance(student, dict):
        given["student"] = student
    elif student in PRESETS:
        given["student"] = {"model": {"preset": student}}
    else:
        given["init_from"] = str(student)
    mapping = configuration.merge(mapping, given)

    def read(mapping):
        built = configuration.build(DistillConfig, mapping)
        check_distillation(built)
        return built

    def run(built):
        from bert_tf.distillation import distill as run_distillation
        from bert_tf.training.shares import warn_of_seen

        warn_of_seen(built.data.dev, teacher)
        return run_distillation(built, output)

    data = {"train": train, "unlabelled": unlabelled, "dev": dev, "test": test}
    return _train(mapping, data, output, overwrite, read, lambda built: built, run)


def _settings(config, columns, settings):
    """The settings of the run without its files: nested dicts, as a YAML file holds them."""
    from bert_tf.training.finetune_config import FinetuneTrainConfig
    from bert_tf.training.optimizer_config import AdamConfig

    for name in settings:
        meant = configuration.SYNONYMS.get(name, name)
        if name == "data" or name.startswith("validation"):
            raise ConfigError(
                f"unknown setting '{name}'; give the data as train, dev and test, or dev=0.1, a share of train"
            )
        if meant != name and meant in FinetuneTrainConfig.__dataclass_fields__:
            raise ConfigError(f"unknown setting '{name}'; did you mean '{meant}'?")
        if meant in AdamConfig.__dataclass_fields__ and meant not in FinetuneTrainConfig.__dataclass_fields__:
            raise ConfigError(f"'{name}' is a setting of the optimizer; give optimizer={{'{meant}': ...}}")
    mapping = configuration.read_yaml(configuration.find(config)) if config else {}
    train = {name: value for name, value in settings.items() if name in FinetuneTrainConfig.__dataclass_fields__}
    others = {name: value for name, value in settings.items() if name not in train}
    parts = {"train": train, "data": {"columns": columns} if columns else {}}
    return configuration.merge(mapping, others | {name: part for name, part in parts.items() if part})


def _train(mapping, data, output, overwrite, read, first, run):
    """Trains on files or Python objects, and opens the result.

    Args:
        mapping: of `_settings`.
        data: split -> what was given.
        output, overwrite: of `finetune`.
        read: function(mapping with the files) -> what is run; it refuses wrong settings.
        first: function of this -> its first configuration.
        run: function of this -> the summary.
    """
    from bert_tf.checkpoints import open_source

    summary = _run(mapping, data, output, overwrite, read, first, run)
    model = LanguageModel(open_source(output))
    model.results = summary
    return model


@writes_to("output")
def _run(mapping, data, output, overwrite, read, first, run):
    """Writes the data that are no files to `output`, and trains; returns the summary."""
    from bert_tf.training.run_data import DATA, remove_data_folder

    folder = Path(output)
    files = {split: str(folder / DATA / f"{split}.jsonl") for split, given in data.items() if given is not None}
    is_share = isinstance(data["dev"], float)
    for split, given in data.items():
        if isinstance(given, (str, Path)) and not (split == "train" and is_share):
            files[split] = str(given)
    if is_share and data["train"] is None:
        raise ConfigError(f"dev={data['dev']} is a share of train, and there is none; give train, or data for dev")
    planned = read(configuration.merge(mapping, {"data": files}))  # before anything is written or TensorFlow imported
    if overwrite:
        given = [Path(path) for path in data.values() if isinstance(path, (str, Path))]
        if inside := [path for path in given if folder.resolve() in path.resolve().parents]:
            raise ConfigError(
                f"overwrite=True would delete {inside[0]}, which is trained on; copy it to another folder"
            )
        _delete(folder)
    from bert_tf.training.run_records import CONFIG

    parts = {}
    try:
        parts = _parts_of(data, first(planned))
        files |= {split: str(Path(files[split]).with_suffix(part.ending)) for split, part in parts.items()}
        _write_data(parts, files, folder)
        return run(read(configuration.merge(mapping, {"data": files})))
    except DataError as error:  # which names the copy of the data
        raise _in_source(error, parts, files) from None
    except RunDirectoryError as error:
        more = ", or give overwrite=True" if "holds another run" in str(error) else ""
        raise RunDirectoryError(*error.args, more) from None
    finally:
        if not is_there(folder / CONFIG):  # it was refused: nothing is left behind
            remove_data_folder(folder)


@writes_to("output")
def _delete(output):
    from bert_tf.training.run_data import delete_run

    delete_run(output)


def _parts_of(data, config):
    """Split -> the `Parts` of what came from Python, or is a share of a file."""
    from bert_tf.training.shares import parts_of

    columns, tagged, parts = config.data.columns, config.task.get("kind") == "tagging", {}
    if isinstance(data["dev"], float):
        whole = parts_of(data["train"], columns, "train", tagged)
        parts = dict(zip(("train", "dev"), whole.divided(data["dev"], 0)))  # the same for runs of all seeds
    others = {split: given for split, given in data.items() if given is not None and split not in parts}
    return parts | {
        split: parts_of(given, columns, split) for split, given in others.items() if not isinstance(given, (str, Path))
    }


def _in_source(error, parts, files):
    """The error, with the places of what was given in place of those in the files that were written of it."""

    def place(text):
        for split, part in parts.items():
            line = rf"{re.escape(files[split])}, line (\d+)"
            text = re.sub(line, lambda match, part=part: part.place(int(match[1])) or match[0], text)
        return text

    return type(error)(*(place(part) if isinstance(part, str) else part for part in error.args))


def _write_data(parts, files, folder):
    """Writes what `_parts_of` returned to the files that `files` names for it."""
    from bert_tf.training.run_data import make_data_folder
    from bert_tf.training.run_records import CONFIG

    for split, part in parts.items():
        path, text = files[split], part.text()
        if is_there(path) and Path(path).read_text(encoding="utf-8") != text and is_there(folder / CONFIG):
            raise RunDirectoryError(
                f"{folder} was trained on other data: {split} differs from {path}. Choose another output directory, use the "
                "same data and the same share for dev to resume the run, or give overwrite=True"
            )
        make_data_folder(folder)
        with atomic_write(path) as file:
            file.write(text)
