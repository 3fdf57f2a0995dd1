"""Hugging Face directories: config.json, model.safetensors (or its shards), tokenizer files."""

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 -- lets NumPy name bfloat16, in which some checkpoints are stored
import numpy as np
from absl import logging
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.checkpoints.formats import PAIR
from bert_tf.checkpoints.published_tasks import PublishedTask, published_head, task_of, write_task
from bert_tf.checkpoints.saving import as_float32, lost_settings, warn_of_lost, write_model
from bert_tf.checkpoints.sizes import MAX_ARRAYS, check_sizes
from bert_tf.checkpoints.source import Source, StoredTask
from bert_tf.config import build, nearest
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_folder, explain_reading
from bert_tf.models.electra.checkpoints import HF_PAIR_WEIGHTS
from bert_tf.models.families import FAMILIES, family_of, maps_of
from bert_tf.models.family import Family
from bert_tf.models.weights import export_weights
from bert_tf.parsing import bare_name, brief, read_json_object
from bert_tf.tokenizers import load_tokenizer
from bert_tf.tokenizers.files.tokenizer_config import CONFIG as TOKENIZER_CONFIG
from bert_tf.tokenizers.files.tokenizer_config import WHOLE
from bert_tf.tokenizers.files.writing import model_inputs
from bert_tf.tokenizers.layout import with_padding_token
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Arrays, Shapes, StrPath

#: The path of the token table in a model.
TOKEN_TABLE = "embeddings/token_embeddings"
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

#: Heads of tasks, which have these names in every family: reported, and not loaded.
TASK_HEADS = ("classifier.*", "qa_outputs.*", "pre_classifier.*", "logits_proj.*", "sequence_summary.*", "score.*",
              "start_logits.*", "end_logits.*", "answer_class.*")  # fmt: skip

#: Numbers that are read at a time.
BLOCK = 1 << 22

# Types of tensors that can be read, as safetensors calls them. Integers and booleans are not weights, but some
# checkpoints hold position ids.
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")

_CONVERSION = (
    'python -c "import torch; from safetensors.torch import save_file; '
    "w = torch.load('pytorch_model.bin', map_location='cpu', weights_only=True); "
    "save_file({k: v.clone().contiguous() for k, v in w.items()}, 'model.safetensors')\""
)


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of a directory with config.json, or of ELECTRA's two such directories side by side.

    Raises:
        DataError: weights that are missing, damaged, or too few for the configuration.
        ConfigError: an unknown family, or a setting that is not understood.
    """
    if not (path / CONFIG).is_file():
        return _pair(*(open_model(path / name, family) for name in PAIR))
    file = path / CONFIG
    hf_config = read_json_object(file)
    record = recognize_family(hf_config, file, family)
    maps = record.maps("hf")
    arrays = SafetensorsArrays(path, maps.weights.knows)
    settings = maps.config.read(hf_config, file)
    settings |= maps.config_of_arrays(arrays) if maps.config_of_arrays else {}
    config: Any = build(record.config, settings, str(file))
    check_sizes(config, arrays.shapes, path)
    source = Source(
        path,
        "hf",
        record.name,
        config,
        arrays,
        maps.weights,
        other_heads=TASK_HEADS,
        read_tokenizer=functools.partial(_read_tokenizer, hf_config.get("pad_token_id")),
    )
    task_and_head = published_head(hf_config, maps.heads)
    if task_and_head is None:
        return source
    make = functools.partial(task_of, source, hf_config, *task_and_head)
    return dataclasses.replace(source, task=StoredTask(make, task_and_head[1].weights(maps.weights)))


def _pair(discriminator, generator):
    """ELECTRA's two models as one source, whose arrays are called "discriminator/..." and "generator/..."."""
    places = {
        f"{PAIR[0]}/{discriminator.weight_map.canonical(name)}": (discriminator, name) for name in discriminator.arrays
    }
    paths = {place[0]: name for name in discriminator.arrays if (place := discriminator.place(name))}
    for name in generator.arrays:
        path = (generator.place(name) or ("",))[0]
        if not path.startswith("embeddings/"):
            places[f"{PAIR[1]}/{generator.weight_map.canonical(name)}"] = generator, name
        elif path not in paths or not np.array_equal(generator.arrays[name], discriminator.arrays[paths[path]]):
            raise DataError(
                f"{generator.path}: '{name}' is another than in {discriminator.path}; these two were not trained together"
            )
    return dataclasses.replace(
        discriminator,
        path=discriminator.path.parent,
        arrays=_PairArrays(places),
        weight_map=HF_PAIR_WEIGHTS,
        generator=generator.config,
        read_tokenizer=lambda _: discriminator.tokenizer,
        task=None,
    )


