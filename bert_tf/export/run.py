"""From a run directory to a served model."""

import functools

from bert_tf.backend import EXPORTS
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.config import nearest
from bert_tf.errors import Advice, ConfigError
from bert_tf.export.elsewhere import export_elsewhere
from bert_tf.export.embedding import ServedEmbedding
from bert_tf.export.saved_model import write_saved_model
from bert_tf.export.served import SERVED
from bert_tf.models.families import family_of
from bert_tf.objectives import OBJECTIVES
from bert_tf.training.precision import AUTO, choose

#: Tokens of the requests that a precision is chosen for: of a short text, and of a batch.
REQUESTS = (16, 512)
EMBEDDING = "embedding"


def export_run(
    run_directory, output=None, kind=None, version=None, sequence_length=None, static=False, precision="auto", **options
):
    """Writes the model of a run as a SavedModel with its tokenizer inside: `<output>/<version>/`.

    Under another backend of Keras than TensorFlow a process of its own does it, on TensorFlow.

    Args:
        run_directory: of `pretrain` or `finetune`; or a published checkpoint, such as a Hugging Face directory.
        output: the model's base path; None is `export/` in the run directory. A published checkpoint needs one.
        kind: None is the run's own: its task (a name of `bert_tf.tasks.TASKS`; text_to_text is "generation"), or after
            pretraining "masked_lm" or "generation", where its objective is served so. Encoders and decoders can be
            exported as "embedding".
        version: positive int; None takes the next free number.
        sequence_length: longer texts are truncated to so many tokens. None is the length it was
            trained on: the task's, or after pretraining the shards'; for prompts that are continued less
            `max_new_tokens`.
        static: pad every text to `sequence_length` (GPU, TPU) instead of the batch's longest (CPU).
        precision: "float32" or "mixed_bfloat16", whatever it was trained in; "auto" chooses for this
            machine, see `bert_tf.training.precision.choose`.
        options: further arguments of the served module: `top_k` of masked_lm, `words` of tagging, of generation the
            settings of `GenerationConfig` (their defaults are the task's), `stop_tokens` and `allowed_tokens`.

    Returns:
        The path of the version.

    Raises:
        ConfigError: a kind that the run cannot be exported as, options of another kind, or settings that do not fit
            the model.
        RunDirectoryError: no finished run, or a version that exists already.
        DataError: a checkpoint that does not fit its model, or whose weights are not finite.
        ExportError: the written model failed its verification.

    Example:
        export_run("run", kind="embedding", precision="float32", sequence_length=16)  # writes run/export/1
    """
    if not EXPORTS:
        given = {"output": output, "kind": kind, "version": version, "sequence_length": sequence_length}
        return export_elsewhere(run_directory, **given, static=static, precision=precision, **options)
    source = open_source(run_directory)
    if output is None and source.format != "run":
        raise ConfigError(
            f"{run_directory} is not a run directory; say where the export is written: ", Advice("output", "FOLDER")
        )
    if precision == AUTO:
        precision = choose(source.config, REQUESTS, stored=True)
    module = served_module(OpenedModel(source, precision), kind, sequence_length, {"static": static} | options)
    return write_saved_model(module, f"{run_directory}/export" if output is None else output, version)


def served_module(opened, kind, sequence_length, settings):
    """The `ServingModule` of a model.

    Args:
        opened: `OpenedModel`.
        kind, sequence_length: of `export_run`.
        settings: dict of `static` and the further options of `export_run`.

    Raises:
        ConfigError, RunDirectoryError, DataError: as `export_run`.
    """
    finetuned, run_directory = opened.source.task is not None, opened.path
    if finetuned:
        task, model = opened.task, opened.model
        tokenizer, backbone = task.tokenizer, model.backbone
        name, served = task.kind, SERVED.get(task.kind)
        make = functools.partial(served.of_task, task, model) if served else None
        trained = task.config.sequence_length
    else:
        tokenizer, name = opened.tokenizer, opened.objective_settings and opened.objective_settings.name
        model, backbone = opened.objective if name else None, opened.backbone
        served = SERVED.get(name)
        make = functools.partial(served, model, tokenizer) if served else None
        trained = opened.sequence_length
    possible = (served.kind or name,) if served else ()
    if backbone.structure != "encoder_decoder" or family_of(backbone.config).encoder_alone:
        possible += (EMBEDDING,)
    if not possible:
        raise ConfigError(
            f"{run_directory} is an encoder-decoder whose task or objective is not served; export a run of "
            f"{' or '.join(name for name in OBJECTIVES if name in SERVED)}"
        )
    if finetuned and served is None and kind is None:
        raise ConfigError(
            f"{run_directory}: the task {name} is not served; its encoder alone is exported with ",
            Advice("kind", "embedding"),
        )
    kind = possible[0] if kind is None or (served and kind == name) else kind
    if kind not in possible:
        raise ConfigError(f"{run_directory} cannot be exported as '{kind}'{nearest(str(kind), possible)}")
    if kind == EMBEDDING:
        backbone = opened.encoder if backbone.structure == "encoder_decoder" else backbone
        served, make = ServedEmbedding, functools.partial(ServedEmbedding, backbone, tokenizer)
    for name in settings:
        if name not in ("static", *served.options):
            allowed = f"it takes {', '.join(served.options)}" if served.options else "it takes no options"
            raise ConfigError(f"an export of kind '{kind}' has no option '{name}'; {allowed}")
    if sequence_length is None:
        sequence_length = trained if finetuned else served.default_length(model, tokenizer, trained, settings)
    return make(sequence_length=sequence_length, **settings)
