"""Writes a model in another library's format."""

import dataclasses
from typing import Any

import numpy as np
from absl import logging

from bert_tf.checkpoints import bilm, gpt1_numpy, hugging_face, tensorflow1, word_vectors
from bert_tf.checkpoints.finetuned import PublishedTask
from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError
from bert_tf.files import atomic_folder
from bert_tf.models.electra.checkpoints import split_pair
from bert_tf.models.families import family_of, maps_of
from bert_tf.models.lora import merged_weights
from bert_tf.models.model_config import DROPOUT_RATES
from bert_tf.models.weights import export_weights, part_of
from bert_tf.tokenizers.layout import with_padding_token
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Arrays, StrPath

#: The path of the token table in a model.
TOKEN_TABLE = "embeddings/token_embeddings"
#: The formats that can be written.
FORMATS = ("hf", "tf1", "numpy", "bilm", *word_vectors.FORMATS)


def write_finetuned(encoder: Any, arrays: Arrays, task: PublishedTask, tokenizer: Tokenizer, path: StrPath) -> None:
    """Writes a fine-tuned model as Hugging Face's class of its family, completely or not at all.

    Args:
        encoder: the encoder or decoder in the model.
        arrays: dict from the path of a variable to an array, of the whole model.
        task: a `PublishedTask`.
        tokenizer: is saved in the same folder.
        path: a folder that does not exist yet, or is empty.

    Raises:
        ConfigError, DataError, RunDirectoryError: as `write_checkpoint`.
    """
    family, config = family_of(encoder.config), encoder.config
    if family.structure == "decoder" and task.kind in ("classification", "multi_label", "regression"):
        # Hugging Face's classes read the last token that is not padding, by its id.
        tokenizer = with_padding_token(tokenizer)
        if tokenizer.vocabulary_size > config.vocabulary_size:
            config = dataclasses.replace(config, vocabulary_size=tokenizer.vocabulary_size)
            table = np.asarray(arrays[TOKEN_TABLE])
            arrays = {**arrays, TOKEN_TABLE: np.concatenate([table, np.zeros_like(table[:1])])}
    weights = _float32(export_weights(arrays, task.published.weights(family.maps("hf").weights)))
    with atomic_folder(path) as temporary:
        hf_config = hugging_face.write(temporary, family, config, weights, (), tokenizer, task)
    rate = task.published.rate(hf_config)
    lost = _lost_settings(family.maps("hf"), config, weights)
    _warn(path, lost | ({} if rate == task.dropout else {"task.dropout": (task.dropout, rate)}))


def write_checkpoint(model: Any, tokenizer: Tokenizer | None, path: StrPath, format: str = "hf") -> None:
    """Writes a folder, or a file of word vectors, that the originals' loaders open, completely or not at all.

    Args:
        model: an encoder, or an objective around one with its heads.
        tokenizer: is saved in the same folder; None for none.
        path: a folder that does not exist yet, or is empty.
        format: "hf" (config.json, model.safetensors) or "tf1" (the original authors' checkpoint and
            configuration), "numpy" (GPT-1's params_*.npy) or "bilm" (ELMo's HDF5). Of ELECTRA's two models "hf" writes
            two folders, `discriminator` and `generator`, as they were published. "word2vec" (also fastText's .vec),
            "word2vec_binary" and "glove": one file, of the token table alone.

    Raises:
        ConfigError: an unknown format, or a family or setting that the format does not have.
        DataError: a variable without a name in that format, such as the span boundary head's.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    if format not in FORMATS:
        raise ConfigError(f"there is no format '{format}'{nearest(format, FORMATS)}")
    if not hasattr(model, "backbones"):
        raise ConfigError(
            f"bert_tf.save takes a model, its tokenizer and a path, in this order; its first argument is a "
            f"{type(model).__name__}, give the `encoder` or the `objective` of what bert_tf.load returns"
        )
    encoder, *others = model.backbones().values()
    if format in word_vectors.FORMATS:
        return word_vectors.write_table(encoder, tokenizer, path, format)
    family, published = family_of(encoder.config), maps_of(format)
    if family.name not in published:
        raise ConfigError(f"'{family.name}' has no checkpoints of format '{format}'{nearest(family.name, published)}")
    weight_map = published[family.name].weights
    variables = merged_weights(model)
    generator = others[0] if others else None
    models = {"": (encoder.config, variables)}
    if format == "hf" and generator is not None:
        configs = (encoder.config, generator.config)
        models = dict(zip(hugging_face.PAIR, zip(configs, split_pair(variables))))
    ready = {
        folder: (config, _float32(export_weights(named, weight_map)), named)
        for folder, (config, named) in models.items()
    }
    lost: dict[str, Any] = {}
    with atomic_folder(path) as temporary:
        for folder, (config, weights, named) in ready.items():
            lost |= _lost_settings(published[family.name], config, weights)
            (temporary / folder).mkdir(exist_ok=True)
            if format == "hf":
                parts = {part_of(name) for name in named}
                hugging_face.write(temporary / folder, family, config, weights, parts, tokenizer)
            elif format == "bilm":
                bilm.write(temporary / folder, family, config, weights)
            elif format == "numpy":
                gpt1_numpy.write(temporary / folder, family, config, weights, tokenizer)
            else:
                other = None if generator is None else generator.config
                tensorflow1.write(temporary / folder, family, config, weights, tokenizer, other)
    _warn(path, lost)


def _lost_settings(maps, config, weights):
    """The settings of training that a format has no name for: name -> (value, value that is read back).

    Other settings without a name in the format are refused when it is written.
    """
    if maps.config is None:
        again = maps.config_of_shapes({name: array.shape for name, array in weights.items()})
    else:
        again = build(type(config), maps.config.read(maps.config.write(config), maps.config.file), maps.config.file)
    written, read = to_dict(config), to_dict(again)
    training = [name for name in written if name in DROPOUT_RATES or name.endswith("initializer_range")]
    return {name: (written[name], read[name]) for name in training if written[name] != read[name]}


def _warn(path, lost):
    for name, (value, read) in lost.items():
        message = "%s cannot say %s=%s: its format has no such setting. Training continues with %s there; the outputs are the same"
        logging.warning(message, path, name, value, read)


def _float32(weights):
    """As every published format holds them, whatever the dtype policy of the model."""
    return {name: value.astype("float32", copy=False) for name, value in weights.items()}
