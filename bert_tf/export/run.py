"""From a run directory to a served model."""

from pathlib import Path

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.export.classification import ServedClassifier, ServedRegressor
from bert_tf.export.embedding import ServedEmbedding
from bert_tf.export.fill_mask import ServedMaskedLM
from bert_tf.export.saved_model import write_saved_model
from bert_tf.export.tagging import ServedTagger
from bert_tf.models.families import build_config
from bert_tf.objectives import MaskedLM
from bert_tf.training.loading import is_finetuned, load_finetuned, load_pretrained, trained_length
from bert_tf.training.precision import AUTO, choose
from bert_tf.training.run_directory import RunDirectory

#: Tokens of the requests that a precision is chosen for: of a short text, and of a batch.
REQUESTS = (16, 512)
EMBEDDING, MASKED_LM = "embedding", "masked_lm"


def export_run(
    run_directory,
    output=None,
    kind=None,
    version=None,
    sequence_length=None,
    static=False,
    precision="auto",
    shares=2,
    top_k=5,
    words="punctuation",
):
    """Writes the model of a run as a SavedModel with its tokenizer inside: `<output>/<version>/`.

    Args:
        run_directory: of `pretrain` or `finetune`.
        output: the model's base path; None is `export/` in the run directory.
        kind: None is the run's own: its task ("classification", "regression", "tagging"), or
            "masked_lm" after pretraining. Every run can be exported as "embedding".
        version: positive int; None takes the next free number.
        sequence_length: longer texts are truncated to so many tokens. None is the length it was
            trained on: the task's, or after pretraining the shards'.
        static: pad every row to `sequence_length` (GPU, TPU) instead of the batch's longest (CPU).
        precision: "float32" or "mixed_bfloat16", whatever it was trained in; "auto" is what suits this
            machine, see `bert_tf.training.precision.choose`.
        shares: parts of each large layer computed side by side, see `write_saved_model`.
        top_k: masked LM: how many tokens are answered for each mask.
        words: tagging: what ends a word, see `ServedTagger`.

    Returns:
        The path of the version.

    Raises:
        ConfigError: a kind that the run is not, or settings that do not fit the model.
        RunDirectoryError: no finished run, or a version that exists already.
        DataError: a checkpoint that does not fit its model, or whose weights are not finite.
        ExportError: the written model failed its verification.
    """
    finetuned = is_finetuned(run_directory)
    if precision == AUTO:
        precision = choose(build_config(RunDirectory.open(run_directory).section("model")), REQUESTS, stored=True)
    shape = {"static": static}
    if finetuned:
        task, model, tokenizer = load_finetuned(run_directory, precision)
        kind = _checked(kind, (task.kind, EMBEDDING), run_directory)
        shape["sequence_length"] = task.config.sequence_length if sequence_length is None else sequence_length
        if kind == "classification":
            module = ServedClassifier(model, tokenizer, task.labels, pairs=bool(task.pairs), **shape)
        elif kind == "regression":
            module = ServedRegressor(model, tokenizer, pairs=bool(task.pairs), **shape)
        elif kind == "tagging":
            module = ServedTagger(model, tokenizer, task.labels, words=words, **shape)
        else:
            module = ServedEmbedding(model.encoder, tokenizer, **shape)
    else:
        objective, tokenizer = load_pretrained(run_directory, precision)
        # The others cannot fill masks: XLNet never saw one, ELECTRA's discriminator only tells words apart.
        possible = (MASKED_LM, EMBEDDING) if isinstance(objective, MaskedLM) else (EMBEDDING,)
        kind = _checked(kind, possible, run_directory)
        shape["sequence_length"] = trained_length(run_directory) if sequence_length is None else sequence_length
        if kind == MASKED_LM:
            module = ServedMaskedLM(objective, tokenizer, top_k=top_k, **shape)
        else:
            module = ServedEmbedding(objective.backbone, tokenizer, **shape)
    return write_saved_model(module, Path(run_directory) / "export" if output is None else output, version, shares)


def _checked(kind, possible, run_directory):
    if kind is None:
        return possible[0]
    if kind not in possible:
        raise ConfigError(f"{run_directory} cannot be exported as '{kind}'{nearest(str(kind), possible)}")
    return kind
