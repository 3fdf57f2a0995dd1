"""Presets of KerasHub: config.json, task.json, tokenizer.json and their weights in HDF5, without keras_hub.

Its code fixes what a preset does not say (`assumed` in the families' maps: the tanh GELU of its BERT, the epsilon of its
masked LM head, ...). A model that is read computes what KerasHub computes.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bert_tf.checkpoints import published_tasks
from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.hdf5 import Hdf5Arrays
from bert_tf.checkpoints.published_tasks import published_head
from bert_tf.checkpoints.sizes import check_sizes
from bert_tf.checkpoints.source import Source, StoredTask
from bert_tf.config import build, nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.families import FAMILIES, maps_of
from bert_tf.parsing import bare_name, brief, read_json_object
from bert_tf.tokenizers.bpe.byte_level_bpe import ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.files.vocabularies import read_merges, read_vocabulary, tokens_by_id
from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer
from bert_tf.tokenizers.special_tokens import GPT2_ROLES
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.tokenizers.wordpiece.wordpiece import WordPieceTokenizer
from bert_tf.types import Shapes

CONFIG, TASK, TOKENIZER, METADATA = "config.json", "task.json", "tokenizer.json", "metadata.json"
WEIGHTS, SHARDS, TASK_WEIGHTS = "model.weights.h5", "model.weights.json", "task.weights.h5"
ASSETS = Path("assets") / "tokenizer"
#: What the files of all classes say and no output depends on.
_BOOKKEEPING = ("name", "dtype", "trainable", "backbone", "preprocessor", "hidden_dim")
#: Kernels and biases of attention, [H, n, d] and [n, d] there and [H, n * d] and [n * d] here.
_INTO_HEADS = re.compile(r"_self_attention_layer/_?(query|key|value)_dense/vars/[01]")
#: Those of its output, [n, d, H] there.
_OUT_OF_HEADS = re.compile(r"_self_attention_layer/_?output_dense/vars/0")


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of a preset: a backbone, or a task with its head.

    Raises:
        DataError: weights that are missing, damaged, or too few for the configuration.
        ConfigError: a class that no family here has, or a setting that is not understood.
    """
    file = path / CONFIG
    name, keys = _serialized(read_json_object(file), file)
    published = maps_of("keras_hub")
    classes = {
        known: own for own, m in published.items() for known in (m.config.model_type, *m.config.other_model_types)
    }
    if name not in classes:
        raise ConfigError(f"{file} is of KerasHub's class {brief(name)}{nearest(str(name)[:100], classes)}")
    record, maps = FAMILIES[classes[name]], published[classes[name]]
    tokenizer = functools.partial(read_tokenizer, record.name)
    settings = maps.config.read(keys, file)
    if record.name == "roberta" and (path / TOKENIZER).is_file() and name == maps.config.model_type:
        settings["padding_id"] = tokenizer(path).pad_id
    config: Any = build(record.config, settings, str(file))
    stored = {"layers": _backbone_weights(path)}
    if (path / TASK_WEIGHTS).is_file():
        stored["task"] = [Hdf5Arrays(path / TASK_WEIGHTS)]
    arrays = PresetArrays(stored, config, maps.renames(config) if maps.renames else {})
    check_sizes(config, arrays.shapes, path)
    source = Source(
        path, "keras_hub", record.name, config, arrays, maps.weights, other_heads=("task/*",), read_tokenizer=tokenizer
    )
    described = _task(path)
    found = published_head(described, maps.heads)
    if found is None:
        return dataclasses.replace(source, objective=_objective(maps.config, config, source.parts))
    make = functools.partial(published_tasks.task_of, source, described, *found)
    return dataclasses.replace(source, task=StoredTask(make, found[1].weights(maps.weights)))


def _serialized(content, file):
    """(name of the class, settings) of an object that Keras serialized."""
    name, keys = content.get("class_name"), content.get("config")
    if not isinstance(name, str) or not isinstance(keys, dict):
        raise DataError(f"{file} is not of a preset of KerasHub: it lacks 'class_name' or 'config'")
    activation = keys.get("activation")
    if isinstance(activation, dict):  # a function that KerasHub registered
        keys = keys | {"activation": str(activation.get("config")).rpartition(">")[2]}
    return name, keys


def _objective(config_map, config, parts):
    """The settings of the objective with KerasHub's masked LM head where that has others than the layers; else None."""
    if "masked_lm_head" not in parts:
        return None
    activation, epsilon = config_map.head_activations["masked_lm_head"], config_map.head_epsilon
    if (activation, epsilon) == (config.activation, config.layer_norm_epsilon):
        return None
    return {"name": "masked_lm", "pair_task": "none", "head_activation": activation, "head_epsilon": epsilon}


def _task(path):
    """task.json in the words of a Hugging Face configuration, a dict; empty without a task that this library has."""
    file = path / TASK
    if not file.is_file():
        return {}
    name, keys = _serialized(read_json_object(file), file)
    known = {"activation": keys.get("activation"), "dropout": keys.get("dropout", 0.1)}
    if keys.get("num_classes") is None:
        return {"architectures": [name]}
    if known["activation"] not in (None, "linear", "softmax"):  # which this library computes from the logits
        raise ConfigError(
            f"{file}: activation is {brief(known['activation'])}; only 'linear' and 'softmax' are supported"
        )
    width = keys.get("hidden_dim")
    size = _serialized(keys.get("backbone") or {}, file)[1].get("hidden_dim")
    if width not in (None, size):
        raise ConfigError(
            f"{file}: hidden_dim is {brief(width)}; only that of the backbone, {brief(size)}, is supported"
        )
    labels = read_json_object(path / METADATA) if (path / METADATA).is_file() else {}
    labels = {key: labels[key] for key in ("id2label", "problem_type") if key in labels}
    name = name.replace("Classifier", "TextClassifier") if not name.endswith("TextClassifier") else name
    name = name.replace("XLMRoberta", "Roberta")
    return {"architectures": [name], "num_labels": keys["num_classes"], "dropout": known["dropout"]} | labels