class _PairArrays(NamedArrays):
    def __init__(self, places):
        self._places = places
        self.shapes = {name: source.arrays.shapes[stored] for name, (source, stored) in places.items()}

    def __getitem__(self, name):
        source, stored = self._places[name]
        return source.arrays[stored]


def _read_tokenizer(padding_id, folder):
    tokenizer = load_tokenizer(folder)
    if padding_id not in (None, tokenizer.pad_id):
        raise ConfigError(
            f"pad_token_id is {brief(padding_id)} in {folder / CONFIG}, but the tokenizer's padding token "
            f"'{tokenizer.id_to_token(tokenizer.pad_id)}' is {tokenizer.pad_id}"
        )
    return tokenizer


def recognize_family(config: Mapping[str, Any], where: StrPath, family: str | None = None) -> Family:
    """The `Family` that a config.json (a dict, from the file `where`) describes, or that the caller names.

    Raises:
        ConfigError: an unknown `model_type`, or another than the caller's family has.
    """
    configs = {name: maps.config for name, maps in maps_of("hf").items()}
    types = {name: (config_map.model_type, *config_map.other_model_types) for name, config_map in configs.items()}
    if family is not None and family not in types:
        raise ConfigError(f"no family '{family}' is published as Hugging Face directories{nearest(family, types)}")
    model_type = config.get("model_type")
    if family is not None:
        if model_type not in (None, *types[family]):
            needed = " or ".join(f"'{name}'" for name in types[family])
            raise ConfigError(f"{where} has model_type {brief(model_type)}; family '{family}' needs {needed}")
        return FAMILIES[family]
    names = [name for name in types if model_type in types[name]]
    if model_type is None and "registered_name" in config:
        raise ConfigError(
            f"{where} is of a preset of KerasHub ({brief(config['registered_name'])}) without its weights; put "
            "model.weights.h5 beside it"
        )
    if model_type is None:
        raise ConfigError(f"{where} has no 'model_type'; say which family it is, e.g. family='bert'")
    if not names:
        readable = {name for names in types.values() for name in names}
        raise ConfigError(f"{where} has model_type {brief(model_type)}{nearest(str(model_type)[:100], readable)}")
    return FAMILIES[next((name for name in names if _has_class(name, config)), names[0])]


def _has_class(family, config):
    """Whether the class that a config.json names is one of a family's."""
    maps, classes = FAMILIES[family].maps("hf"), config.get("architectures")
    family_classes = {*maps.config.architectures.values(), *maps.config.other_architectures}
    family_classes |= {head.architecture for head in maps.heads.values()}
    return isinstance(classes, list) and any(isinstance(name, str) and name in family_classes for name in classes)


