"""The pages of docs/keys/ explain every key of every configuration. They are written from the dataclasses:

python tests/test_configs_reference.py --write
"""

import dataclasses
import inspect
import json
import re
import sys
import typing
from pathlib import Path

from bert_tf import config
from bert_tf.distillation import TERMS, DistillConfig, DistillPretrainConfig
from bert_tf.models.families import FAMILIES
from bert_tf.parsing import join_names
from bert_tf.prompting.prompting_config import PromptingConfig
from bert_tf.runs.benchmark_config import BenchmarkConfig
from bert_tf.runs.study_config import HalvingConfig, StudyConfig, StudyRow
from bert_tf.tasks.config import HeadedTaskConfig, TaskConfig
from bert_tf.tasks.record import TASKS
from bert_tf.training.finetune_config import FinetuneConfig
from bert_tf.training.pretrain_config import PretrainConfig
from bert_tf.vectors import VectorsConfig
from tfrecords.config import ShardsConfig

FOLDER = Path(__file__).parent.parent / "docs" / "keys"
#: Page -> title, and what the index says about it. The page of an objective, an optimizer and a task stands by itself, because
#: pretraining, fine-tuning and distillation refer to it.
PAGES = {
    "pretrain": ("Pretraining", "`bert-tf pretrain`, `pretrain/`, `laptop/`: data and training"),
    "objectives": ("Objectives", "`objective` of pretraining: masks, permutations, spans"),
    "optimizers": ("Optimizers", "`optimizer`: rates, schedules, decay"),
    "finetune": ("Fine-tuning", "`bert-tf finetune`, `finetune/`: data, training, the optimizer's defaults"),
    "tasks": ("Tasks", "`task` of fine-tuning: heads, losses, what each kind of task has"),
    "columns": ("Columns of labelled files", "`data.columns`: which columns of a file are read"),
    "models": ("Models", "`model`: families and sizes"),
    "shards": ("Shards", "the flags of `bert-tf shards`; `shards` of a study"),
    "distill": ("Distillation", "`bert-tf distill`, `distill/`: teacher, student, terms of the loss"),
    "studies": ("Studies", "`bert-tf study`, `ablations/`: rows, successive halving"),
    "benchmarks": ("GLUE and SuperGLUE", "`bert-tf benchmark`, `benchmarks/`"),
    "prompting": ("Prompting", "`bert-tf prompt`, `prompts/`"),
    "vectors": ("Word vectors", "`bert-tf vectors`, `vectors/`"),
}
#: First part of a heading -> the page that takes it from the page of its command.
MOVED = {"`objective": "objectives", "`optimizer": "optimizers"}
INDEX = """# Every key

A configuration is a YAML file: `--config pretrain/bert_base` names one that comes with the library, `--config my.yaml`
one of yours. `--set train.batch_size=64` changes a key, and may be repeated. An unknown key, a value of the wrong type
or out of range is refused with the key's name, before TensorFlow is loaded. The resolved configuration is written to
`config.yaml` of the run. In Python the sections are nested dicts:
`config.load(PretrainConfig, "pretrain/bert_base", {"train": {"batch_size": 64}})`.

A default that depends on something else is `null`, and the last column says on what. `configs/README.md` tells which
configuration is for what.

"""
NOTE = "<!-- Written from the code: python tests/test_configs_reference.py --write -->\n"


def explanations(cls):
    """Field -> its line in the docstring of the dataclass or of a base class."""
    found = {}
    for base in reversed(cls.__mro__):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        section = re.search(r"^(?:Attributes|Args):\n((?:    .*\n?|\n)+)", text, re.M)
        for names, words in re.findall(
            r"^    ([a-z_0-9, ]+): ((?:.*\n?(?:        .*\n?|\n(?=        ))*))", section[1] if section else "", re.M
        ):
            found |= {name.strip(): re.sub(r"\s+", " ", words).strip() for name in names.split(",")}
    return found


def allowed(hint):
    """The type of a field in words, with its range."""
    if typing.get_origin(hint) is typing.Annotated:
        kind, *ranges = typing.get_args(hint)
        return f"{allowed(kind)} {', '.join(r.bounds for r in ranges)}"
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if type(None) in arguments:
        return " or ".join([*(allowed(a) for a in arguments if a is not type(None)), "null"])
    if typing.get_origin(hint) in (list, tuple):
        return f"list of {allowed(arguments[0])}"
    if typing.get_origin(hint) is dict:
        return "mapping" if typing.Any in arguments else f"mapping of {' to '.join(allowed(a) for a in arguments)}"
    if arguments:
        return " or ".join(allowed(a) for a in arguments)
    return {int: "whole number", float: "number", str: "text", bool: "true or false", dict: "mapping"}[hint]


