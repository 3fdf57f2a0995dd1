"""BERT checkpoints of the TensorFlow Model Garden (official/nlp), under google-research/bert's names.

Object graphs have two forms: the functional `BertEncoder` numbers its layers (`layer_with_weights-4`), `BertEncoderV2`
names them (`_transformer_layers/0`). Kernels have three dimensions in them ([H, n, d]), and two here. The arrays get the
names of google-research/bert, so that one weight map serves both.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from bert_tf.checkpoints import tensorflow1
from bert_tf.checkpoints.arrays import NamedArrays, with_heads, without_heads
from bert_tf.checkpoints.saving import random_pooler, write_model
from bert_tf.checkpoints.sizes import check_sizes
from bert_tf.checkpoints.source import Source
from bert_tf.errors import DataError
from bert_tf.models.families import maps_of
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Shapes, StrPath

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# The prefixes that an encoder has in saved models, the longest first.
_ROOTS = ("model/encoder_network/", "model/encoder/", "encoder/", "model/")
_LAYER = {
    "_attention_layer/_query_dense": ("attention/self/query", "last"),
    "_attention_layer/_key_dense": ("attention/self/key", "last"),
    "_attention_layer/_value_dense": ("attention/self/value", "last"),
    "_attention_layer/_output_dense": ("attention/output/dense", "first"),
    "_attention_layer_norm": ("attention/output/LayerNorm", None),
    "_intermediate_dense": ("intermediate/dense", None),
    "_output_dense": ("output/dense", None),
    "_output_layer_norm": ("output/LayerNorm", None),
}
_TABLES = {
    "_embedding_layer/embeddings": "bert/embeddings/word_embeddings",
    "_position_embedding_layer/embeddings": "bert/embeddings/position_embeddings",
    "_type_embedding_layer/embeddings": "bert/embeddings/token_type_embeddings",
    "_embedding_norm_layer/gamma": "bert/embeddings/LayerNorm/gamma",
    "_embedding_norm_layer/beta": "bert/embeddings/LayerNorm/beta",
    "_pooler_layer/kernel": "bert/pooler/dense/kernel",
    "_pooler_layer/bias": "bert/pooler/dense/bias",
}
_HEAD = {
    "masked_lm/dense/kernel": "cls/predictions/transform/dense/kernel",
    "masked_lm/dense/bias": "cls/predictions/transform/dense/bias",
    "masked_lm/layer_norm/gamma": "cls/predictions/transform/LayerNorm/gamma",
    "masked_lm/layer_norm/beta": "cls/predictions/transform/LayerNorm/beta",
    "masked_lm/output_bias.Sbias": "cls/predictions/output_bias",
    # A variable that two objects own is saved under the name of one of them.
    "masked_lm/embedding_table": "bert/embeddings/word_embeddings",
}
#: Heads on another pooler than BERT's: they are reported, and not loaded.
OTHER_HEADS = ("next_sentence*", "model/classification_heads/*", "classification_heads/*")
_BOOKKEEPING = re.compile(
    r"_CHECKPOINTABLE_OBJECT_GRAPH|save_counter|global_step|step|optimizer/.*|.*/\.OPTIMIZER_SLOT/.*"
)


def open_model(path: Path, family: str | None = None) -> Source:
    """The `Source` of an object graph with the configuration of google-research/bert beside it.

    Raises:
        DataError: as `tensorflow1.open_model`.
    """
    prefix = tensorflow1.prefix_of(path)
    arrays, folder = tensorflow1.TensorFlowArrays(prefix), prefix.parent
    record = tensorflow1.family_of_files(family, folder, arrays)
    maps = record.maps("garden")
    if maps is None:
        readable = ", ".join(maps_of("garden"))
        raise DataError(f"{prefix} was saved by TensorFlow 2; of the Model Garden only {readable} can be read")
    config, translated = tensorflow1.read_config(record, record.maps("tf1"), folder), GardenArrays(arrays)
    check_sizes(config, translated.shapes, path)
    return Source(folder, "garden", record.name, config, translated, maps.weights, other_heads=OTHER_HEADS)


class GardenArrays(NamedArrays):
    """The variables of an object graph under google-research/bert's names and in its shapes.

    Variables that are not recognized keep their own names, so that loading reports them.

    Args:
        arrays: `TensorFlowArrays` of the checkpoint.

    Raises:
        DataError: it holds no encoder.
    """

    def __init__(self, arrays: Any) -> None:
        self._arrays = arrays
        names = [name for name in arrays if not _BOOKKEEPING.fullmatch(name.removesuffix(_SUFFIX))]
        root = next((r for r in _ROOTS if any(n.startswith(r) and "/_attention_layer/" in n for n in names)), None)
        if root is None:
            raise DataError("the object graph holds no BERT encoder of the Model Garden")
        numbered = sorted(
            {int(n) for name in names for n in re.findall(r"layer_with_weights-(\d+)/_attention_layer/", name)}
        )
        self._sources: dict[str, tuple[str, str | None]] = {}
        for name in names:
            short = name.removesuffix(_SUFFIX)
            self._sources.setdefault(*_translate(short, root, numbered, name))

    def __getitem__(self, name: str) -> np.ndarray:
        source, heads = self._sources[name]
        value = self._arrays[source]
        return value.reshape(without_heads(value.shape, heads))

    @functools.cached_property
    def shapes(self) -> Shapes:
        """dict from name to shape, a tuple, as `__getitem__` gives it."""
        stored = self._arrays.shapes
        return {name: without_heads(stored[source], heads) for name, (source, heads) in self._sources.items()}


def _translate(short, root, numbered, name):
    """(original's name, (name in the file, `heads` of `without_heads`))."""
    for prefix in ("model/", ""):
        if short.removeprefix(prefix) in _HEAD and short.startswith(prefix):
            return _HEAD[short.removeprefix(prefix)], (name, None)
    inside = _rename(short.removeprefix(root), numbered) if short.startswith(root) else short
    if inside in _TABLES:
        return _TABLES[inside], (name, None)
    variable = re.fullmatch(r"_transformer_layers/(\d+)/(.+)/(kernel|bias|gamma|beta)", inside)
    if variable and variable[2] in _LAYER:
        layer, heads = _LAYER[variable[2]]
        return f"bert/encoder/layer_{variable[1]}/{layer}/{variable[3]}", (name, heads)
    return short, (name, None)


def _rename(inside, numbered):
    """The name that `BertEncoderV2` has for a variable of the functional encoder."""
    numbered_layer = re.fullmatch(r"layer_with_weights-(\d+)/(.+)", inside)
    if not numbered_layer or not numbered:
        return inside
    number = int(numbered_layer[1])
    if number in numbered:
        return f"_transformer_layers/{number - numbered[0]}/{numbered_layer[2]}"
    before = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer", "_embedding_norm_layer")
    if number < numbered[0]:
        return f"{before[number]}/{numbered_layer[2]}" if numbered[0] == len(before) else inside
    return f"_pooler_layer/{numbered_layer[2]}" if number == numbered[-1] + 1 else inside


def write(model: Any, tokenizer: Tokenizer | None, path: StrPath) -> None:
    """Writes the configuration, the checkpoint `bert_model.ckpt` and the tokenizer's files; see `bert_tf.save`.

    The checkpoint restores `encoder` or `model`, a `BertEncoder` or a `BertEncoderV2`, and `masked_lm`, the head of a
    `BertPretrainerV2`: both forms of the object graph name the same variables. A pair head is left out: the Garden's has a
    pooler of its own.
    """

    def write_one(folder, family, config, weights, parts, generator):
        names = {f"encoder/{short}": name for short, name in _TABLES.items()}
        if "pooler" not in parts:
            own = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")
            weights = weights | dict(zip(own, random_pooler(config, path, "the Model Garden")))
        for number in range(config.num_layers):
            for short, (layer, _) in _LAYER.items():
                there, here = f"encoder/_transformer_layers/{number}/{short}", f"bert/encoder/layer_{number}/{layer}"
                names |= {f"{there}/{own}": f"{here}/{own}" for own in ("kernel", "bias", "gamma", "beta")}
        if "masked_lm_head" in parts:
            names |= _HEAD
        heads = dict(_LAYER.values())
        variables, tree = {}, tf.Module()
        for short, name in names.items():
            if name in weights:
                if name not in variables:
                    layer = re.sub(r"bert/encoder/layer_\d+/", "", name).rpartition("/")[0]
                    variables[name] = tf.Variable(with_heads(weights[name], heads.get(layer), config.num_heads))
                _place(tree, short.replace(".S", "\0").split("/"), variables[name])
        parts_left = sorted({name.split("/")[1] for name in weights if name not in variables})
        if parts_left:
            logging.warning("%s: the Model Garden's BERT has no %s: not written", path, ", ".join(parts_left))
        blocks = tree.encoder._transformer_layers
        tree.encoder._transformer_layers = [getattr(blocks, str(i)) for i in range(config.num_layers)]
        *first, last = [
            getattr(tree.encoder, name) for name in dict.fromkeys(short.partition("/")[0] for short in _TABLES)
        ]
        for number, layer in enumerate([*first, *tree.encoder._transformer_layers, last]):
            setattr(tree.encoder, f"layer_with_weights-{number}", layer)
        items = {"encoder": tree.encoder, "model": tree.encoder}
        items |= {"masked_lm": tree.masked_lm} if "masked_lm_head" in parts else {}
        tf.train.Checkpoint(**items).write(str(folder / "bert_model.ckpt"))
        maps = family.maps("garden").config
        (folder / maps.file).write_text(json.dumps(maps.write(config), indent=2) + "\n", encoding="utf-8")
        if tokenizer is not None:
            tokenizer.save(folder)

    write_model(model, path, "garden", write_one)


def _place(node, words, variable):
    """Makes the objects on the way to a variable; "\0" stands for a slash in a name."""
    *way, name = (word.replace("\0", "/") for word in words)
    for word in way:
        if not hasattr(node, word):
            setattr(node, word, tf.Module())
        node = getattr(node, word)
    setattr(node, name, variable)
