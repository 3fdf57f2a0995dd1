"""Checkpoints of the original authors' TensorFlow 1 code, as google-research/bert published them.

A folder with bert_config.json (or the family's own name of it), vocab.txt, and a checkpoint:
`<prefix>.index` and `<prefix>.data-00000-of-00001`.
"""

import glob
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.saving import write_model
from bert_tf.checkpoints.sizes import MAX_ARRAYS, check_sizes, check_stated_sizes
from bert_tf.checkpoints.source import Source
from bert_tf.config import build, nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import explain_reading
from bert_tf.models.families import FAMILIES, maps_of
from bert_tf.models.family import Family
from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def prefix_of(path: Path) -> Path:
    """The prefix of a checkpoint, from its folder, its prefix or its .index file.

    Raises:
        DataError: a folder with several checkpoints, none of which is the latest.
    """
    if path.is_dir():
        return _only_prefix(path)
    return path.with_suffix("") if path.suffix in (".index", ".meta") else path


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of a checkpoint in the format of the family's authors.

    Raises:
        DataError: files that are missing, damaged or ambiguous, or that no family here has.
        ConfigError: a setting that is not understood.
    """
    prefix = prefix_of(path)
    arrays, folder = TensorFlowArrays(prefix), prefix.parent
    record = family_of_files(family, folder, arrays)
    maps = record.maps("tf1")
    if maps.config is None:
        config, generator = (maps.config_of_shapes(arrays.shapes, scope) for scope in ("model", "generator"))
        if config is None:
            raise DataError(f"{folder} holds no model of family {record.name}: its embeddings or layers are missing")
    else:
        config, generator = read_config(record, maps, folder), None
    for each in (config, generator):
        if each is not None:
            check_sizes(each, arrays.shapes, path)
    return Source(folder, "tf1", record.name, config, arrays, maps.weights, generator)


def read_config(family: Family, maps: Any, folder: Path) -> Any:
    """The configuration in the file of a family's authors."""
    file = folder / maps.config.file
    return build(family.config, maps.config.read(read_json_object(file), file), str(file))


def family_of_files(family: str | None, folder: Path, arrays: NamedArrays) -> Family:
    """The `Family` that the caller, the name of a configuration's file or an array names."""
    published = maps_of("tf1")
    by_file = (name for name, maps in published.items() if maps.config and (folder / maps.config.file).is_file())
    by_array = (name for name, maps in published.items() if maps.marker is not None and maps.marker in arrays)
    name = family or next(by_file, None) or next(by_array, "")
    if family is not None and family not in published:
        raise ConfigError(f"no family '{family}' is published as TensorFlow 1 checkpoints{nearest(family, published)}")
    if name not in published:
        files = ", ".join(maps.config.file for maps in published.values() if maps.config)
        raise DataError(f"{folder} has a TensorFlow checkpoint, but none of its configurations: {files}")
    return FAMILIES[name]


class TensorFlowArrays(NamedArrays):
    """The variables of a TensorFlow checkpoint by name, read one by one.

    Args:
        prefix: path of the checkpoint without `.index`.

    Raises:
        DataError: the files are missing or damaged, or hold more than they have bytes for.
    """

    def __init__(self, prefix: StrPath) -> None:
        with explain_reading(f"{prefix}.index"), open(f"{prefix}.index", "rb"):
            pass  # TensorFlow has one error for unreadable and for damaged files
        try:
            self._reader = tf.train.load_checkpoint(str(prefix))
        except (tf.errors.OpError, ValueError) as error:
            raise DataError(f"cannot read the checkpoint {prefix}: {error}") from None
        self._prefix = Path(prefix)
        self.shapes = dict(sorted(self._reader.get_variable_to_shape_map().items()))
        if len(self) > MAX_ARRAYS:
            raise DataError(f"{prefix} holds {len(self):,} arrays; at most {MAX_ARRAYS:,} can be opened")
        self._check_bytes()

    def _check_bytes(self):
        """Refuses shapes that claim more than the files hold, before memory of such a size is allocated."""
        types = self._reader.get_variable_to_dtype_map()
        files = self._prefix.parent.glob(f"{glob.escape(self._prefix.name)}.data-*")
        bytes_left = sum(file.stat().st_size for file in files if file.is_file())
        for name, shape in self.shapes.items():
            bytes_left -= math.prod(shape) * types[name].size
            if bytes_left < 0:
                raise DataError(f"the checkpoint {self._prefix} is cut off: '{name}' claims the shape {shape}")

    @property
    def is_object_graph(self) -> bool:
        """Whether it was written by TensorFlow 2's `tf.train.Checkpoint`."""
        return _OBJECT_GRAPH in self

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            value = self._reader.get_tensor(name)
        except (tf.errors.OpError, IndexError) as error:
            raise DataError(f"cannot read '{name}' in the checkpoint {self._prefix}: {error}") from None
        return value.astype("float32") if getattr(value, "dtype", None) == "bfloat16" else value


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath) -> None:
    """Writes the configuration, the checkpoint `<family>_model.ckpt` and the tokenizer's files; see `bert_tf.save`.

    Raises:
        ConfigError: a setting that the original code does not have.
    """

    def write_one(folder, family, config, weights, parts, generator):
        maps = family.maps("tf1")
        if maps.config is None:
            shapes = {name: value.shape for name, value in weights.items()}
            check_stated_sizes(maps, config, shapes)
            if generator is not None:
                check_stated_sizes(maps, generator, shapes, "generator")
        else:
            text = json.dumps(maps.config.write(config), indent=2) + "\n"
            (folder / maps.config.file).write_text(text, encoding="utf-8")
        prefix, names = f"{family.name}_model.ckpt", sorted(weights)
        # The op that TensorFlow 1's Saver runs; it needs no graph and no session.
        tf.raw_ops.SaveV2(
            prefix=str(folder / prefix),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[np.ascontiguousarray(weights[name]) for name in names],
        )
        state = f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'
        (folder / "checkpoint").write_text(state, encoding="utf-8")
        if tokenizer is not None:
            tokenizer.save(folder)

    write_model(model, path, "tf1", write_one)


def _only_prefix(folder):
    prefixes = sorted(file.with_suffix("") for file in folder.glob("*.index"))
    if len(prefixes) > 1:
        latest = _latest(folder)
        if latest not in prefixes:
            raise DataError(
                f"{folder} holds several checkpoints ({', '.join(p.name for p in prefixes)}); name one of them"
            )
        return latest
    return prefixes[0] if prefixes else None


def _latest(folder):
    """The prefix that the file `checkpoint` names, which counts only in this folder; None without one.

    TensorFlow's own reader follows any name, also to other machines.
    """
    file = folder / "checkpoint"
    if not file.is_file():
        return None
    with open(file, "rb") as content:
        match = re.search(rb'^model_checkpoint_path: "([^"/\\]+)"', content.read(1 << 20), re.MULTILINE)
    return folder / match[1].decode("utf-8", "replace") if match else None
