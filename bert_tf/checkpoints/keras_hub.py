"""Presets of KerasHub: config.json, task.json, tokenizer.json and their weights in HDF5, without keras_hub.

Its code fixes what a preset does not say (`assumed` in the families' maps: the tanh GELU of its BERT, the epsilon of its
masked LM head, ...). A model that is read computes what KerasHub computes.
"""

import contextlib
import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np
from absl import logging

from bert_tf.checkpoints import published_tasks
from bert_tf.checkpoints.arrays import NamedArrays, with_heads, without_heads
from bert_tf.checkpoints.hdf5 import Hdf5Arrays
from bert_tf.checkpoints.published_tasks import PublishedTask, published_head, write_task
from bert_tf.checkpoints.saving import as_float32, lost_settings, random_pooler, warn_of_lost
from bert_tf.checkpoints.sizes import check_sizes
from bert_tf.checkpoints.source import Source, StoredTask
from bert_tf.config import build, nearest
from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.files import atomic_folder, explain_reading
from bert_tf.models.families import FAMILIES, family_of, maps_of
from bert_tf.models.lora import merged_weights
from bert_tf.models.weights import export_weights, part_of
from bert_tf.parsing import bare_name, brief, read_json_object
from bert_tf.tokenizers.bpe.byte_level_bpe import ROBERTA_ROLES, ByteLevelBPETokenizer
from bert_tf.tokenizers.files.vocabularies import read_merges, read_vocabulary, tokens_by_id
from bert_tf.tokenizers.files.writing import write_bpe, write_vocabulary
from bert_tf.tokenizers.sentencepiece.families import family_tokens
from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer
from bert_tf.tokenizers.special_tokens import GPT2_ROLES, STANDARD_SPECIAL_TOKENS
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.tokenizers.wordpiece.wordpiece import WordPieceTokenizer
from bert_tf.types import Arrays, Shapes, StrPath

CONFIG, TASK, TOKENIZER, METADATA = "config.json", "task.json", "tokenizer.json", "metadata.json"
WEIGHTS, SHARDS, TASK_WEIGHTS = "model.weights.h5", "model.weights.json", "task.weights.h5"
ASSETS = Path("assets") / "tokenizer"
#: The settings of a SentencePiece tokenizer that changes nothing before the model.
_AS_IT_IS = {"lowercase": False, "keep_accents": True, "split_digit_commas": False}
#: Kernels and biases of attention, [H, n, d] and [n, d] there and [H, n * d] and [n * d] here.
_INTO_HEADS = re.compile(r"_self_attention_layer/(query|key|value)_dense/vars/[01]")
#: Those of its output, [n, d, H] there.
_OUT_OF_HEADS = re.compile(r"_self_attention_layer/output_dense/vars/0")
#: What Keras called these layers until 2025.
_OLDER = {f"_{name}_dense": f"{name}_dense" for name in ("query", "key", "value", "output")}


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
        cls: family for family, m in published.items() for cls in (m.config.model_type, *m.config.other_model_types)
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
    task_and_head = published_head(described, maps.heads)
    if task_and_head is None:
        return dataclasses.replace(source, objective=_objective(maps.config, config, source.parts))
    make = functools.partial(published_tasks.task_of, source, described, *task_and_head)
    return dataclasses.replace(source, task=StoredTask(make, task_and_head[1].weights(maps.weights)))


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
    settings = {"activation": keys.get("activation"), "dropout": keys.get("dropout", 0.1)}
    if keys.get("num_classes") is None:
        return {"architectures": [name]}
    if settings["activation"] not in (None, "linear", "softmax"):  # which this library computes from the logits
        raise ConfigError(
            f"{file}: activation is {brief(settings['activation'])}; only 'linear' and 'softmax' are supported"
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
    return {"architectures": [name], "num_labels": keys["num_classes"], "dropout": settings["dropout"]} | labels


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
        return value.reshape(without_heads(value.shape, _heads_of(name)))

    @functools.cached_property
    def shapes(self) -> Shapes:
        """dict from name to shape, a tuple, as `__getitem__` gives it."""
        result = {}
        for name, (file, stored) in self._places.items():
            shape = without_heads(file.shapes[stored], _heads_of(name))
            result[name] = (shape[0] + self._rows(name), *shape[1:]) if shape else shape
        return result

    def _rows(self, name):
        return self._first if name.endswith("position_embedding/vars/0") else 0


def _canonical(name, part, renames):
    words = name.split("/")[1:]
    if not re.search(r"_\d+$", words[0]):
        words[0] += "_0"
    renames = _OLDER | renames
    words = [*([part] if part == "task" else []), *(renames.get(word, word) for word in words)]
    return "/".join(words)


def _heads_of(name):
    """Where an array has axes of heads there: see `without_heads`."""
    return "last" if _INTO_HEADS.search(name) else "first" if _OUT_OF_HEADS.search(name) else None


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
        arguments = _AS_IT_IS if family == "albert" else {"extra_ids": 0}
        with explain_reading(assets):
            return SentencePieceTokenizer((assets / "vocabulary.spm").read_bytes(), family, **arguments)
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


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath, approximate: bool = False) -> None:
    """Writes a preset: of a pretraining model as the task that KerasHub has for it, else of the backbone. See `bert_tf.save`.

    Heads that KerasHub does not have are left out, and a pooler that only KerasHub has is random; both are logged.
    """
    _write(path, model, merged_weights(model), tokenizer, approximate)


