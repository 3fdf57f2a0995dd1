"""Loads models from disk. Every command goes through this file.

A path is one of these (`open_source`):

| path | recognized by |
|---|---|
| run directory, of pretraining or fine-tuning | config.yaml |
| Hugging Face folder | config.json, with model.safetensors or its shards |
| ELECTRA's two Hugging Face folders | discriminator/config.json and generator/config.json |
| TensorFlow 1 checkpoint: its folder or its prefix | one .index file, with the family's configuration |
| Model Garden checkpoint of BERT: its folder or its prefix | the same, with an object graph inside |
| `hf://owner/name` of the Hugging Face Hub | becomes a Hugging Face folder in the cache (`bert_tf.hub`) |

and becomes:

| function | from | gives | used by |
|---|---|---|---|
| `load` | any | `Loaded`: encoder, tokenizer, with `pretraining=True` the objective | `bert_tf.load`, `convert` |
| `load_pretrained` | any with its pretraining heads | objective, tokenizer | `fill-mask` |
| `load_for_generation` | any that writes text | backbone, tokenizer, `Frame` | `generate`, `score`, `prompt` |
| `load_with_objective` | any | `Loaded`, with the objective where there is one | `export` |
| `load_encoder` | any | encoder, tokenizer | `finetune --init-from` |
| `load_new_encoder` | any | a new encoder above its token table, tokenizer | `finetune`, `encoder` |
| `initialize` | any | fills an objective | `train.init_from` |
| `initialize_embeddings` | any | fills the token table | `train.init_embeddings_from` |
| `load_finetuned` | run of fine-tuning, Hugging Face folder of a fine-tuned class | task, model, tokenizer | `evaluate`, `predict`, `export` |

`converting.py` writes a run directory or another library's format from any of them.
"""

import dataclasses
from pathlib import Path

import keras
from absl import logging

from bert_tf import config as configuration
from bert_tf.backend import TrainableModel
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import is_there
from bert_tf.models.families import (
    FAMILIES,
    arguments_of,
    build_backbone,
    config_for_token_table,
    describe,
    encoder_alone,
)
from bert_tf.models.model_config import DROPOUT_RATES
from bert_tf.models.weights import LoadReport, by_path, part_of
from bert_tf.objectives.objective import ObjectiveConfig
from bert_tf.objectives.registry import OBJECTIVES
from bert_tf.tasks import load_task
from bert_tf.tasks.record import check_task
from bert_tf.tasks.task import Task
from bert_tf.tokenizers import Tokenizer
from bert_tf.training.precision import precision as precision_scope
from bert_tf.training.published_tasks import longest_sequence, task_of
from bert_tf.training.run_directory import CONFIG
from bert_tf.training.sources import open_source


@dataclasses.dataclass(frozen=True)
class Loaded:
    """The result of `bert_tf.load`.

    Attributes:
        encoder: the encoder, its weights set.
        tokenizer: the tokenizer.
        objective: the pretraining model around the encoder, or None if it was not asked for.
        family: our name of the family.
        report: which arrays were not used, and which variables are randomly initialized.
        task: of a fine-tuned model, its `Task`; None where it was not asked for.
        task_model: the model of the task around the encoder.
    """

    encoder: keras.Model
    tokenizer: Tokenizer
    objective: TrainableModel | None
    family: str
    report: LoadReport
    task: Task | None = None
    task_model: TrainableModel | None = None


def load(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, trained=True, **outputs):
    """See `bert_tf.load`. `trained`: of `load_from`."""
    _check_choices(pretraining, pooler, fresh)
    source = open_source(path, family)
    known = arguments_of(source.config)
    for name in outputs:
        if name not in known:
            raise ConfigError(
                f"bert_tf.load has no argument '{name}' for this model{configuration.nearest(name, known)}"
            )
    settings = None
    if pretraining:
        settings = objective_of(source, fresh)
        if settings is None:
            own = OBJECTIVES[FAMILIES[source.family].objective].head
            raise DataError(
                f"{path} holds no pretraining head, as after fine-tuning; give the run of its pretraining, or in Python "
                f"initialize one randomly with bert_tf.load(..., fresh=('{own}',))"
            )
    return load_from(source, settings, pooler, fresh, dtype, trained, **outputs)


def _check_choices(pretraining, pooler, fresh):
    for name, value in (("pretraining", pretraining), ("pooler", pooler)):
        if value not in (True, False, None):
            raise ConfigError(f"{name} is {value!r}; it must be True or False")
    if isinstance(fresh, str):
        raise ConfigError(f"fresh is {fresh!r}, which is no list of parts; give ({fresh!r},)")
    known = ["pooler", "pair_head", *(record.head for record in OBJECTIVES.values() if record.head)]
    for part in fresh:
        if part not in known:
            raise ConfigError(f"fresh names '{part}'{configuration.nearest(part, known)}")


