"""Hugging Face directories: config.json, model.safetensors (or its shards), tokenizer files."""

import collections.abc
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 -- lets NumPy name bfloat16, in which some checkpoints are stored
import numpy as np
from absl import logging
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bert_tf.checkpoints.finetuned import PublishedTask, write_task
from bert_tf.checkpoints.sizes import MAX_ARRAYS
from bert_tf.config import nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import explain_reading
from bert_tf.models.families import FAMILIES, maps_of
from bert_tf.models.family import Family
from bert_tf.parsing import bare_name, brief, read_json_object
from bert_tf.tokenizers.files.tokenizer_config import CONFIG as TOKENIZER_CONFIG
from bert_tf.tokenizers.files.tokenizer_config import WHOLE
from bert_tf.tokenizers.files.writing import model_inputs
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Arrays, Shapes, StrPath

#: The folders of ELECTRA's two models, where they are kept together as two directories.
PAIR = ("discriminator", "generator")
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

#: Heads of tasks, which have these names in every family: reported, and not loaded.
TASK_HEADS = ("classifier.*", "qa_outputs.*", "pre_classifier.*", "logits_proj.*", "sequence_summary.*", "score.*",
              "start_logits.*", "end_logits.*", "answer_class.*")  # fmt: skip

# Types of tensors that can be read, as safetensors calls them. Integers and booleans are not weights, but some
# checkpoints hold position ids.
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")

_CONVERSION = (
    'python -c "import torch; from safetensors.torch import save_file; '
    "w = torch.load('pytorch_model.bin', map_location='cpu', weights_only=True); "
    "save_file({k: v.clone().contiguous() for k, v in w.items()}, 'model.safetensors')\""
)


def recognize(path: StrPath) -> dict[str, Any] | None:
    """The configuration, a dict, where `path` is a Hugging Face directory, or None."""
    file = Path(path) / CONFIG
    if not file.is_file():
        return None
    return read_json_object(file)


def recognize_family(config: Mapping[str, Any], where: StrPath, family: str | None = None) -> Family:
    """The `Family` that a config.json (a dict, from the file `where`) describes, or that the caller names.

    Raises:
        ConfigError: an unknown `model_type`, or another than the caller's family has.
    """
    configs = {name: maps.config for name, maps in maps_of("hf").items()}
    types = {name: (config_map.model_type, *config_map.other_model_types) for name, config_map in configs.items()}
    if family is not None and family not in types:
        raise ConfigError(f"there is no family '{family}'{nearest(family, types)}")
    model_type = config.get("model_type")
    if family is not None:
        if model_type not in (None, *types[family]):
            needed = " or ".join(f"'{name}'" for name in types[family])
            raise ConfigError(f"{where} has model_type {brief(model_type)}; family '{family}' needs {needed}")
        return FAMILIES[family]
    names = [name for name in types if model_type in types[name]]
    if model_type is None:
        raise ConfigError(f"{where} has no 'model_type'; say which family it is, e.g. family='bert'")
    if not names:
        known = {name for names in types.values() for name in names}
        raise ConfigError(f"{where} has model_type {brief(model_type)}{nearest(str(model_type)[:100], known)}")
    return FAMILIES[next((name for name in names if _has_class(name, config)), names[0])]


def _has_class(family, config):
    """Whether the class that a config.json names is one of a family's."""
    maps, found = FAMILIES[family].maps("hf"), config.get("architectures")
    known = {*maps.config.architectures.values(), *maps.config.other_architectures}
    known |= {head.architecture for head in maps.heads.values()}
    return isinstance(found, list) and any(isinstance(name, str) and name in known for name in found)