def write_finetuned(
    model: Any, arrays: Arrays, task: PublishedTask, tokenizer: Tokenizer, path: StrPath, approximate: bool = False
) -> None:
    """Writes a fine-tuned model as KerasHub's classifier of its family; the names of the labels go to metadata.json.

    Args:
        model: of the task.
        arrays, task: of `published_tasks.publish`.
        tokenizer: is saved in the same folder.
        path, approximate: as of `bert_tf.save`.
    """
    _write(path, model, arrays, tokenizer, approximate, task)


def _write(path, model, variables, tokenizer, approximate, task=None):
    encoder = next(iter(model.backbones().values()))
    config, family, published = encoder.config, family_of(encoder.config).name, maps_of("keras_hub")
    if family not in published:
        raise ConfigError(f"KerasHub has no '{family}'{nearest(family, published)}")
    maps = published[family]
    weight_map = task.published.weights(maps.weights) if task else maps.weights
    variables = {name: np.asarray(value) for name, value in variables.items()}
    _adapt(variables, weight_map, encoder, path)
    parts = {part_of(name) for name in variables}
    architecture = task.published.architecture if task else maps.config.architecture(parts)
    fixed = _fixed_choices(maps.config, config, model if "masked_lm_head" in parts else None)
    if fixed and not approximate:
        listed = "; ".join(f"{name} is {value!r} here, {hub!r} there" for name, (value, hub) in fixed.items())
        raise ConfigError(
            f"KerasHub's {architecture} has fixed what this model has otherwise: {listed}. ",
            Advice("approximate", True),
            " writes it all the same and says how far the outputs are apart; without its heads it is written by ",
            Advice("encoder_only", True),
        )
    config = dataclasses.replace(config, **{key: hub for key, (_, hub) in fixed.items() if key[:4] != "head"})
    keys = maps.config.write(config)
    if keys.get("activation") == "gelu_approximate":
        function = {"module": "builtins", "class_name": "function", "registered_name": "function"}
        keys["activation"] = function | {"config": "keras_hub>gelu_approximate"}
    weights = as_float32(export_weights(variables, weight_map))
    lost = lost_settings(maps, config, weights)
    name = maps.config.model_type.removesuffix("Backbone")
    with atomic_folder(path) as folder:
        spoken = None if tokenizer is None else _write_tokenizer(tokenizer, folder, family, name, approximate)
        _write_weights(folder, weights, config, maps.renames(config) if maps.renames else {})
        backbone = _object(maps.config.model_type, keys)
        metadata = {"keras_hub_version": "0.32.0", "parameter_count": sum(value.size for value in weights.values())}
        _dump(folder / CONFIG, backbone)
        if architecture != maps.config.model_type:
            length = {"sequence_length": config.max_positions} if "max_sequence_length" in keys else {}
            reader = spoken and _object(f"{architecture}Preprocessor", {"tokenizer": spoken} | length)
            described: dict[str, Any] = {"backbone": backbone, "preprocessor": reader}
            if reader:
                _dump(folder / "preprocessor.json", reader)
            if task:
                outputs = variables["head/dense/kernel"].shape[-1]
                described |= {"num_classes": outputs, "activation": "linear", "dropout": task.dropout}
                metadata |= {
                    key: value for key, value in write_task(task, {}).items() if key in ("id2label", "problem_type")
                }
            _dump(folder / TASK, _object(architecture, described))
        _dump(folder / METADATA, metadata)
        apart = _difference(model, encoder, folder, task) if fixed else 0.0
    warn_of_lost(path, lost)
    for key, (value, hub) in fixed.items():
        message = (
            "%s: KerasHub's %s has %s=%r, the model %r; on random tokens the outputs differ by %.1e of the largest"
        )
        logging.warning(message, path, architecture, key, hub, value, apart)