def load_from(source, settings, pooler=None, fresh=(), dtype=None, trained=True, **outputs):
    """`Loaded` from what `open_source` returns, with the objective of these settings; None for no objective.

    With `trained=False` all variables keep their random initial values.
    """
    if pooler is None:
        pooler = "pooler" in source.parts or (settings is not None and settings.needs_pooler)
    encoder = build_backbone(source.config, pooler=pooler, dtype=dtype, **outputs)
    objective = None
    if settings is not None:
        objective = OBJECTIVES[settings.name].model_class.from_settings(encoder, settings)
    report = LoadReport()
    if trained:
        report = source.fill(objective or encoder, partly=objective is None, fresh=fresh)
    return Loaded(encoder, source.tokenizer(), objective, source.family, report)


def objective_of(source, fresh=()):
    """The settings of the objective that a source was pretrained with.

    A run names it in its config.yaml. A published checkpoint shows the head of one of `OBJECTIVES`; or the
    family's own objective has no head.

    Args:
        source: of `open_source`.
        fresh: parts that the model gets beside those of the source.

    Returns:
        An `ObjectiveConfig`; None if neither the source nor `fresh` has a pretraining head.
    """
    family = FAMILIES[source.family]
    if source.objective:
        settings = configuration.build(ObjectiveConfig, source.objective, "objective")
    else:
        record = _shown_objective(family, source.parts) or _shown_objective(family, fresh)
        if record is None:
            return None
        settings = record.config()
    generator = None if source.generator is None else describe(source.generator)
    return settings.for_parts({*source.parts, *fresh}, family.pair_task, generator)


def _shown_objective(family, parts):
    own = OBJECTIVES[family.objective]
    shown = (record for record in OBJECTIVES.values() if record.head in parts)
    return next(shown, own if own.head is None else None)


def load_pretrained(path, precision="float32", trained=True, fresh=()):
    """The objective and tokenizer of a pretraining run, or of a published checkpoint with its heads.

    Args:
        path: what `bert_tf.load` opens.
        precision: what the model computes in, whatever it was trained in.
        trained: False keeps the random initial weights: the same model without its training.
        fresh: as of `bert_tf.load`.

    Returns:
        A pair (the objective, such as a `MaskedLM`; tokenizer).

    Raises:
        RunDirectoryError, DataError, ConfigError: as `bert_tf.load`; also an unknown precision.
    """
    with precision_scope(precision):
        loaded = load(path, pretraining=True, trained=trained, fresh=fresh)
    return loaded.objective, loaded.tokenizer


def load_with_objective(path, precision="float32"):
    """`Loaded` with the objective that `path` was pretrained with; `objective` is None where it has no heads.

    Args, Raises: as `load_pretrained`.
    """
    source = open_source(path)
    with precision_scope(precision):
        return load_from(source, objective_of(source))


def load_encoder(path, trained=True, pooler=True, dropout=None, whole=False, **outputs):
    """The encoder and tokenizer to fine-tune.

    Args:
        path: what `bert_tf.load` opens. Of T5 it is the encoder alone, a `T5Encoder`.
        trained: False keeps the random initial weights: the same model without its training.
        pooler: whether the encoder has a pooler. If the source has none, it is randomly initialized.
        dropout: the encoder's dropout rates, on attention too; None for those of the source.
        whole: whether T5's decoder is wanted, too, as by a task that writes text.
        outputs: further arguments of the encoder, such as `output_hidden_states`.

    Returns:
        A pair (encoder, tokenizer).

    Raises:
        RunDirectoryError, DataError, ConfigError: as `bert_tf.load`.
    """
    source = open_source(path)
    config = trained_config(source, whole)
    if dropout is not None:
        rates = set(DROPOUT_RATES) & {field.name for field in dataclasses.fields(config)}
        config = dataclasses.replace(config, **dict.fromkeys(rates, dropout))
    encoder = build_backbone(config, pooler=pooler, **outputs)
    if trained:
        _warn(source, source.fill(encoder, partly=True, fresh=("pooler",)))
    return encoder, source.tokenizer()


def trained_config(source, whole):
    """The configuration of the model of a source that a task is trained on: of T5 the encoder alone, unless `whole`.

    What is trained here reads the last token of a text, which may be the one that ends it, whatever a checkpoint says of
    its own classifiers.
    """
    config = source.config if whole else encoder_alone(source.config)
    return config if config.skipped_id is None else dataclasses.replace(config, skipped_id=None)


