"""configs/README.md explains every key of every configuration. It is written from the dataclasses:

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

FILE = Path(__file__).parent.parent / "configs" / "README.md"
HEAD = """# Configurations: which one, and every key

A configuration is a YAML file: `--config pretrain/bert_base` names one that ships with the library, `--config my.yaml`
one of yours. `--set train.batch_size=64` changes a key, and may be repeated. An unknown key, a value of the wrong type
or out of range is refused with the key's name, before TensorFlow is loaded. The resolved configuration is written to
`config.yaml` of the run.

## Which configuration do I want?

| you want to | `--config` |
|---|---|
| pretrain on ten megabytes or more of text, on a laptop | `laptop/best` for ten minutes, `laptop/best_half_hour` for more |
| the same with another family | `laptop/FAMILY`; decoders `laptop/gpt1`, `pretrain/gpt_laptop`; text to text `pretrain/t5_laptop` |
| pretrain as a paper did, on accelerators | `pretrain/` and the name of the published size, such as `pretrain/roberta_base` |
| classify texts or pairs, predict a number or several labels | `finetune/classification`, `finetune/regression`, `finetune/multi_label` |
| tag words, choose an option, answer questions about a text | `finetune/tagging`, `finetune/multiple_choice`, `finetune/question_answering` |
| write texts from texts | `finetune/text_to_text` |
| fine-tune GPT-1, T5 or an LSTM above word vectors on data of yours | `finetune/models/gpt1`, `finetune/models/t5`, `finetune/models/bilstm` |
| fine-tune on a known data set as a paper did | `finetune/published/` and its name, and the model's where papers differ: `mrpc`, `squad_electra` |
| run GLUE or SuperGLUE | `benchmarks/glue`, `benchmarks/superglue` |
| teach a small model your task | `distill/soft_labels`; from a pretrained student and unlabelled texts `distill/well_read` |
| make a small general model | `distill/distilbert`, `distill/minilm`, `distill/tinybert_general`, `distill/mobilebert` |
| find out what matters in pretraining | `ablations/masked_lm`, `ablations/bert_masking`, ...; settings of your own: `ablations/laptop_search` |
| ask a pretrained model tasks in words | `prompts/translation`, `prompts/sentiment`, ... |
| train word vectors | `vectors/skip_gram`, `vectors/cbow`, `vectors/glove` |

Each file says at its top where its values are from, how its shards are written, and what it took.

## Every key

