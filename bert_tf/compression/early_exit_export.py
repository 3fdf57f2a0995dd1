"""From a run of classification to a SavedModel that answers easy texts early."""

import dataclasses
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.compression.early_exit import EarlyExitClassifier, layer_states, train_exits, uncertainty
from bert_tf.compression.exporting import TOLERANCE, Compressed, Trial, open_finetuned, reference_examples
from bert_tf.compression.gate import batches, check_tolerance, compare_outputs
from bert_tf.compression.measuring import size_of
from bert_tf.errors import ConfigError
from bert_tf.export.classification import ServedClassifier
from bert_tf.export.saved_model import check_version, write_saved_model
from bert_tf.progress import Progress
from bert_tf.remote import is_remote, writes_to
from bert_tf.tasks.batching import bucket_bounds, plan_batches

#: The thresholds that are tried, the largest first: the larger, the earlier a text leaves.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(20, 0, -1))


@dataclasses.dataclass(frozen=True)
class EarlyExit(Compressed):
    """What `export_early_exit` wrote: also

    Attributes:
        threshold: of the uncertainty.
        layers: how many layers the model has.
        mean_layers: how many were computed for an example of the comparison, on average.
    """

    threshold: float
    layers: int
    mean_layers: float

    def lines(self):
        yield from super().lines()
        yield f"{self.mean_layers:.2f} of {self.layers} layers are computed on average, at the threshold {self.threshold}"


class ServedEarlyExit(ServedClassifier):
    """As `ServedClassifier`, with the further output `layers`: int32 [N], how many layers were computed for each text.

    Args:
        model: `EarlyExitClassifier`.
        others: as of `ServedClassifier`; `static` is refused.

    Raises:
        ConfigError: `static`, with which every text would go through all layers.

    Example:
        encoder = BertEncoder(BertConfig(tokenizer.vocabulary_size, 16, num_layers=2, num_heads=2, intermediate_size=32))
        exits = ExitClassifiers(1, units=2)
        exits.build((None, 1, 16))
        model = EarlyExitClassifier(Classifier(encoder, 2), exits, threshold=0.5)
        ServedEarlyExit(model, tokenizer, ("neg", "pos"), sequence_length=16).answer_text(["a film"])["layers"]
    """

    def __init__(self, model, tokenizer, labels, sequence_length=128, pairs=False, static=False):
        if static:
            raise ConfigError("early exit has shapes that depend on the answers; leave --static out")
        super().__init__(model, tokenizer, labels, sequence_length, pairs)

    def settings(self):
        return super().settings() | {"threshold": self._model().threshold}

    def compute(self, features):
        found = super().compute(features)  # one output, so that the model is computed once
        return {"all": tf.concat([found["probabilities"], tf.cast(found["layers"], tf.float32)[:, None]], axis=1)}

    def answer(self, features):
        count, labels = len(self.labels), tf.constant(self.labels)
        found = self.bucketed_output(features, "all", [count + 1])
        probabilities = found[:, :count]
        return {
            "label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
            "probabilities": probabilities,
            "labels": tf.tile(labels[None], [tf.shape(probabilities)[0], 1]),
            "layers": tf.cast(found[:, count], tf.int32),
        }


