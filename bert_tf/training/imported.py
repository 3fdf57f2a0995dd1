"""Published checkpoints as models, and as run directories that every later step can start from."""

import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.backend import TrainableModel
from bert_tf.checkpoints import appearing_whole, open_checkpoint, write_checkpoint
from bert_tf.checkpoints.families import PAIR_HEADS
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.building import build_config, build_encoder, describe
from bert_tf.models.electra import generator_config, make_generator
from bert_tf.models.weights import LoadReport
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.objectives.permutation_lm import PermutationLM
from bert_tf.objectives.replaced_token_detection import ReplacedTokenDetection
from bert_tf.tokenizers.base import Tokenizer
from bert_tf.training.checkpoints import MODEL, STATE, assign, sha256, tensor_names
from bert_tf.training.encoders import weights_of
from bert_tf.training.run_directory import CONFIG, RunDirectory

#: The pretraining heads of the families that have another than "masked_lm_head"; where a source
#: has several the first is taken.
HEADS = {"electra": ("discriminator_head", "masked_lm_head"), "xlnet": ("lm_head",)}
PRETRAINING_HEADS = ("masked_lm_head", "lm_head", "discriminator_head")
FRESH = ("pooler", "pair_head", *PRETRAINING_HEADS)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What `bert_tf.load` found.

    Attributes:
        encoder: the encoder, its weights set.
        tokenizer: the tokenizer.
        objective: the pretraining model around the encoder, or None where it was not asked for.
        family: our name of the family.
        report: which arrays were not used, and which variables are fresh.
    """

    encoder: keras.Model
    tokenizer: Tokenizer
    objective: TrainableModel | None
    family: str
    report: LoadReport


def load(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """See `bert_tf.load`."""
    if not (Path(path) / CONFIG).exists():
        return load_checkpoint(path, pretraining, pooler, fresh, family, dtype, **outputs)
    _check_fresh(fresh)
    run = RunDirectory.open(path)
    file = weights_of(run)
    parts = _parts_of_run(path)
    config = build_config(run.config()["model"])
    generator = None
    if "generator" in parts:
        generator = generator_config(config, run.config()["objective"]["generator_size"])
    encoder, objective = _models(config, parts, pretraining, pooler, fresh, path, dtype, outputs, generator)
    model = objective or encoder
    kept = [v.path for v in model.weights if (part := v.path.split("/", 1)[0]) in fresh and part not in parts]
    unused = assign([v for v in model.weights if v.path not in kept], file, others_allowed=True)
    report = LoadReport(unused=tuple(sorted(unused)), fresh=tuple(sorted(kept)))
    return Loaded(encoder, run.tokenizer(), objective, describe(config)["family"], report)


def load_checkpoint(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """Opens a published checkpoint; see `bert_tf.load`, which also opens run directories."""
    source = open_checkpoint(path, family)
    _check_fresh(fresh)
    encoder, objective = _models(
        source.config, source.parts, pretraining, pooler, fresh, source.path, dtype, outputs, source.generator
    )
    report = source.fill(objective or encoder, partly=objective is None, fresh=fresh)
    return Loaded(encoder, source.tokenizer(), objective, source.family, report)


def import_run(path, run_directory, family=None, encoder_only=False):
    """Turns a published checkpoint into a run directory.

    `finetune`, `export`, `fill-mask` and `pretrain` (`train.init_from`) then start from it as from
    a run of our own.

    Args:
        path: what `bert_tf.load` opens.
        run_directory: a folder that does not exist yet, or is empty.
        family: see `bert_tf.load`.
        encoder_only: leaves the heads out, which otherwise come along where there are any.

    Returns:
        The `Loaded` that was written.

    Raises:
        ConfigError, DataError: as `bert_tf.load`.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    return convert(path, run_directory, "run", family, encoder_only)


def convert(path, output, to, family=None, encoder_only=False):
    """Reads a model and writes it as `to`: "run", "hf" or "tf1"; see `import_run` and `bert_tf.save`."""
    is_run = (Path(path) / CONFIG).exists()
    parts = _parts_of_run(path) if is_run else open_checkpoint(path, family).parts
    has_heads = not encoder_only and any(head in parts for head in PRETRAINING_HEADS)
    loaded = load(path, pretraining=has_heads, family=family)
    model = loaded.objective or loaded.encoder
    if to != "run":
        write_checkpoint(model, loaded.tokenizer, output, to)
        return loaded
    config = loaded.encoder.config
    record = {
        "model": describe(config),
        "objective": {"pair_head": getattr(model, "pair_head", None) or "none"} if has_heads else {},
        # XLNet has no longest length; 512 is what the published models were trained on.
        "data": {"sequence_length": getattr(config, "max_positions", 512)},
        "imported_from": str(path),
    }
    with appearing_whole(Path(output)) as folder:
        configuration.save(record, folder / CONFIG)
        loaded.tokenizer.save(folder / "tokenizer")
        _write_checkpoint(model, folder / "checkpoints" / "step-00000000")
    return loaded


def _parts_of_run(path):
    return {name.split("/", 1)[0] for name in tensor_names(weights_of(RunDirectory.open(path)))}


def _models(config, parts, pretraining, pooler, fresh, path, dtype, outputs, generator=None):
    """The encoder, and the objective or None, for a source that has these parts."""
    family = describe(config)["family"]
    there = {*parts, *fresh}
    pair_head = PAIR_HEADS.get(family) if pretraining and "pair_head" in there else None
    if pooler is None:
        pooler = "pooler" in parts or pair_head is not None
    encoder = build_encoder(config, pooler=pooler, dtype=dtype, **outputs)
    if not pretraining:
        return encoder, None
    heads = HEADS.get(family, ("masked_lm_head",))
    head = next((head for names in (parts, fresh) for head in heads if head in names), None)
    if head is None:
        raise DataError(
            f"{path} holds no pretraining head; to start one from random values, pass fresh=('{heads[0]}',)"
        )
    if head == "lm_head":
        return encoder, PermutationLM(encoder)
    if head == "discriminator_head":
        if generator is not None and "generator" in parts:
            generator = make_generator(encoder, generator)
        return encoder, ReplacedTokenDetection(encoder, generator)
    return encoder, MaskedLM(encoder, pair_head=pair_head)


def _write_checkpoint(model, folder):
    """A checkpoint without an optimizer: what starts from it makes its own."""
    folder.mkdir(parents=True)
    save_file({v.path: np.ascontiguousarray(v) for v in model.weights}, folder / MODEL)
    state = {"step": 0, "sha256": {MODEL: sha256(folder / MODEL)}}
    (folder / STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")


def _check_fresh(fresh):
    for part in fresh:
        if part not in FRESH:
            raise ConfigError(f"fresh names '{part}'{configuration.nearest(part, FRESH)}")
