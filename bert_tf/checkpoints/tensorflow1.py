"""Checkpoints of the original authors' TensorFlow 1 code, as google-research/bert published them.

A folder with bert_config.json (or the family's own name of it), vocab.txt, and a checkpoint:
`<prefix>.index` and `<prefix>.data-00000-of-00001`.
"""

import collections.abc
import glob
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.sizes import MAX_ARRAYS, check_stated_sizes
from bert_tf.config import build
from bert_tf.errors import DataError
from bert_tf.files import explain_reading
from bert_tf.models.families import maps_of
from bert_tf.models.family import Family
from bert_tf.parsing import read_json_object
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Arrays, Shapes, StrPath

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def recognize(path: StrPath) -> tuple[str | None, Path, Path] | None:
    """(family, folder, prefix) where `path` is such a checkpoint, its prefix or its folder, or None.

    The family is a name; None where neither a configuration nor an array names it.

    Raises:
        DataError: a folder with several checkpoints.
    """
    path = Path(path)
    if path.is_dir():
        folder, prefix = path, _only_prefix(path)
        if prefix is None:
            return None
    else:
        prefix = path.with_suffix("") if path.suffix in (".index", ".meta") else path
        if not prefix.with_name(prefix.name + ".index").is_file():
            return None
        folder = prefix.parent
    published = maps_of("tf1")
    for name, maps in published.items():
        if maps.config is not None and (folder / maps.config.file).is_file():
            return name, folder, prefix
    arrays = TensorFlowArrays(prefix)
    found = [name for name, maps in published.items() if maps.marker is not None and maps.marker in arrays]
    return found[0] if found else None, folder, prefix


class TensorFlowArrays(collections.abc.Mapping[str, np.ndarray]):
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
        self._names = sorted(self.shapes)
        if len(self._names) > MAX_ARRAYS:
            raise DataError(f"{prefix} holds {len(self._names):,} arrays; at most {MAX_ARRAYS:,} can be opened")
        self._check_bytes()

    def _check_bytes(self):
        """Refuses shapes that claim more than the files hold, before memory of such a size is allocated."""
        types = self._reader.get_variable_to_dtype_map()
        files = self._prefix.parent.glob(f"{glob.escape(self._prefix.name)}.data-*")
        left = sum(file.stat().st_size for file in files if file.is_file())
        for name, shape in self.shapes.items():
            left -= math.prod(shape) * types[name].size
            if left < 0:
                raise DataError(f"the checkpoint {self._prefix} is cut off: '{name}' claims the shape {shape}")

    @property
    def is_object_graph(self) -> bool:
        """Whether it was written by TensorFlow 2's `tf.train.Checkpoint`."""
        return _OBJECT_GRAPH in self._names

    @property
    def shapes(self) -> Shapes:
        """dict from name to shape, a list."""
        return self._reader.get_variable_to_shape_map()

    def __contains__(self, name: object) -> bool:
        return self._reader.has_tensor(name)

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            value = self._reader.get_tensor(name)
        except (tf.errors.OpError, IndexError) as error:
            raise DataError(f"cannot read '{name}' in the checkpoint {self._prefix}: {error}") from None
        return value.astype("float32") if getattr(value, "dtype", None) == "bfloat16" else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_configs(family: Family, folder: Path, arrays: Any) -> tuple[Any, Any]:
    """The configurations of the encoder and of the generator beside it; None for no generator.

    Args:
        family: the `Family`.
        folder: where its configuration file lies.
        arrays: of the checkpoint. Without a configuration file, their shapes state the configuration.
    """
    maps = family.maps("tf1")
    if maps.config is None:
        config = maps.config_of_shapes(arrays.shapes, "model")
        if config is None:
            raise DataError(f"{folder} holds no model of family {family.name}: its embeddings or layers are missing")
        return config, maps.config_of_shapes(arrays.shapes, "generator")
    file = folder / maps.config.file
    return build(family.config, maps.config.read(read_json_object(file), file), str(file)), None


def write(
    folder: StrPath, family: Family, config: Any, weights: Arrays, tokenizer: Tokenizer | None, generator: Any = None
) -> None:
    """Writes the configuration, the checkpoint and the tokenizer's files into an existing folder.

    The checkpoint's prefix is `<family>_model.ckpt`. `family` is the `Family`; `generator` is the configuration
    of ELECTRA's generator, where the weights hold one.

    Raises:
        ConfigError: a setting that the original code does not have.
    """
    maps = family.maps("tf1")
    if maps.config is None:
        shapes = {name: value.shape for name, value in weights.items()}
        check_stated_sizes(maps, config, shapes)
        if generator is not None:
            check_stated_sizes(maps, generator, shapes, "generator")
    else:
        text = json.dumps(maps.config.write(config), indent=2) + "\n"
        (Path(folder) / maps.config.file).write_text(text, encoding="utf-8")
    prefix = f"{family.name}_model.ckpt"
    names = sorted(weights)
    # The op that TensorFlow 1's Saver runs; it needs no graph and no session.
    tf.raw_ops.SaveV2(
        prefix=str(Path(folder) / prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[np.ascontiguousarray(weights[name]) for name in names],
    )
    state = f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'
    (Path(folder) / "checkpoint").write_text(state, encoding="utf-8")
    if tokenizer is not None:
        tokenizer.save(folder)


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
        found = re.search(rb'^model_checkpoint_path: "([^"/\\]+)"', content.read(1 << 20), re.MULTILINE)
    return folder / found[1].decode("utf-8", "replace") if found else None