def _adapt(variables, weight_map, encoder, path):
    """Leaves out of the variables, a dict, what KerasHub does not have, and adds what only KerasHub has."""
    segments = variables.pop("embeddings/segment_embeddings", None)
    if segments is not None and weight_map.source("embeddings/segment_embeddings"):
        variables["embeddings/segment_embeddings"] = segments
    elif segments is not None:  # RoBERTa's one row, which every token gets
        variables["embeddings/position_embeddings"] = variables["embeddings/position_embeddings"] + segments[0]
    needed = {part_of(variable.path) for variable in encoder.weights} - {"pooler"}
    unknown = [name for name in variables if part_of(name) not in needed and not weight_map.source(name)]
    for name in unknown:
        del variables[name]
    if unknown:
        parts = ", ".join(sorted({part_of(name) for name in unknown}))
        logging.warning("%s: KerasHub's %s has no %s: not written", path, encoder.name, parts)
    if weight_map.source("pooler/dense/kernel") and "pooler/dense/kernel" not in variables:
        names = ("pooler/dense/kernel", "pooler/dense/bias")
        variables |= zip(names, random_pooler(encoder.config, path, "KerasHub"))


def _fixed_choices(config_map, config, objective):
    """What KerasHub's code has otherwise than a model: setting -> (of the model, KerasHub's)."""
    names = [name for name in ("activation", "layer_norm_epsilon") if name in config_map.assumed]
    choices = {name: (getattr(config, name), config_map.assumed[name]) for name in names}
    if objective is not None:
        head = objective.masked_lm_head
        choices["head_activation"] = head.activation, config_map.head_activations["masked_lm_head"]
        choices["head_epsilon"] = head.layer_norm_epsilon, config_map.head_epsilon
    return {name: (value, published) for name, (value, published) in choices.items() if value != published}


def _write_weights(folder, weights, config, renames):
    back = {new: old for old, new in renames.items()}
    first = getattr(config, "padding_id", -1) + 1
    with contextlib.ExitStack() as stack:
        files = {}
        for name, value in weights.items():
            words = [back.get(word, word) for word in name.removeprefix("task/").split("/")]
            words[0] = words[0].removesuffix("_0")
            value = with_heads(value, _heads_of(name), config.num_heads)
            if name.endswith("position_embedding/vars/0"):
                value = value[first:]
            file = TASK_WEIGHTS if name.startswith("task/") else WEIGHTS
            if file not in files:
                files[file] = stack.enter_context(h5py.File(folder / file, "w"))
            files[file]["/".join(["layers", *words])] = value


def _object(name, config):
    """An object as Keras serializes it."""
    return {"module": "keras_hub.models", "class_name": name, "config": config, "registered_name": f"keras_hub>{name}"}


def _dump(file, content):
    file.write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")


