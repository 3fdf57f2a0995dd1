"""Published checkpoints as models, and as run directories that every later step can start from."""

import dataclasses
from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save_file

from bert_tf import config as configuration
from bert_tf.backend import TrainableModel
from bert_tf.checkpoints import open_checkpoint, write_checkpoint
from bert_tf.checkpoints.families import PAIR_HEADS
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder, is_there
from bert_tf.models.building import build_config, build_encoder, describe
from bert_tf.models.configs import generator_config
from bert_tf.models.electra import make_generator
from bert_tf.models.weights import LoadReport
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.objectives.permutation_lm import PermutationLM
from bert_tf.objectives.replaced_token_detection import ReplacedTokenDetection
from bert_tf.tokenizers import Tokenizer
from bert_tf.training.checkpoints import MODEL, assign, tensor_names, write_state
from bert_tf.training.run_directory import CONFIG, RunDirectory

#: What shows which objective a model was pretrained with; where it has several the first is taken.
PRETRAINING_HEADS = ("discriminator_head", "lm_head", "masked_lm_head")
#: The head of each family's own pretraining, where it is not the masked LM's.
OWN_HEADS = {"electra": "discriminator_head", "xlnet": "lm_head"}
_SPAN_BOUNDARY = "span_boundary_head"
_TASK_HEAD = "head"  # of every fine-tuned model, see tasks/
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
    if not is_there(Path(path) / CONFIG):
        return load_checkpoint(path, pretraining, pooler, fresh, family, dtype, **outputs)
    _check_fresh(fresh)
    return _load_run(path, pretraining, pooler, fresh, dtype, outputs)


def _load_run(path, pretraining, pooler, fresh, dtype, outputs, span_boundary=True):
    """`span_boundary`: whether SpanBERT's second head, which no published format has, comes along."""
    run = RunDirectory.open(path)
    parts = _parts_of_run(path)
    if not span_boundary:
        parts.discard(_SPAN_BOUNDARY)
    record = run.config()
    config = build_config(run.section("model"))
    encoder, objective = _models(config, parts, pretraining, pooler, fresh, path, dtype, outputs, _settings(record))
    model = objective or encoder
    kept = [v.path for v in model.weights if (part := v.path.split("/", 1)[0]) in fresh and part not in parts]
    wanted = [v for v in model.weights if v.path not in kept]
    unused = run.checkpoints.read(lambda file: assign(wanted, file, others_allowed=True))
    report = LoadReport(unused=tuple(sorted(unused)), fresh=tuple(sorted(kept)))
    return Loaded(encoder, run.tokenizer(), objective, describe(config)["family"], report)


def load_checkpoint(path, pretraining=False, pooler=None, fresh=(), family=None, dtype=None, **outputs):
    """Opens a published checkpoint; see `bert_tf.load`, which also opens run directories."""
    source = open_checkpoint(path, family)
    _check_fresh(fresh)
    encoder, objective = _models(
        source.config, source.parts, pretraining, pooler, fresh, source.path, dtype, outputs,
        {"generator": source.generator},
    )  # fmt: skip
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
        ConfigError, DataError: as `bert_tf.load`; also a fine-tuned run without `encoder_only`.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    return convert(path, run_directory, "run", family, encoder_only)


def convert(path, output, to, family=None, encoder_only=False):
    """Reads a model and writes it as `to`: "run", "hf" or "tf1"; see `import_run` and `bert_tf.save`."""
    is_run = is_there(Path(path) / CONFIG)
    parts = _parts_of_run(path) if is_run else open_checkpoint(path, family).parts
    if is_run and _TASK_HEAD in parts and not encoder_only:
        raise ConfigError(
            f"{path} is a fine-tuned run, and the head of its task cannot be written as '{to}'; its encoder alone can: "
            "--encoder-only (encoder_only=True). To serve the whole model, use 'bert-tf export'"
        )
    has_heads = not encoder_only and any(head in parts for head in PRETRAINING_HEADS)
    if is_run and to != "run":
        loaded = _load_run(path, has_heads, None, (), None, {}, span_boundary=False)
    else:
        loaded = _load_whole(path, has_heads, family)
    model = loaded.objective or loaded.encoder
    if to != "run":
        write_checkpoint(model, loaded.tokenizer, output, to)
        return loaded
    described = describe(loaded.encoder.config)
    record = {
        "model": described,
        # XLNet has no longest length; 512 is what the published models were trained on.
        "data": {"sequence_length": described.get("max_positions", 512)},
        "imported_from": str(path),
    } | _record(loaded.objective)
    with atomic_folder(output) as folder:
        configuration.save(record, folder / CONFIG)
        RunDirectory(folder).keep_tokenizer(loaded.tokenizer)
        _write_checkpoint(model, folder / "checkpoints" / "step-00000000")
    return loaded