class SafetensorsArrays(NamedArrays):
    """The tensors of a directory by name, read one by one; other floats become float32.

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
            names_of_file = {file: _names(folder / file) for file in sorted(set(index.values()))}
            for name, file in index.items():
                if name not in names_of_file[file]:
                    raise DataError(f"{folder / INDEX} says that {file} holds '{name}', which it does not")
                self._files[name] = folder / file
            stray = [name for names in names_of_file.values() for name in names if name not in index]
            if stray:
                raise DataError(f"'{stray[0]}' is in a shard, but not in {folder / INDEX} ({len(stray)} such)")
        else:
            pickles = [f for f in ("pytorch_model.bin", "pytorch_model.bin.index.json") if (folder / f).exists()]
            if pickles:
                raise DataError(
                    f"{folder / pickles[0]} is a pickle, which can run code when it is opened; convert it where "
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
        parts = list(self.blocks(name))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        """An array in blocks of rows of at most `BLOCK` numbers."""
        stored_name = self._wrapper + name
        with _open(self._files[name]) as file:
            part = file.get_slice(stored_name)
            stored, shape = part.get_dtype(), part.get_shape()
        if stored not in _DTYPES:
            raise DataError(
                f"'{name}' in {self._files[name]} has the type {stored}, which is not supported; "
                f"supported: {', '.join(_DTYPES)}"
            )
        rows = max(1, BLOCK // max(1, math.prod(shape[1:])))
        for begin in range(0, shape[0], rows) if shape and rows < shape[0] else [None]:
            try:
                with _open(self._files[name]) as file:  # anew: what was read of an open file stays in memory
                    value = (
                        file.get_tensor(stored_name)
                        if begin is None
                        else file.get_slice(stored_name)[begin : min(begin + rows, shape[0])]
                    )
            except (SafetensorError, ValueError) as error:  # more dimensions than NumPy has
                raise DataError(f"cannot read '{name}' in {self._files[name]}: {error}") from None
            with np.errstate(over="ignore"):  # what is too large becomes infinite, which loading refuses
                yield value.astype("float32") if stored in ("F64", "F16", "BF16") else value

    @functools.cached_property
    def shapes(self) -> Shapes:
        """dict from name to shape, a list; read from the headers alone."""
        result: dict[str, Sequence[int]] = {}
        for path in sorted(set(self._files.values())):
            with _open(path) as file:
                slices = {name.removeprefix(self._wrapper): file.get_slice(name) for name in file.keys()}
                result |= {name: part.get_shape() for name, part in slices.items()}
        return result


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath) -> None:
    """Writes a model; of ELECTRA's two models two folders, as they were published. See `bert_tf.save`."""

    def write_one(folder, family, config, weights, parts, generator):
        _write(folder, family, config, weights, parts, tokenizer)

    write_model(model, path, "hf", write_one, split=True)


def write_finetuned(encoder: Any, arrays: Arrays, task: PublishedTask, tokenizer: Tokenizer, path: StrPath) -> None:
    """Writes a fine-tuned model as Hugging Face's class of its family, completely or not at all.

    Args:
        encoder: the encoder or decoder in the model.
        arrays: dict from the path of a variable to an array, of the whole model.
        task: a `PublishedTask`.
        tokenizer: is saved in the same folder.
        path: a folder that does not exist yet, or is empty.

    Raises:
        ConfigError, DataError, RunDirectoryError: as `write_model`.
    """
    family, config = family_of(encoder.config), encoder.config
    if family.structure == "decoder" and task.kind in ("classification", "multi_label", "regression"):
        # Hugging Face's classes read the last token that is not padding, by its id.
        tokenizer = with_padding_token(tokenizer)
        if tokenizer.vocabulary_size > config.vocabulary_size:
            config = dataclasses.replace(config, vocabulary_size=tokenizer.vocabulary_size)
            table = np.asarray(arrays[TOKEN_TABLE])
            arrays = {**arrays, TOKEN_TABLE: np.concatenate([table, np.zeros_like(table[:1])])}
    weights = as_float32(export_weights(arrays, task.published.weights(family.maps("hf").weights)))
    with atomic_folder(path) as temporary:
        hf_config = _write(temporary, family, config, weights, (), tokenizer, task)
    rate = task.published.rate(hf_config)
    lost = lost_settings(family.maps("hf"), config, weights)
    warn_of_lost(path, lost | ({} if rate == task.dropout else {"task.head.dropout": (task.dropout, rate)}))


def _write(
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
        padding_id = hf_config.get("pad_token_id")
        if padding_id not in (None, tokenizer.pad_id):
            raise ConfigError(
                f"the padding id of the model is {padding_id}, that of the tokenizer {tokenizer.pad_id}; give the tokenizer of "
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