class SafetensorsArrays(collections.abc.Mapping[str, np.ndarray]):
    """The tensors of a directory by name, read one by one; 16-bit floats become float32.

    A prefix of every name that a PyTorch wrapper added ("module." of DataParallel, "_orig_mod." of torch.compile) is
    removed where no name is known with it, and one is known without it.

    Args:
        folder: holds model.safetensors, or model.safetensors.index.json and its shards.
        is_known: function from a name to whether the family has it.

    Raises:
        DataError: a file is missing or damaged, or a shard lacks a tensor that the index says it has.
    """

    def __init__(self, folder: StrPath, is_known: Callable[[str], bool]) -> None:
        folder = Path(folder)
        self._files = {}
        if (folder / WEIGHTS).is_file():
            self._files = dict.fromkeys(_names(folder / WEIGHTS), folder / WEIGHTS)
        elif (folder / INDEX).is_file():
            index = _read_index(folder / INDEX)
            held = {file: _names(folder / file) for file in sorted(set(index.values()))}
            for name, file in index.items():
                if name not in held[file]:
                    raise DataError(f"{folder / INDEX} says that {file} holds '{name}', which it does not")
                self._files[name] = folder / file
            stray = [name for names in held.values() for name in names if name not in index]
            if stray:
                raise DataError(f"'{stray[0]}' is in a shard, but not in {folder / INDEX} ({len(stray)} such)")
        else:
            others = [f for f in ("pytorch_model.bin", "pytorch_model.bin.index.json") if (folder / f).exists()]
            if others:
                raise DataError(
                    f"{folder / others[0]} is a pickle, which can run code when it is opened; convert it where "
                    f"PyTorch is installed, in that folder: {_CONVERSION}"
                )
            raise DataError(f"{folder} has a {CONFIG}, but neither {WEIGHTS} nor {INDEX}")
        if not self._files:
            raise DataError(f"{folder} holds no tensors")
        if len(self._files) > MAX_ARRAYS:
            raise DataError(f"{folder} holds {len(self._files):,} tensors; at most {MAX_ARRAYS:,} can be opened")
        self._wrapper = _wrapper_of(list(self._files), is_known)
        self._files = {name.removeprefix(self._wrapper): file for name, file in self._files.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        given = self._wrapper + name
        with _open(self._files[name]) as file:
            stored = file.get_slice(given).get_dtype()
            if stored not in _DTYPES:
                raise DataError(
                    f"'{name}' in {self._files[name]} has the type {stored}, which is not supported; "
                    f"supported: {', '.join(_DTYPES)}"
                )
            value = file.get_tensor(given)
        if stored == "F64":
            with np.errstate(over="ignore"):  # what is too large becomes infinite, which loading refuses
                return value.astype("float32")
        return value.astype("float32") if stored in ("F16", "BF16") else value

    @property
    def shapes(self) -> Shapes:
        """dict from name to shape, a list; read from the headers alone."""
        result: dict[str, Sequence[int]] = {}
        for path in sorted(set(self._files.values())):
            with _open(path) as file:
                slices = {name.removeprefix(self._wrapper): file.get_slice(name) for name in file.keys()}
                result |= {name: part.get_shape() for name, part in slices.items()}
        return result

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def write(
    folder: StrPath,
    family: Family,
    config: Any,
    weights: Arrays,
    parts: Iterable[str],
    tokenizer: Tokenizer | None,
    task: PublishedTask | None = None,
) -> dict[str, Any]:
    """Writes config.json, model.safetensors and the tokenizer's files into an existing folder, and returns config.json.

    Args:
        family: the `Family`.
        config: its configuration.
        weights: dict of `export_weights`.
        parts: the parts of the model, which say which class it is.
        tokenizer: is saved in the same folder, or None.
        task: the `PublishedTask` of a fine-tuned model; None for a model without a task.
    """
    maps = family.maps("hf")
    architecture = task.published.architecture if task else maps.config.architecture(parts)
    maps.config.check_activation(getattr(config, "activation", None), parts)
    hf_config = {"architectures": [architecture], "model_type": maps.config.model_type}
    hf_config |= maps.config.write(config)
    hf_config |= write_task(task, hf_config) if task else {}
    if tokenizer is not None:
        known = hf_config.get("pad_token_id")
        if known not in (None, tokenizer.pad_id):
            raise ConfigError(
                f"the padding id of the model is {known}, that of the tokenizer {tokenizer.pad_id}; give the tokenizer of "
                "its training"
            )
        hf_config |= {key: getattr(tokenizer, name) for key, name in maps.config.token_ids.items()}
    hf_config["dtype"] = "float32"
    prefix = maps.weights.prefix
    if architecture == maps.config.architecture(()):  # the bare encoder's names have no prefix
        weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    (Path(folder) / CONFIG).write_text(json.dumps(hf_config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    arrays = {name: np.ascontiguousarray(value) for name, value in weights.items()}
    save_file(arrays, Path(folder) / WEIGHTS, metadata={"format": "pt"})
    if tokenizer is not None:
        _write_tokenizer(tokenizer, Path(folder), config)
    return hf_config


def _write_tokenizer(tokenizer, folder, config):
    """Saves the tokenizer, with the length at which transformers truncates and the inputs that it gives this model."""
    tokenizer.save(folder)
    if not (folder / WHOLE).exists():
        raise ConfigError(
            f"transformers has no tokenizer that computes what this {type(tokenizer).__name__} computes; write the model "
            "without it (tokenizer=None)"
        )
    if tokenizer.lost_in_tokenizer_json:
        logging.warning("the tokenizer of %s: %s", folder.name, tokenizer.lost_in_tokenizer_json)
    content = read_json_object(folder / TOKENIZER_CONFIG)
    segments = config.reads_segments and "token_type_ids" in content["model_input_names"]
    content["model_input_names"], content["padding_side"] = model_inputs(segments), config.padding_side
    if "max_positions" in {field.name for field in dataclasses.fields(config)}:  # XLNet has none
        content["model_max_length"] = config.max_positions
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    (folder / TOKENIZER_CONFIG).write_text(text, encoding="utf-8")


def _wrapper_of(names, is_known):
    """The prefix of every name with which no name is known, such as "module."; "" without such a prefix."""
    wrapper = ""
    while not any(is_known(name.removeprefix(wrapper)) for name in names):
        words = {name.removeprefix(wrapper).partition(".")[:2] for name in names}
        if len(words) > 1 or ("", "") in words or not all(dot for _, dot in words):
            return ""
        wrapper += "".join(words.pop())
    return wrapper


def _read_index(path):
    """The `weight_map` of an index: dict from the name of a tensor to that of a file in the same folder."""
    index = read_json_object(path).get("weight_map")
    if not isinstance(index, dict):
        raise DataError(f"{path}: weight_map must map the names of tensors to files, but is {brief(index)}")
    for name, file in index.items():
        bare_name(file, f"{path}: the file of {brief(name)}")
    return index


def _names(path):
    with _open(path) as file:
        return set(file.keys())


def _open(path):
    try:
        with explain_reading(path):
            return safe_open(path, framework="numpy")
    except (SafetensorError, UnicodeEncodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