def default(field, base):
    """The default of a field: what `base` has, where it is given."""
    if base is not None:
        value = getattr(base, field.name)
    elif field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "must be given"
    if value == "":
        return "must be given"
    return f"`{json.dumps(value)}`".replace('`"', "`").replace('"`', "`")


def table(cls, prefix="", base=None, shown=None, without=()):
    """Lines of Markdown: a table of the fields of `cls`, and after it those of its sections, each class once.

    `without`: names of fields that are left out.
    """
    hints, words = typing.get_type_hints(cls, include_extras=True), explanations(cls)
    rows, below, shown = [], [], {} if shown is None else shown
    for field in dataclasses.fields(cls):
        if field.name in without:
            continue
        hint, path = hints[field.name], prefix + field.name
        classes = list(dict.fromkeys(hint.choices().values())) if hasattr(hint, "choices") else [hint]
        if not all(dataclasses.is_dataclass(inner) for inner in classes):
            cells = [f"`{path}`", allowed(hint), default(field, base), words[field.name]]
        elif shown.get(hint):
            cells = [f"`{path}`", "section", f"as `{shown[hint]}`", words[field.name]]
        else:
            shown[hint] = path
            below += [(path, inner, len(classes) > 1, field) for inner in classes]
            continue
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines = ["| key | value | default | meaning |", "|---|---|---|---|", *rows, ""] if rows else []
    for path, inner, chosen, field in below:
        value = getattr(base, field.name) if base is not None else field.default
        value = value if type(value) is inner else None
        lines += [f"### `{path}`" + (f" with `{path}.name: {inner.name}`" if chosen else ""), ""]
        lines += [summary(inner), "", *table(inner, f"{path}.", value, shown)]
    return lines


def other_defaults():
    """The defaults of the optimizer of fine-tuning that are not those of pretraining, in words."""
    own, other = FinetuneConfig().optimizer, PretrainConfig().optimizer
    values = {field.name: getattr(own, field.name) for field in dataclasses.fields(own)}
    changed = [f"`{name}={json.dumps(value)}`" for name, value in values.items() if value != getattr(other, name)]
    return f"with {join_names(changed)} by default"


def same_fields(cls, general):
    """The names of the fields of `cls` that `general` has with the same type and default."""
    hints, known = (typing.get_type_hints(c, include_extras=True) for c in (cls, general))
    names = [field.name for field in dataclasses.fields(cls) if hints[field.name] == known.get(field.name)]
    return {name for name in names if getattr(cls, name) == getattr(general, name)}


def summary(cls):
    """The first paragraph of a docstring."""
    return " ".join(inspect.cleandoc(cls.__doc__).split("\n\n")[0].split())


def sections():
    """Page -> lines of Markdown below its title. All sections are headings of the second level."""
    pages = {name: [] for name in PAGES}
    pages["pretrain"] = [summary(PretrainConfig), "", *table(PretrainConfig)]
    pages["finetune"] = [summary(FinetuneConfig), "", *table(FinetuneConfig, without=("optimizer",))]
    others = f"As [of pretraining](optimizers.md#optimizer-with-optimizername-adamw), {other_defaults()}."
    pages["finetune"] += ["### `optimizer` of fine-tuning", "", others, ""]
    pages["objectives"] = ["What a model is pretrained on: the section `objective`, whose `name` chooses one.", ""]
    others = "Fine-tuning has [other defaults](finetune.md#optimizer-of-fine-tuning)."
    chosen = "The section `optimizer` of pretraining and distillation, whose `name` chooses one."
    pages["optimizers"] = [f"{chosen} {others}", ""]
    pages["tasks"], pages["columns"] = task_sections()
    choice = "a `preset`, one of the published sizes, with any key below to change; or a `family` with all keys that"
    pages["models"] = [f"The section `model`: {choice} have no default.", ""]
    for family in FAMILIES.values():
        sizes = ", ".join(f"`{name}`" for name in family.sizes)
        presets = f" Presets: {sizes}." if sizes else ""
        pages["models"] += [f"### `model.family: {family.name}`", "", f"{summary(family.config)}{presets}", ""]
        pages["models"] += table(family.config, "model.")
    pages["shards"] = [summary(ShardsConfig), "", *table(ShardsConfig)]
    pages["studies"] = [summary(StudyConfig), "", *table(StudyConfig, without=("halving",))]
    pages["studies"] += ["### a row of `rows`", "", summary(StudyRow), "", *table(StudyRow, "rows.NAME.")]
    pages["studies"] += ["### `halving`", "", summary(HalvingConfig) + " None by default.", ""]
    pages["studies"] += table(HalvingConfig, "halving.")
    pages["distill"] = distillation_section()
    pages["benchmarks"] = [summary(BenchmarkConfig), "", *table(BenchmarkConfig)]
    pages["prompting"] = [summary(PromptingConfig), "", *table(PromptingConfig)]
    pages["vectors"] = [summary(VectorsConfig), "", *table(VectorsConfig)]
    return pages