| folder | command | sections |
|---|---|---|
| `pretrain/` | `bert-tf pretrain` | [Pretraining](#pretraining) |
| `finetune/` | `bert-tf finetune` | [Fine-tuning](#fine-tuning) |
| `benchmarks/` | `bert-tf benchmark` | [GLUE and SuperGLUE](#glue-and-superglue) |
| `distill/` | `bert-tf distill` | [Distillation](#distillation) |
| `ablations/` | `bert-tf study` | [Studies](#studies) |
| `prompts/` | `bert-tf prompt` | [Prompting](#prompting) |
| `vectors/` | `bert-tf vectors` | [Word vectors](#word-vectors) |

The settings of `bert-tf shards` are its flags, and the values under `shards` of a study: [Shards](#shards).

This page is written from the code: `python tests/test_configs_reference.py --write`.
"""


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
    hints, words, shown = (
        typing.get_type_hints(cls, include_extras=True),
        explanations(cls),
        {} if shown is None else shown,
    )
    rows, below = [], []
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


def page():
    """The text of configs/README.md."""
    lines = [HEAD]
    for title, cls in (("Pretraining", PretrainConfig), ("Fine-tuning", FinetuneConfig)):
        twice = () if cls is PretrainConfig else ("optimizer",)
        lines += [f"## {title}", "", summary(cls), "", *table(cls, without=twice)]
        if cls is FinetuneConfig:
            lines += [
                "### `optimizer` of fine-tuning",
                "",
                f"As [of pretraining](#optimizer-with-optimizername-adamw), {other_defaults()}.",
                "",
            ]
            shown = {}
            lines += ["### `task`", "", summary(TaskConfig), "", *table(TaskConfig, "task.", shown=shown)]
            own = table(HeadedTaskConfig, "task.", without=same_fields(HeadedTaskConfig, TaskConfig), shown=shown)
            lines += ["### `task` of every kind but `text_to_text`", "", summary(HeadedTaskConfig), "", *own]
            library = [record for record in TASKS.values() if not isinstance(record.task, type)]
            for record in library:
                without = same_fields(record.config, HeadedTaskConfig) | {"kind"}
                own = table(record.config, "task.", without=without, shown=shown)
                if own:
                    lines += [f"### `task` with `task.kind: {record.name}`", "", summary(record.config), "", *own]
            kinds = {}
            for record in library:
                kinds.setdefault(record.config.columns, []).append(f"`{record.name}`")
            for columns, names in kinds.items():
                lines += [f"### `data.columns` of {', '.join(names)}", "", summary(columns), ""]
                lines += table(columns, "data.columns.")
    lines += [
        "## Models",
        "",
        "The section `model`: a `preset`, one of the published sizes, with any key below to change; or a ",
    ]
    lines[-1] += "`family` with all keys that have no default."
    lines += [""]
    for family in FAMILIES.values():
        sizes = ", ".join(f"`{name}`" for name in family.sizes)
        lines += [
            f"### `model.family: {family.name}`",
            "",
            f"{summary(family.config)}{f' Presets: {sizes}.' if sizes else ''}",
            "",
        ]
        lines += table(family.config, "model.")
    lines += ["## Shards", "", summary(ShardsConfig), "", *table(ShardsConfig)]
    lines += ["## Studies", "", summary(StudyConfig), "", *table(StudyConfig, without=("halving",))]
    lines += ["### a row of `rows`", "", summary(StudyRow), "", *table(StudyRow, "rows.NAME.")]
    lines += ["### `halving`", "", summary(HalvingConfig) + " None by default.", "", *table(HalvingConfig, "halving.")]
    lines += ["## Distillation", "", summary(DistillConfig) + " `optimizer` and `train` are those of fine-tuning.", ""]
    lines += table(DistillConfig, without=("optimizer", "train"))
    lines += ["### with `data.shards`", "", summary(DistillPretrainConfig)]
    lines[-1] += (
        " `data`, `objective`, `optimizer` and `train` are those of pretraining, `teacher` and `student` those of a task."
    )
    lines += [
        "",
        *table(DistillPretrainConfig, without=("data", "objective", "optimizer", "train", "teacher", "student")),
    ]
    for term in TERMS.values():
        lines += [f"### `terms.{term.name}`", "", summary(term.config), "", *table(term.config, f"terms.{term.name}.")]
    lines += ["## GLUE and SuperGLUE", "", summary(BenchmarkConfig), "", *table(BenchmarkConfig)]
    lines += ["## Prompting", "", summary(PromptingConfig), "", *table(PromptingConfig)]
    lines += ["## Word vectors", "", summary(VectorsConfig), "", *table(VectorsConfig)]
    return "\n".join(lines).rstrip("\n") + "\n"


def test_keys_of_one_table_have_meanings_of_their_own():
    """Two keys on one line of a docstring would get one text for two meanings."""
    same, seen = [], {}
    for line in page().splitlines():
        if line.startswith("#"):
            seen = {}
        elif line.startswith("| `"):
            key, meaning = line.split(" | ")[0], line.split(" | ")[-1]
            same += [f"{seen[meaning]} and {key}: {meaning}"] if meaning in seen else []
            seen[meaning] = key
    assert not same


def test_the_page_is_up_to_date():
    """Every key has an explanation, and the committed page is what the code says."""
    assert FILE.read_text(encoding="utf-8") == page(), "run: python tests/test_configs_reference.py --write"


def test_a_range_is_in_words():
    assert config.Range(at_least=1, below=5).bounds == "at least 1 and below 5"
    assert allowed(typing.Annotated[int | None, config.Range(at_least=1)]) == "whole number or null at least 1"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    FILE.write_text(page(), encoding="utf-8")