def new_config(source, section, whole=False):
    """The configuration of a new encoder above the token table of a source.

    Args:
        source: of `open_source`.
        section: `encoder` of a `FinetuneConfig`; empty for the configuration of the source itself.
        whole: of `trained_config`.

    Raises:
        ConfigError: as `build_config`; also a table of another width than the source's.
    """
    if not section:
        return trained_config(source, whole)
    width = int(build_backbone(source.config).embedding_table.shape[-1])
    return config_for_token_table(section, source.config.vocabulary_size, width, source.tokenizer().pad_id)


def load_new_encoder(path, section, trained=True, pooler=True):
    """A new encoder with random weights above the token table of `path`, and the tokenizer of `path`.

    Args:
        path: what `bert_tf.load` opens, such as a run of `bert-tf vectors`.
        section: `encoder` of a `FinetuneConfig`.
        trained: False keeps a random table, too.
        pooler: whether the encoder has a pooler.

    Returns:
        A pair (encoder, tokenizer).

    Raises:
        RunDirectoryError, DataError: as `bert_tf.load`.
        ConfigError: as `new_config`.
    """
    source = open_source(path)
    encoder = build_backbone(new_config(source, section), pooler=pooler)
    if trained:
        copy_token_table(encoder, source, "encoder")
    return encoder, source.tokenizer()


def copy_token_table(encoder, source, section):
    """Sets the token table of an encoder from that of a source; `section` is the settings of the encoder, for messages.

    Raises:
        ConfigError: the tables have different shapes.
    """
    table = load_from(source, None).encoder.embedding_table
    if tuple(table.shape) != tuple(encoder.embedding_table.shape):
        raise ConfigError(
            f"the token table of {source.path} is {tuple(table.shape)}, that of the new encoder "
            f"{tuple(encoder.embedding_table.shape)}; set {section}.hidden_size, or {section}.embedding_size where the family "
            "has one, to the width of the table"
        )
    encoder.embedding_table.assign(table)


def load_head(model, path):
    """Sets the variables of a task's head that `path` holds: the layers of ModernBERT's that are pretrained.

    Args:
        model: of a `Task`.
        path: what `bert_tf.load` opens. If it does not hold all of them, they keep their random values.
    """
    source, variables = open_source(path), getattr(model, "pretrained_head", dict)()
    own = {variable.path: variable for variable in variables.values()}  # of a run of fine-tuning
    for named in (variables, own):
        if named and named.keys() <= source.paths:
            source.fill(named, partly=True)
            return
    if variables:
        logging.warning("%s has no pretrained layers of the head: they are randomly initialized", path)


def finetuning_dropout(path):
    """The default dropout rate for fine-tuning `path`; None keeps its own rates.

    A published checkpoint (imported or not) and a fine-tuned run keep their own. A run that was pretrained
    here gets 0.1: a short pretraining goes without dropout, a small labelled set needs it.
    """
    source = open_source(path)
    if source.format != "run" or source.is_finetuned or "imported_from" in source.run.config():
        return None
    return 0.1


def initialize(objective, tokenizer, path, fresh=()):
    """Starts a pretraining model from a run directory or a published checkpoint.

    Args:
        objective: a `PretrainingModel`; its variables are set.
        tokenizer: the tokenizer of the shards; its vocabulary must equal that of `path`.
        path: what `bert_tf.load` opens.
        fresh: parts, such as "pair_head" or "masked_lm_head", that keep their random initial values
            if `path` does not have them. Parts of `path` that the objective does not have are ignored.

    Raises:
        RunDirectoryError: no run, or no whole checkpoint in it.
        ConfigError: a setting of the encoder differs from that of `path`.
        DataError: the weights do not fill the model, or it was trained on other tokens.
    """
    source = open_source(path)
    _check_vocabulary(source, tokenizer)
    theirs = configuration.to_dict(source.config)
    for name, value in configuration.to_dict(objective.backbone.config).items():
        # Settings of training and of heads alone may differ; those that change the outputs may not.
        if (
            name not in (*DROPOUT_RATES, "unroll", "initializer_range", "classifier_pooling", "skipped_id")
            and theirs.get(name) != value
        ):
            raise ConfigError(
                f"model.{name} is {value!r}, but {path} has {theirs.get(name)!r}; set model.{name} to that value"
            )
    missing = sorted({part_of(name) for name in by_path(objective)} - source.parts - set(fresh))
    if missing:
        raise DataError(
            f"{path} has no {', '.join(missing)}; to initialize them randomly, list them in train.init_fresh"
        )
    _warn(source, source.fill(objective, partly=True, fresh=fresh))