def _load_whole(path, has_heads, family):
    try:
        return load(path, pretraining=has_heads, family=family)
    except DataError as error:
        if not any(f"'{head}/" in str(error) for head in PRETRAINING_HEADS):
            raise
        raise DataError(f"{error}\n  to convert the encoder without this head, add --encoder-only") from None


def _parts_of_run(path):
    return {name.split("/", 1)[0] for name in RunDirectory.open(path).checkpoints.read(tensor_names)}


def _record(objective):
    """What config.yaml says of an objective, for `_settings` to read."""
    if isinstance(objective, ReplacedTokenDetection):
        record = {"name": "replaced_token_detection", "discriminator_weight": objective.discriminator_weight}
        generator = objective.generator
        return {"objective": record, "generator": None if generator is None else describe(generator.config)}
    if isinstance(objective, PermutationLM):
        record = {"name": "permutation_lm", "memory_length": objective.memory_length}
        if objective.reuse_length is not None:
            record["reuse_length"] = objective.reuse_length
        return {"objective": record, "permutation": {"segments": objective.segments}}
    if isinstance(objective, MaskedLM):
        return {"objective": {"name": "masked_lm", "pair_head": objective.pair_head or "none"}}
    return {"objective": {}}


def _settings(record):
    """Keyword arguments of a run's objective, from its config.yaml."""
    objective, permutation = record.get("objective") or {}, record.get("permutation") or {}
    generator = record.get("generator")
    if generator is None and "generator_size" in objective:
        generator = {"size": objective["generator_size"]}
    return {
        "pair_head": objective.get("pair_head"),
        "discriminator_weight": objective.get("discriminator_weight", 50.0),
        "generator": generator,
        "segments": permutation.get("segments", 2),
        "memory_length": objective.get("memory_length", 384),
        "reuse_length": objective.get("reuse_length"),
    }


def _models(config, parts, pretraining, pooler, fresh, path, dtype, outputs, settings):
    """The encoder, and the objective or None, for a source that has these parts.

    `settings` are what the objective was trained with, as far as it is known: see `_settings`;
    "generator" may also be an `ElectraConfig`.
    """
    family = describe(config)["family"]
    pair_head = None
    if pretraining and "pair_head" in {*parts, *fresh}:
        pair_head = settings.get("pair_head")
        if pair_head not in ("next_sentence", "sentence_order"):
            pair_head = PAIR_HEADS.get(family)
    if pooler is None:
        pooler = "pooler" in parts or pair_head is not None
    encoder = build_encoder(config, pooler=pooler, dtype=dtype, **outputs)
    if not pretraining:
        return encoder, None
    head = next((head for names in (parts, fresh) for head in PRETRAINING_HEADS if head in names), None)
    if head is None:
        own = OWN_HEADS.get(family, "masked_lm_head")
        raise DataError(f"{path} holds no pretraining head; to start one from random values, pass fresh=('{own}',)")
    if head == "lm_head":
        segments, memory_length = settings.get("segments", 2), settings.get("memory_length", 384)
        return encoder, PermutationLM(encoder, segments, memory_length, settings.get("reuse_length"))
    if head == "discriminator_head":
        generator = _generator(encoder, settings.get("generator")) if "generator" in parts else None
        return encoder, ReplacedTokenDetection(encoder, generator, settings.get("discriminator_weight", 50.0))
    return encoder, MaskedLM(encoder, pair_head=pair_head, span_boundary=_SPAN_BOUNDARY in parts)


def _generator(discriminator, described):
    if isinstance(described, dict):
        size = described.get("size")
        described = build_config(described) if size is None else generator_config(discriminator.config, size)
    return make_generator(discriminator, described)


def _write_checkpoint(model, folder):
    """A checkpoint without an optimizer: what starts from it makes its own."""
    folder.mkdir(parents=True)
    save_file({v.path: np.ascontiguousarray(v) for v in model.weights}, folder / MODEL)
    write_state(folder, [MODEL], step=0)


def _check_fresh(fresh):
    for part in fresh:
        if part not in FRESH:
            raise ConfigError(f"fresh names '{part}'{configuration.nearest(part, FRESH)}")
