"""The Python calls that train: `bert_tf.pretrain` and `bert_tf.finetune`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf import config as configuration
from bert_tf.encodings import is_unicode
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

    Vocabulary, sizes and schedule are those of the recipes that the searches of RESULTS.md found: a small ModernBERT that
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
        train, dev, test: labelled data: a file in one of the formats of bert_tf/tasks/README.md; or Python objects: a list
            or a generator of dicts, a dict of columns, a DataFrame of pandas, or a split of the package datasets. They are
            written to `data/` in the output. The epoch with the best metric on `dev` is kept; `test` is measured with it.
            `dev` may be a share of the rows of `train`, such as 0.1, drawn at random and left out of the training.
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
    from bert_tf.checkpoints import open_source

    mapping = _settings(init_from, task, columns, config, settings)
    summary = _train(mapping, {"train": train, "dev": dev, "test": test}, output, overwrite)
    model = LanguageModel(open_source(output))
    model.results = summary
    return model


def _settings(init_from, task, columns, config, settings):
    """The settings of the run without its files: nested dicts, as a YAML file holds them."""
    from bert_tf.training.finetune_config import FinetuneTrainConfig

    own = {} if task is None else {"kind": task} if isinstance(task, str) else dict(task)
    if config is None:
        shipped = f"finetune/{own.get('kind', 'classification')}"
        config = shipped if shipped in configuration.shipped_configs() else None
    mapping = configuration.read_yaml(configuration.find(config)) if config else {}
    mapping["init_from"] = str(init_from)
    mapping["task"] = own if "preset" in own else (mapping.get("task") or {}) | own
    mapping["data"] = {"columns": dict(columns or {})}
    for name, value in settings.items():
        meant = configuration.SYNONYMS.get(name, name)
        if meant != name and meant in FinetuneTrainConfig.__dataclass_fields__:
            raise ConfigError(f"unknown setting '{name}'; did you mean '{meant}'?")
        if name in FinetuneTrainConfig.__dataclass_fields__:
            mapping["train"] = (mapping.get("train") or {}) | {name: value}
        else:
            is_section = isinstance(value, dict) and isinstance(mapping.get(name), dict)
            mapping[name] = mapping[name] | value if is_section else value
    return mapping


@writes_to("output")
def _train(mapping, data, output, overwrite):
    """Writes the data that are no files to `output`, and trains; returns the summary."""
    from bert_tf.runs.grid_config import read_grid
    from bert_tf.training.run_data import DATA, remove_data_folder

    folder = Path(output)
    files = {split: str(folder / DATA / f"{split}.jsonl") for split, given in data.items() if given is not None}
    is_share = isinstance(data["dev"], float)
    for split, given in data.items():
        if isinstance(given, (str, Path)) and not (split == "train" and is_share):
            files[split] = str(given)
    grid = read_grid(mapping | {"data": mapping["data"] | files})  # before anything is written or TensorFlow imported
    if overwrite:
        given = [Path(path) for path in data.values() if isinstance(path, (str, Path))]
        if inside := [path for path in given if folder.resolve() in path.resolve().parents]:
            raise ConfigError(
                f"overwrite=True would delete {inside[0]}, which is trained on; copy it to another folder"
            )
        _delete(folder)
    from bert_tf.runs.grid import finetune_grid
    from bert_tf.training.run_records import CONFIG

    try:
        _write_data(data, files, folder, grid.configs[0].data.columns, grid.configs[0].train.seed)
        return finetune_grid(grid, output)[0]
    finally:
        if not is_there(folder / CONFIG):  # it was refused: nothing is left behind
            remove_data_folder(folder)


@writes_to("output")
def _delete(output):
    from bert_tf.training.run_data import delete_run

    delete_run(output)


def _write_data(data, files, folder, columns, seed):
    """Writes what came from Python, or is a share of a file, to the files that `files` names for it."""
    from bert_tf.training.run_data import make_data_folder
    from bert_tf.training.run_records import CONFIG

    rows = {}
    if isinstance(data["dev"], float):
        whole = _rows(data["train"], columns)
        rows = dict(zip(("train", "dev"), _divided(whole, data["dev"], seed)))
        data = data | {"train": rows["train"], "dev": rows["dev"]}
    for split, path in files.items():
        if isinstance(data[split], (str, Path)):
            continue
        found = rows[split] if split in rows else _rows(data[split], columns)
        text = "".join(_line(row, split, number) + "\n" for number, row in enumerate(found))
        if is_there(path) and Path(path).read_text(encoding="utf-8") != text and is_there(folder / CONFIG):
            raise RunDirectoryError(
                f"{folder} was trained on other data: {split} differs from {path}. Choose another output directory, use the "
                "same data to resume the run, or give overwrite=True"
            )
        make_data_folder(folder)
        with atomic_write(path) as file:
            file.write(text)


def _rows(data, columns):
    """The rows of data as a list of dicts."""
    from bert_tf.tasks.rows.columns_config import TableColumns
    from bert_tf.tasks.rows.opening import open_table

    table = open_table(data, TableColumns(format=columns.get("format"), quoted=columns.get("quoted")))
    rows = [table.as_dict(row) for _, row in table.rows if row is not None]
    if table.format in ("conll", "lines") or (table.is_file and len(rows) == 1 and "data" in rows[0]):
        raise DataError(
            f"{table.path} is no table of rows of which dev={{a share}} could be taken; give a file for dev, dev='dev.conll'"
        )
    return rows


def _divided(rows, share, seed):
    """(the rows to train on, those of the share), each in their order."""
    import numpy as np

    count = round(share * len(rows))
    if not 0 < share < 1 or not 0 < count < len(rows):
        raise ConfigError(
            f"dev={share} of {len(rows)} rows is {max(count, 0)}; give a share that leaves a row to both, or data for dev"
        )
    chosen = np.zeros(len(rows), bool)
    chosen[np.random.default_rng(seed).permutation(len(rows))[:count]] = True
    return tuple([row for row, is_dev in zip(rows, chosen) if is_dev == wanted] for wanted in (False, True))


def _line(row, split, number):
    """A row as a line of JSON."""
    row = {str(key): value for key, value in row.items()}
    try:
        line = json.dumps(row, ensure_ascii=False, default=_plain)
        return line if is_unicode(line) else json.dumps(row, default=_plain)  # a lone surrogate
    except TypeError as error:
        raise DataError(f"{split}, example {number}: {error}; give texts, numbers and lists of them") from None


def _plain(value):
    """A value of NumPy, or a set, as JSON holds it."""
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{brief(value)} cannot be written as JSON")