def initialize_embeddings(objective, tokenizer, path):
    """Starts the token table of a pretraining model from another model's, such as word vectors.

    Args:
        objective: a `PretrainingModel`; the token table of its backbone is set.
        tokenizer: the tokenizer of the shards; its vocabulary must equal that of `path`.
        path: what `bert_tf.load` opens.

    Raises:
        RunDirectoryError, ConfigError, DataError: as `bert_tf.load`; also another vocabulary, or a table of another
            width.
    """
    source = open_source(path)
    _check_vocabulary(source, tokenizer)
    copy_token_table(objective.backbone, source, "model")


def _check_vocabulary(source, tokenizer):
    if source.tokenizer().vocabulary != tokenizer.vocabulary:
        raise DataError(
            f"{source.path} was trained on another vocabulary than that of the shards; write the shards with the tokenizer in "
            f"{source.path}"
        )


def load_for_generation(path, precision="float32"):
    """What `TextGenerator` and `TextScorer` need of a model that writes text.

    Args:
        path: what `bert_tf.load` opens: a run of pretraining, or of fine-tuning (text_to_text reads prompts as its
            sources), or a published checkpoint.
        precision: what the model computes in, whatever it was trained in.

    Returns:
        (backbone, tokenizer, the `Frame` in which it was trained to read prompts; None for the usual one).

    Raises:
        RunDirectoryError, DataError, ConfigError: as `load_pretrained` and `load_finetuned`.
    """
    if is_there(Path(path) / CONFIG) and is_finetuned(path):
        task, model, _ = load_finetuned(path, precision)
        if task.frame is not None:
            return model.backbone, task.tokenizer, task.frame
    objective, tokenizer = load_pretrained(path, precision)
    return objective.backbone, tokenizer, objective.frame(tokenizer)


def is_finetuned(path):
    """Whether `path`, a run directory or a Hugging Face directory, holds a fine-tuned model.

    Raises:
        RunDirectoryError, DataError, ConfigError: neither of the two, or damaged.
    """
    return open_source(path).is_finetuned


def trained_length(path):
    """The sequence length that a run was trained or fine-tuned with; positions beyond are untrained.

    Of a published checkpoint the longest possible one.

    Raises:
        RunDirectoryError: a run that does not record it.
    """
    source = open_source(path)
    if source.format != "run":
        return longest_sequence(source.config)
    run = source.run
    if source.is_finetuned:
        return check_task(run.section("task")).sequence_length
    length = run.section("data").get("sequence_length")
    if not isinstance(length, int):
        raise RunDirectoryError(f"{run.path / CONFIG} has no data.sequence_length; restore the file from a copy")
    return length


def load_finetuned(path, precision="float32", family=None):
    """The task, model and tokenizer of a fine-tuned model; of a run at its best epoch; of several seeds, the best.

    Args:
        path: a run directory of fine-tuning, or a Hugging Face directory of a fine-tuned class, such as
            BertForSequenceClassification. Its labels are those of `id2label`.
        precision: what the model computes in, whatever it was trained in.
        family: of a Hugging Face directory; see `bert_tf.load`.

    Returns:
        (`Task`, its model, tokenizer); `task.predict(model, texts)` answers.

    Raises:
        RunDirectoryError: no run of fine-tuning, or no whole checkpoint in it.
        DataError: no fine-tuned model, or a checkpoint that does not fit the model.
        ConfigError: an unknown precision, or a task that this library does not have.
    """
    loaded = load_finetuned_from(open_source(path, family), precision)
    return loaded.task, loaded.task_model, loaded.tokenizer


def load_finetuned_from(source, precision="float32"):
    """`Loaded` with `task` and `task_model`, from what `open_source` returns; see `load_finetuned`."""
    run = source.run if source.format == "run" else None
    task = load_task(run.path, run.tokenizer()) if run else task_of(source)
    with precision_scope(precision):
        model = task.model(build_backbone(source.config, pooler=task.needs_pooler(source.config)))
    if run:
        run.assign(model.variables)
    report = LoadReport() if run else source.fill_task(model)
    return Loaded(model.backbone, task.tokenizer, None, source.family, report, task, model)


def _warn(source, report):
    parts = sorted({part_of(path) for path in report.fresh})
    if parts:
        logging.warning("%s has no %s: it is randomly initialized", source.path, ", ".join(parts))
