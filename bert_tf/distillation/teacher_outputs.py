"""The outputs of a teacher for the training examples, computed once and kept beside the run.

    teacher/manifest.json        what they are of, and the checksum of each shard
    teacher/00000.safetensors    the outputs of `SHARD` sequences

A shard is complete or absent: a run that was killed resumes with the first that is missing. Outputs of another teacher
or other data are computed again.
"""

import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save

from bert_tf.errors import DataError
from bert_tf.files import atomic_write, explain_disk_errors, is_there, sha256, write_json
from bert_tf.parsing import read_json_object
from bert_tf.progress import Progress
from bert_tf.tasks.batching import bucket_bounds, plan_batches
from bert_tf.tasks.inference import infer

FOLDER, MANIFEST = "teacher", "manifest.json"
#: Sequences of a shard, and of a batch of the teacher.
SHARD, BATCH = 4096, 32
#: The logit of a class that is not among the k largest: its probability is 0 at every temperature that is used.
MISSING_LOGIT = -1e4


class TeacherOutputs:
    """The outputs of a teacher for sequences, read from the run directory where it has them.

    Args:
        model: the teacher, a `TaskModel`.
        key: what the outputs depend on, a dict for JSON.
        dtype: "float16" or "float32".
        folder: the run directory.
        top_k: how many of the largest logits are kept of each prediction; None for all.

    Raises:
        DataError: an output is too large for float16.
    """

    def __init__(self, model, key, dtype, folder, top_k=None):
        self.dtype, self.top_k = np.dtype(dtype), top_k
        self.key = json.loads(json.dumps(key | {"dtype": dtype} | ({} if top_k is None else {"top_k": top_k})))
        self.folder = Path(folder) / FOLDER
        self._compute_outputs = model.compiled_call(model.outputs)

    def of(self, task, sequences):
        """float array [R, C], of the dtype, `MISSING_LOGIT` where a logit is not among the `top_k`; for tagging a `tf.RaggedTensor` [R, None, C], a row for each token.

        Args:
            task: the student's, by whose tokenizer and lengths the sequences are packed.
            sequences: `Sequences`, R of them.
        """
        count, checksums = len(sequences.lengths), self._read_checksums()
        progress, parts = None, []
        for number, start in enumerate(range(0, count, SHARD)):
            name, chosen = f"{number:05}.safetensors", np.arange(start, min(start + SHARD, count))
            part = self._read(name, checksums)
            if part is None:
                progress = progress or Progress("the teacher answers,", count, "sequences", done=start)
                part = self._compute(task, sequences, chosen)
                self._write(name, part, checksums)
                progress.update(int(chosen[-1]) + 1)
            parts.append(part)
        if progress:
            progress.finish()
        values = np.concatenate([_dense(part) for part in parts])
        if "lengths" not in parts[0]:
            return values
        return tf.RaggedTensor.from_row_lengths(values, np.concatenate([part["lengths"] for part in parts]))

    def _compute(self, task, sequences, chosen):
        bounds = bucket_bounds(task.config.sequence_length)
        plan = plan_batches(sequences.lengths[chosen], bounds, BATCH, task.config.tokens_per_batch)
        plan = [(chosen[indexes], bound) for indexes, bound in plan]
        outputs = infer(task, sequences, plan, self._compute_outputs)
        rows = [outputs[index] for index in chosen]
        rows = [row if row.ndim == 1 else row[: sequences.lengths[index]] for index, row in zip(chosen, rows)]
        values = np.stack(rows) if rows[0].ndim == 1 else np.concatenate(rows)
        with np.errstate(over="ignore"):
            part = {"values": values.astype(self.dtype)}
        if not np.isfinite(part["values"]).all():
            raise DataError("an output of the teacher is not finite as float16; set teacher.cache=float32")
        if self.top_k is not None and self.top_k < values.shape[-1]:
            part = _largest(part["values"], self.top_k)
        return part | ({} if rows[0].ndim == 1 else {"lengths": np.array([len(row) for row in rows], np.int64)})

    def _read_checksums(self):
        """The checksums of the shards that are there: name -> sha256."""
        if not is_there(path := self.folder / MANIFEST):
            return {}
        try:
            manifest = read_json_object(path)
        except DataError:
            return {}
        shards = manifest.get("shards")
        return dict(shards) if manifest.get("key") == self.key and isinstance(shards, dict) else {}

    def _read(self, name, checksums):
        path = self.folder / name
        if name not in checksums or not is_there(path) or sha256(path) != checksums[name]:
            return None
        return load_file(path)

    def _write(self, name, part, checksums):
        with explain_disk_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
            with atomic_write(self.folder / name, "wb") as file:
                file.write(save(part))
            checksums[name] = sha256(self.folder / name)
            write_json(self.folder / MANIFEST, {"key": self.key, "shards": checksums})


def _largest(values, k):
    """The k largest of each row [M, C] and their classes [M, k], as they are written."""
    classes = np.argpartition(-values, k - 1, axis=-1)[:, :k].astype(np.int32)
    count = np.array([values.shape[-1]], np.int32)
    return {"values": np.take_along_axis(values, classes, axis=-1), "classes": classes, "count": count}


def _dense(part):
    """What `_largest` was given, with `MISSING_LOGIT` for what was left out."""
    if "classes" not in part:
        return part["values"]
    values = np.full((len(part["values"]), int(part["count"][0])), MISSING_LOGIT, part["values"].dtype)
    np.put_along_axis(values, part["classes"], part["values"], axis=-1)
    return values