@writes_to("output")
def export_early_exit(
    run_directory,
    tolerance=TOLERANCE,
    train=None,
    dev=None,
    texts=None,
    output=None,
    version=None,
    sequence_length=None,
):
    """Writes a SavedModel of a classifier whose layers each have a classifier, if it answers as the whole model does.

    The classifiers learn the model's own answers to the texts of a file; labels are not read. The threshold is the largest
    that passes the gate.

    Args:
        run_directory: of `finetune`, with task.kind=classification; or a published checkpoint of that class.
        train: a file of texts to train the classifiers on; None is the training file of the run.
        tolerance, dev, texts, output, version, sequence_length: as of `export_compressed`. The threshold is chosen on `dev`
            (or `texts`), so say with another file how good the result is.

    Returns:
        An `EarlyExit`.

    Raises:
        ConfigError: another task or family; or no threshold with which any text leaves early passes the gate.
        RunDirectoryError, DataError, ExportError: as `export_run`.

    Example:
        export_early_exit("bert-base-SST2", 1.0, train="train.tsv", dev="dev.tsv", output="early").mean_layers
    """
    check_tolerance(tolerance)
    source, (task, model, _) = open_finetuned(run_directory)
    if output is None and (source.format != "run" or is_remote(run_directory)):
        raise ConfigError(
            f"{run_directory} is no run directory of this machine; say where the export is written: output (--output)"
        )
    if sequence_length is not None:
        task.config = dataclasses.replace(task.config, sequence_length=sequence_length)
    train = train or (source.run.config().get("data") or {}).get("train") if source.format == "run" else train
    if not train:
        raise ConfigError(f"{run_directory} names no training file; give texts with --train")
    folder = Path(run_directory) / "export" if output is None else output
    check_version(folder, version)
    # Refuses a length, before the work.
    ServedClassifier(model, task.tokenizer, task.labels, task.config.sequence_length)
    trial = Trial(task, model, reference_examples(task, source, dev, texts), tolerance)
    exits = _trained(task, model, task.read(train, labelled=False))
    threshold, mean = _threshold(trial, exits)
    early = EarlyExitClassifier(model, exits, threshold)
    comparison, times = trial.passed(trial.graph(model=early), "train the classifiers on more texts (--train)")
    served = ServedEarlyExit(early, task.tokenizer, task.labels, task.config.sequence_length, bool(task.pairs))
    path = write_saved_model(served, folder, version)
    measured = trial.result(path, size_of(path / "variables"), comparison, times)
    return EarlyExit(**vars(measured), threshold=threshold, layers=len(model.backbone.blocks()), mean_layers=mean)


def _trained(task, model, examples):
    plan = _plan(task, examples)
    progress = Progress("the layers' vectors,", len(plan), "batches")
    exits = train_exits(model, batches(task, examples, plan), progress.update)
    progress.finish()
    return exits


def _plan(task, examples):
    """What `plan_batches` returns for all examples, in batches of like length."""
    lengths = task.sequences(examples).lengths
    return plan_batches(lengths, bucket_bounds(task.config.sequence_length), 32, task.config.tokens_per_batch)


def _threshold(trial, exits):
    """The largest threshold that passes the gate on the examples of a trial, and the mean number of layers with it."""
    task, examples = trial.task, trial.examples
    plan = _plan(task, examples)
    states, whole = layer_states(trial.model, batches(task, examples, plan))
    order = np.argsort(np.concatenate([indexes for indexes, _ in plan]))
    states, whole = states[order], whole[order]
    early = np.concatenate([tf.nn.softmax(exits(states)).numpy(), whole[:, None]], axis=1)
    certain = uncertainty(early).numpy()
    outputs = [{"probabilities": row, "logits": np.log(row + 1e-30)} for row in whole]
    for threshold in THRESHOLDS:
        leaves = certain < threshold
        leaves[:, -1] = True
        layer = leaves.argmax(axis=1)
        found = early[np.arange(len(early)), layer]
        if (layer == early.shape[1] - 1).all():
            break  # no text leaves early, at no smaller threshold either
        after = [{"probabilities": row, "logits": np.log(row + 1e-30)} for row in found]
        comparison = compare_outputs(task, examples, outputs, after)
        if 1 - comparison.agreement <= trial.tolerance and comparison.loss_of_metric <= trial.tolerance:
            return threshold, float(layer.mean() + 1)
    raise ConfigError(
        f"no threshold lets texts leave early within the tolerance {trial.tolerance}. Nothing was written; train the classifiers "
        "on more texts (--train), or allow more with --tolerance"
    )