def task_sections():
    """Lines of Markdown: the settings of tasks, and those of their columns."""
    shown = {}
    lines = [summary(TaskConfig), "", *table(TaskConfig, "task.", shown=shown)]
    own = table(HeadedTaskConfig, "task.", without=same_fields(HeadedTaskConfig, TaskConfig), shown=shown)
    lines += ["### `task` of every kind but `text_to_text`", "", summary(HeadedTaskConfig), "", *own]
    library = [record for record in TASKS.values() if not isinstance(record.task, type)]
    for record in library:
        without = same_fields(record.config, HeadedTaskConfig) | {"kind"}
        own = table(record.config, "task.", without=without, shown=shown)
        if own:
            lines += [f"### `task` with `task.kind: {record.name}`", "", summary(record.config), "", *own]
    kinds, columns = {}, []
    for record in library:
        kinds.setdefault(record.config.columns, []).append(f"`{record.name}`")
    for settings, names in kinds.items():
        columns += [f"### `data.columns` of {', '.join(names)}", "", summary(settings), ""]
        columns += table(settings, "data.columns.")
    return lines, columns


def distillation_section():
    """Lines of Markdown: the settings of distillation."""
    lines = [summary(DistillConfig) + " `optimizer` and `train` are those of [fine-tuning](finetune.md).", ""]
    lines += table(DistillConfig, without=("optimizer", "train"))
    own = "`data`, `objective`, `optimizer` and `train` are those of [pretraining](pretrain.md), `teacher` and"
    lines += ["### with `data.shards`", "", f"{summary(DistillPretrainConfig)} {own} `student` those of a task."]
    known = ("data", "objective", "optimizer", "train", "teacher", "student")
    lines += ["", *table(DistillPretrainConfig, without=known)]
    for term in TERMS.values():
        lines += [f"### `terms.{term.name}`", "", summary(term.config), "", *table(term.config, f"terms.{term.name}.")]
    return lines


def pages():
    """File of docs/keys/ -> its text."""
    found = sections()
    own = found["pretrain"]
    found["pretrain"] = []
    for chunk in chunks(own):
        there = [page for heading, page in MOVED.items() if chunk[0].startswith(f"### {heading}")]
        found[there[0] if there else "pretrain"] += chunk
    others = "so have `optimizer` ([optimizers](optimizers.md)) and `model` ([models](models.md))."
    found["pretrain"].append(f"`objective` has [a page of its own](objectives.md), and {others}")
    texts = {}
    for name, (title, _) in PAGES.items():
        text = "\n".join([NOTE + f"# {title}", "", *found[name]]).rstrip("\n") + "\n"
        texts[name] = as_text(text.replace("\n### ", "\n## "))
    rows = [f"| [{title}]({name}.md) | {words} |" for name, (title, words) in PAGES.items()]
    tree = ["```{toctree}", ":hidden:", "", *PAGES, "```"]
    texts["index"] = "\n".join([NOTE + INDEX + "| page | keys of |", "|---|---|", *rows, "", *tree]) + "\n"
    return {FOLDER / f"{name}.md": text for name, text in texts.items()}


def chunks(lines):
    """Lines of Markdown, cut before each heading."""
    found = [[]]
    for line in lines:
        if line.startswith("### "):
            found.append([])
        found[-1].append(line)
    return [chunk for chunk in found if chunk]


def as_text(markdown):
    """`<s>` and the like are tokens here, where Markdown would read HTML; code and comments stay as they are."""
    parts = re.split(r"(`[^`\n]*`|<!--.*?-->)", markdown)
    return "".join(part if i % 2 else part.replace("<", "\\<") for i, part in enumerate(parts))


def test_keys_of_one_table_have_meanings_of_their_own():
    """Two keys on one line of a docstring would get one text for two meanings."""
    same, seen = [], {}
    for line in "\n".join(pages().values()).splitlines():
        if line.startswith("#"):
            seen = {}
        elif line.startswith("| `"):
            key, meaning = line.split(" | ")[0], line.split(" | ")[-1]
            same += [f"{seen[meaning]} and {key}: {meaning}"] if meaning in seen else []
            seen[meaning] = key
    assert not same


def test_the_pages_are_up_to_date():
    """Every key has an explanation, and the committed pages are what the code says."""
    written = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages(), "run: python tests/test_configs_reference.py --write"


def test_a_range_is_in_words():
    assert config.Range(at_least=1, below=5).bounds == "at least 1 and below 5"
    assert allowed(typing.Annotated[int | None, config.Range(at_least=1)]) == "whole number or null at least 1"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