def _backbone_weights(path):
    """The `Hdf5Arrays` of the backbone, a list: of one file, or of the shards that an index names."""
    if not (path / SHARDS).is_file() or (path / WEIGHTS).is_file():
        return [Hdf5Arrays(path / WEIGHTS)]
    index = read_json_object(path / SHARDS).get("weight_map")
    if not isinstance(index, dict):
        raise DataError(f"{path / SHARDS}: weight_map must map names to files, but is {brief(index)}")
    names = [name for names in index.values() for name in (names if isinstance(names, list) else [names])]
    files = [bare_name(name, f"{path / SHARDS}: weight_map") for name in names]
    return [Hdf5Arrays(path / file) for file in sorted(set(files))]


class PresetArrays(NamedArrays):
    """The arrays of a preset by the names of the maps, in the shapes of this library's variables.

    Keras calls the first layer of a class `dense`, the second `dense_1`; here these are `dense_0` and `dense_1`. Those of
    the task's file begin with "task/". RoBERTa's position table gets the rows up to the padding id, which no token has.

    Args:
        stored: "layers" for the backbone or "task" -> list of `Hdf5Arrays`.
        config: of the model.
        renames: see `Maps`.
    """

    def __init__(self, stored: Mapping[str, list[Hdf5Arrays]], config: Any, renames: Mapping[str, str]) -> None:
        self._first = getattr(config, "padding_id", -1) + 1
        self._places: dict[str, tuple[Hdf5Arrays, str]] = {}
        for part, files in stored.items():
            for file in files:
                for name in file:
                    if name.startswith("layers/"):
                        self._places[_canonical(name, part, renames)] = file, name

    def __getitem__(self, name: str) -> np.ndarray:
        file, stored = self._places[name]
        value = file[stored]
        if value.dtype == np.dtype("V2"):  # as h5py gives bfloat16
            value = value.view(ml_dtypes.bfloat16)
        value = value.astype("float32") if value.dtype in (np.float16, np.float64, ml_dtypes.bfloat16) else value
        if value.shape and self._rows(name):
            value = np.pad(value, [(self._first, 0)] + [(0, 0)] * (value.ndim - 1))
        return value.reshape(_flat(name, value.shape))

    @property
    def shapes(self) -> Shapes:
        """dict from name to shape, a tuple, as `__getitem__` gives it."""
        result = {}
        for name, (file, stored) in self._places.items():
            shape = _flat(name, file.shapes[stored])
            result[name] = (shape[0] + self._rows(name), *shape[1:]) if shape else shape
        return result

    def _rows(self, name):
        return self._first if name.endswith("position_embedding/vars/0") else 0


def _canonical(name, part, renames):
    words = name.split("/")[1:]
    if not re.search(r"_\d+$", words[0]):
        words[0] += "_0"
    words = [*([part] if part == "task" else []), *(renames.get(word, word) for word in words)]
    return "/".join(words)


def _flat(name, shape):
    """The shape here of an array that has `shape` there."""
    if _INTO_HEADS.search(name) and len(shape) > 1:
        return (*shape[:-2], shape[-2] * shape[-1])
    if _OUT_OF_HEADS.search(name) and len(shape) == 3:
        return (shape[0] * shape[1], shape[2])
    return tuple(shape)


def read_tokenizer(family: str, path: Path) -> Tokenizer:
    """The tokenizer of a preset of a family: of tokenizer.json and the files in `ASSETS`.

    Raises:
        DataError: there is none, or damaged files.
        ConfigError: a class or setting that is not supported.
    """
    file, assets = path / TOKENIZER, path / ASSETS
    if not file.is_file():
        raise DataError(f"no tokenizer in {path}: it has no {TOKENIZER}")
    name, keys = _serialized(read_json_object(file), file)

    def get(key, default, *supported):
        value = keys.get(key, default)
        if value not in (supported or (True, False)):
            raise ConfigError(f"{file}: {key} is {brief(value)}, which is not supported")
        return value

    if name.startswith("XLM"):
        raise ConfigError(f"{file}: the tokenizer of XLM-RoBERTa is not supported; give bert_tf.save tokenizer=None")
    if (assets / "vocabulary.spm").is_file():
        own = (
            {"extra_ids": 0}
            if family == "t5"
            else {"lowercase": False, "keep_accents": True, "split_digit_commas": False}
        )
        return SentencePieceTokenizer((assets / "vocabulary.spm").read_bytes(), family, **own)
    if (assets / "vocabulary.json").is_file():
        vocabulary = tokens_by_id(read_json_object(assets / "vocabulary.json"), assets / "vocabulary.json")
        roles, layout = (ROBERTA_ROLES, "roberta") if family == "roberta" else (GPT2_ROLES, "none")
        merges = read_merges(assets / "merges.txt")
        return ByteLevelBPETokenizer(
            vocabulary, merges, get("add_prefix_space", False), role_tokens=roles, layout=layout
        )
    get("split", True, True), get("suffix_indicator", "##", "##"), get("split_on_cjk", True, True)
    vocabulary, unknown = read_vocabulary(assets / "vocabulary.txt"), keys.get("oov_token", "[UNK]")
    return WordPieceTokenizer(
        vocabulary, get("lowercase", False), get("strip_accents", False), role_tokens={"unk": str(unknown)}
    )
