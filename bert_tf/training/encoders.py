"""Loads the encoder of a run directory or of a published checkpoint."""

from pathlib import Path

from absl import logging

from bert_tf.checkpoints import is_checkpoint, open_checkpoint
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import is_there
from bert_tf.models.families import build_config, build_encoder, describe
from bert_tf.training import inputs
from bert_tf.training.checkpoints import MODEL, assign, tensor_names
from bert_tf.training.run_directory import CONFIG, RunDirectory


def load_encoder(path, trained=True, pooler=True, dropout=None, **outputs):
    """The encoder and tokenizer of a run or a published checkpoint.

    Args:
        path: a run directory, of pretraining or fine-tuning; or a published checkpoint, see
            `bert_tf.load`.
        trained: False keeps the random initial weights: the same model without its training.
        pooler: whether the encoder has a pooler. One that the run did not train (pretraining
            without sentence pairs) is randomly initialized.
        dropout: the encoder's dropout rates, on attention too; None leaves those of the run.
        outputs: further arguments of the encoder, such as `output_hidden_states`.

    Returns:
        A pair (encoder, tokenizer).

    Raises:
        RunDirectoryError: no run, or no whole checkpoint in it.
        DataError: the checkpoint does not fit the model.
        ConfigError: a published checkpoint with a setting that is not understood.
    """
    source, run = _open(path)
    model = describe(source.config) if source else run.section("model")
    if dropout is not None:
        model |= {name: dropout for name in ("dropout", "attention_dropout") if name in model}
    encoder = build_encoder(build_config(model), pooler=pooler, **outputs)
    if source:
        if trained:
            _say_fresh(path, source.fill(encoder, partly=True, fresh=("pooler",)).fresh)
        return encoder, source.tokenizer()

    def fill(file):
        known = tensor_names(file)
        wanted = [v for v in encoder.variables if v.path in known or not v.path.startswith("pooler/")]
        assign(wanted, file, others_allowed=True)

    if trained:
        run.checkpoints.read(fill)
    return encoder, run.tokenizer()


def finetuning_dropout(path):
    """The default dropout rate for fine-tuning `path`; None keeps its own rates.

    A published checkpoint (imported or not) and a fine-tuned run keep their own. A run that was pretrained
    here gets 0.1: a short pretraining goes without dropout, a small labelled set needs it.
    """
    source, run = _open(path)
    record = {} if source else run.config()
    return None if source or "imported_from" in record or "task" in record else 0.1


def initialize(objective, tokenizer, path, fresh=()):
    """Starts a pretraining model from a run directory or a published checkpoint.

    Args:
        objective: a `PretrainingModel`; its variables are set.
        tokenizer: the tokenizer of the shards; its vocabulary must equal that of `path`.
        path: as in `load_encoder`.
        fresh: parts, such as "pair_head" or "masked_lm_head", that keep their random initial values
            if `path` does not have them. Parts of `path` that the objective does not have are ignored.

    Raises:
        RunDirectoryError: no run, or no whole checkpoint in it.
        ConfigError: a setting of the encoder differs from that of `path`.
        DataError: the weights do not fill the model, or it was trained on other tokens.
    """
    source, run = _open(path)
    if tokenizer_of(path).vocabulary != tokenizer.vocabulary:
        raise DataError(
            f"{path} was trained on another vocabulary than that of the shards; write the shards with the tokenizer in "
            f"{path}"
        )
    theirs = to_dict(config_of(path))
    for name, value in to_dict(objective.backbone.config).items():
        # Settings of training alone may differ; those that change the outputs may not.
        if name not in ("dropout", "attention_dropout", "initializer_range") and theirs.get(name) != value:
            raise ConfigError(
                f"model.{name} is {value!r}, but {path} has {theirs.get(name)!r}; set model.{name} to that value"
            )
    if source:
        _say_fresh(path, source.fill(objective, partly=True, fresh=fresh).fresh)
        return
    run.checkpoints.read(lambda file: _initialize_from(file, objective, path, fresh))


def _initialize_from(file, objective, path, fresh):
    known = tensor_names(file)
    parts = {name.split("/", 1)[0] for name in known}
    kept = [v for v in objective.variables if (part := v.path.split("/", 1)[0]) in fresh and part not in parts]
    _say_fresh(path, [v.path for v in kept])
    lacking = sorted({v.path.split("/", 1)[0] for v in objective.variables} - parts - set(fresh))
    if lacking:
        raise DataError(
            f"{path} has no {', '.join(lacking)}; to initialize them randomly, list them in train.init_fresh"
        )
    assign([v for v in objective.variables if all(v is not k for k in kept)], file, others_allowed=True)


def identity_of(path):
    """A checksum of the weights of a run or a published checkpoint, which does not depend on its path; a dict."""
    source, run = _open(path)
    if source:
        return inputs.of_arrays(source.config, source.arrays)
    found = run.checkpoints.latest()
    return {"step": found[1]["step"], "sha256": found[1]["sha256"][MODEL]} if found else {}


def tokenizer_of(path):
    """The tokenizer of a run directory or a published checkpoint."""
    source, run = _open(path)
    return (source or run).tokenizer()


def config_of(path):
    """The configuration of the encoder of a run directory or a published checkpoint."""
    source, run = _open(path)
    return source.config if source else build_config(run.section("model"))


def _open(path):
    """(published checkpoint, None) or (None, run directory)."""
    if not is_there(Path(path) / CONFIG) and is_checkpoint(path):
        return open_checkpoint(path), None
    return None, RunDirectory.open(path)


def _say_fresh(path, paths):
    parts = sorted({p.split("/", 1)[0] for p in paths})
    if parts:
        logging.warning("%s has no %s: it is randomly initialized", path, ", ".join(parts))