def _difference(model, encoder, folder, task):
    """How far the outputs of what was written are from the model's, relative to the largest value."""
    from bert_tf.checkpoints.formats import open_source
    from bert_tf.checkpoints.opened_model import OpenedModel

    again, config = OpenedModel(open_source(folder)), encoder.config
    shape = (2, min(64, config.max_positions))
    first = getattr(config, "padding_id", -1) + 1  # RoBERTa's padding has a position of its own
    ids = np.random.default_rng(0).integers(
        min(first, config.vocabulary_size - 1), config.vocabulary_size, shape, "int32"
    )
    features = {"token_ids": ids, "segment_ids": np.zeros(shape, "int32"), "padding_mask": np.ones(shape, bool)}
    features["mask_positions"] = np.tile(np.arange(shape[1], dtype="int32"), (2, 1))
    pairs = [(encoder(encoder.select(features)), again.backbone(again.backbone.select(features)))]
    if model is not encoder and (task is not None or again.objective_settings is not None):
        pairs.append((model(features), again.model(features)))
    return max(
        float(
            np.max(np.abs(np.asarray(first[key]) - np.asarray(second[key]))) / np.max(np.abs(np.asarray(second[key])))
        )
        for first, second in pairs
        for key in first.keys() & second.keys()
    )


def _write_tokenizer(tokenizer, folder, family, name, approximate):
    """Writes tokenizer.json and its files, and returns the content of the first."""
    kinds = {"roberta": "byte_level_bpe", "gpt2": "byte_level_bpe", "albert": "sentencepiece", "t5": "sentencepiece"}
    kind = kinds.get(family, "wordpiece")
    if family == "xlnet":
        logging.warning("KerasHub has no tokenizer of XLNet: the model is written without it")
        return None
    if tokenizer.kind != kind:
        raise ConfigError(
            f"the tokenizer of KerasHub's {name} is {kind}, this one is {tokenizer.kind}; write the model without it: "
            "bert_tf.save(model, None, ...)"
        )
    family_own = family_tokens(family) if kind == "sentencepiece" else ()
    if more := [
        token for token in tokenizer.special_tokens if token not in (*tokenizer.role_tokens.values(), *family_own)
    ]:
        message = f"KerasHub's {name}Tokenizer does not find further special tokens in texts, such as '{more[0]}'"
        if not approximate:
            raise ConfigError(
                f"{message}; write the model without its tokenizer, bert_tf.save(model, None, ...), or with ids that differ: ",
                Advice("approximate", True),
            )
        logging.warning("%s: some texts get other ids there", message)
    roles = {"roberta": ROBERTA_ROLES, "gpt2": GPT2_ROLES}.get(family, STANDARD_SPECIAL_TOKENS)
    keys: dict[str, Any] = {"proto": None}
    assets = folder / ASSETS
    assets.mkdir(parents=True)
    if kind == "sentencepiece":
        fixed = {"family": family, "pre_tokenization": "authors"}
        fixed |= _AS_IT_IS if family == "albert" else {}
        (assets / "vocabulary.spm").write_bytes(tokenizer.model)
    elif kind == "wordpiece":
        fixed = {"normalization": None, "tokenize_chinese_chars": True}
        fixed["role_tokens"] = roles | {"unk": tokenizer.role_tokens["unk"]}
        keys = {"vocabulary": None, "lowercase": tokenizer.lowercase, "strip_accents": tokenizer.strip_accents}
        keys |= {"oov_token": tokenizer.role_tokens["unk"], "special_tokens_in_strings": True}
        if tokenizer.lowercase:
            logging.warning("KerasHub's %sTokenizer folds case with NFKC: some texts get other ids there", name)
        write_vocabulary(tokenizer, assets)
        (assets / "vocab.txt").rename(assets / "vocabulary.txt")
    else:
        fixed = {"normalization": None, "role_tokens": roles}
        keys = {"vocabulary": None, "merges": None, "add_prefix_space": tokenizer.add_prefix_space}
        write_bpe(tokenizer, assets)
        (assets / "vocab.json").rename(assets / "vocabulary.json")
    for setting, value in fixed.items():
        current = getattr(tokenizer, setting)
        if current != value and not approximate:
            raise ConfigError(
                f"KerasHub's {name}Tokenizer has {setting}={value!r}, this tokenizer {current!r}; write the model without it: "
                "bert_tf.save(model, None, ...), or with another one that gives other ids: approximate=True"
            )
        if current != value:
            message = "KerasHub's %sTokenizer has %s=%r, this tokenizer %r: some texts get other ids there"
            logging.warning(message, name, setting, value, current)
    content = _object(f"{name}Tokenizer", keys)
    _dump(folder / TOKENIZER, content)
    return content
