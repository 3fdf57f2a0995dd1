"""From a run of fine-tuning to one with fewer attention heads."""

import dataclasses
import math
from pathlib import Path

import numpy as np

from bert_tf.compression.exporting import TOLERANCE, Compressed, Trial, open_finetuned, reference_examples
from bert_tf.compression.gate import check_tolerance, compare_outputs, outputs_of
from bert_tf.compression.heads import head_importance, least_important, mask_heads, prunable_blocks, without_heads
from bert_tf.compression.measuring import size_of_weights
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import is_there, list_folder
from bert_tf.models.families import describe
from bert_tf.training.converting import write_run


@dataclasses.dataclass(frozen=True)
class Pruned(Compressed):
    """What `prune_heads` wrote: a `Compressed`, and for each layer the heads that are left, by their former numbers."""

    left: list

    def lines(self):
        yield f"heads left, by layer: {' '.join(str(len(heads)) for heads in self.left)}"
        yield from super().lines()


def prune_heads(run_directory, output, tolerance=TOLERANCE, step=0.1, most=None, dev=None, examples=256):
    """Writes a run with fewer attention heads, whose dev metric is as good but for `tolerance`.

    Michel et al. 2019, section 4.2: the heads of the least importance are masked, `step` of all heads at a time; the
    importance of the others is computed again; and so on until the metric falls by more than `tolerance`. The last
    masked heads that passed are removed from the kernels, so that the model is smaller and faster. Each layer keeps at
    least one.

    The result can be evaluated, exported and fine-tuned further, as the run itself. Other libraries' formats cannot say
    that layers have different numbers of heads: `convert --to hf` refuses it.

    Args:
        run_directory: of `finetune`; or a published checkpoint of a fine-tuned class.
        output: a folder that does not exist yet, or is empty.
        tolerance: the largest loss of the dev metric.
        step: the fraction of the heads that is masked at a time.
        most: the largest fraction of the heads that is removed; None for as many as `tolerance` allows.
        dev: a labelled file; None for that of the run. Both the importance and the metric are computed on it, so that a
            test set, not this file, says how good the result is.
        examples: how many examples the importance is computed on.

    Returns:
        A `Pruned`.

    Raises:
        ConfigError: no run of fine-tuning, a family whose heads cannot be pruned, no head that can be removed, or a number
            outside its range.
        RunDirectoryError, DataError: as `load_finetuned`; or `output` holds something.

    Example:
        prune_heads("bert-base-NER", "pruned", dev="train.conll", tolerance=1.0).left  # [[1]] or [[0]]
    """
    if not 0 < step <= 1 or (most is not None and not 0 < most <= 1):
        raise ConfigError(f"step={step} and most={most} are fractions of the heads, above 0 and at most 1")
    if examples < 1:
        raise ConfigError(f"examples={examples}; the importance of heads is computed on at least 1")
    check_tolerance(tolerance)
    if is_there(Path(output)) and (not Path(output).is_dir() or list_folder(output)):
        raise RunDirectoryError(f"{output} is not an empty folder; choose another output")
    source, (task, model, tokenizer) = open_finetuned(run_directory)
    prunable_blocks(model.backbone)
    labelled = reference_examples(task, source, dev)
    if labelled.labels is None:
        raise DataError(f"{labelled.path} has no labels; head pruning needs a labelled file (--dev)")
    trial = Trial(task, model, labelled, tolerance)
    original = {v.path: np.asarray(v.value) for v in model.variables}
    left, comparison = _mask_step_by_step(trial, step, most, examples)
    for v in model.variables:
        v.assign(original[v.path])
    smaller = without_heads(task, model, left)
    times = trial.times(trial.graph(model=smaller))
    record = {"model": describe(smaller.backbone.config), "task": to_dict(task.config), "pruned_from": str(source.path)}
    data = source.run.config().get("data") if source.format == "run" else None
    tensors = {v.path: np.ascontiguousarray(v) for v in smaller.variables}
    write_run(output, record | ({"data": data} if data else {}), tokenizer, tensors, task=task)
    written = trial.result(Path(output), size_of_weights(smaller), comparison, times)
    return Pruned(**vars(written), left=left)


def _mask_step_by_step(trial, step, most, examples):
    """(for each layer the heads that are left, ascending; the `Comparison` of the model with the others masked).

    Raises:
        ConfigError: the first step already loses more than the tolerance.
    """
    task, model = trial.task, trial.model
    left = [set(range(block.attention.num_heads)) for block in model.backbone.blocks()]
    total = sum(map(len, left))
    allowed = total - len(left) if most is None else min(total - len(left), int(most * total))
    if allowed < 1 <= total - len(left):
        least = math.ceil(1000 / total) / 1000
        raise ConfigError(f"most={most} of the {total} heads is less than one head; give at least {least}")
    passed, gone, refused = None, 0, None
    before = outputs_of(task, trial.examples, trial.before, "all heads")
    while gone < allowed:
        importance = head_importance(task, model, trial.examples, examples)
        removed = least_important(importance, left, min(max(1, round(step * total)), allowed - gone))
        mask_heads(model, removed)
        left = [heads - {head for at, head in removed if at == layer} for layer, heads in enumerate(left)]
        gone += len(removed)
        after = outputs_of(task, trial.examples, trial.before, f"{gone} of {total} heads masked")
        comparison = compare_outputs(task, trial.examples, before, after)
        if comparison.loss_of_metric > trial.tolerance or not np.isfinite(comparison.largest_difference):
            refused = comparison
            break
        passed = left, comparison
    if passed is None:
        why = (
            "each layer has one head"
            if refused is None
            else (
                f"without the first {gone} heads {refused.metric} is {refused.after:.4f} instead of {refused.before:.4f}"
            )
        )
        raise ConfigError(
            f"no head can be removed: {why}. Nothing was written; give a smaller --step or a higher --tolerance"
        )
    return [sorted(heads) for heads in passed[0]], passed[1]
