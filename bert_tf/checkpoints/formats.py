"""The formats in which models lie on disk, and the one way to open a model.

A format imports its own library where it opens or writes: the list is read before TensorFlow is imported.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.files import atomic_write, is_there
from bert_tf.hub import local_model
from bert_tf.registry import Registry
from bert_tf.types import StrPath

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from bert_tf.checkpoints.source import Source
    from bert_tf.tokenizers.tokenizer import Tokenizer

#: The formats of word vectors, which are read as one: the first line of a file tells which it is.
VECTOR_FILES = ("word2vec", "word2vec_binary", "glove")
#: The folders of ELECTRA's two models, where they are kept together as two Hugging Face directories.
PAIR = ("discriminator", "generator")


class Format:
    """One format; a subclass says how it is recognized, opened and, where it can be, written.

    Attributes:
        name: what `bert_tf.save(format=...)` and `bert-tf convert --to` say.
        files: by which files it is recognized, for messages.
        approximates: whether `write` takes `approximate` of `bert_tf.save`.

    Example:
        class Npz(Format):
            name, files = "npz", "a file .npz"

            def recognize(self, path):
                return path.suffix == ".npz"

            def open(self, path, family):
                with np.load(path) as file:
                    arrays = ArraysInMemory(dict(file))
                weight_map = WeightMap(arrays={name: name for name in arrays})
                return Source(path, self.name, "bert", BertConfig(100, 16, 1, 2, 32), arrays, weight_map)

        FORMATS.register(Npz())
    """

    name = ""
    files = ""
    approximates = False

    def recognize(self, path: Path) -> bool:
        """Whether `path` holds this format: a look at names, not at weights. False where it is only written."""
        return False

    def open(self, path: Path, family: str | None) -> Source:
        """The `Source` of a path that `recognize` knows; `family` is of `bert_tf.load`."""
        raise NotImplementedError

    def write(self, model: Any, tokenizer: Tokenizer | None, path: StrPath) -> None:
        """Writes a model; see `bert_tf.save`."""
        raise ConfigError(f"models cannot be written in the format '{self.name}'; choose one of {', '.join(written())}")


class _Own(Format):
    """A format of this package: `module()` is one with `open_model(path, family)` and `write(model, tokenizer, path)`."""

    def __init__(
        self, name: str, files: str, recognize: Callable[[Path], bool], module: Callable[[], ModuleType]
    ) -> None:
        self.name, self.files, self._recognize, self._module = name, files, recognize, module

    def recognize(self, path):
        return self._recognize(path)

    def open(self, path, family):
        return self._module().open_model(path, family)

    def write(self, model, tokenizer, path):
        self._module().write(model, tokenizer, path)


class _KerasHub(_Own):
    approximates = True

    def write(self, model, tokenizer, path, approximate=False):
        self._module().write(model, tokenizer, path, approximate)


class _WordVectors(_Own):
    def write(self, model, tokenizer, path):
        self._module().write(model, tokenizer, path, self.name)


class _KerasFile(Format):
    """A file of the Keras model alone, which `bert_tf.load_keras` opens. It has no tokenizer, so `load` does not."""

    name, files = "keras", "a file .keras"

    def recognize(self, path):
        return path.suffix == ".keras"

    def open(self, path, family):
        raise DataError(
            f"{path} is a Keras model without its tokenizer: open it with bert_tf.load_keras, or write what trains on with "
            "bert_tf.save(model, tokenizer, 'run', format='run')"
        )

    def write(self, model, tokenizer, path):
        if Path(path).suffix != ".keras":
            raise ConfigError(f"{path}: a Keras model is one file; give it a name that ends in .keras")
        with tempfile.TemporaryDirectory() as folder, atomic_write(path, "wb", replace=False) as file:
            model.save(Path(folder, "model.keras"))
            with open(Path(folder, "model.keras"), "rb") as saved:
                shutil.copyfileobj(saved, file)


def _bilm():
    from bert_tf.checkpoints import bilm

    return bilm


def _gpt1_numpy():
    from bert_tf.checkpoints import gpt1_numpy

    return gpt1_numpy


def _hugging_face():
    from bert_tf.checkpoints import hugging_face

    return hugging_face


def _keras_hub():
    from bert_tf.checkpoints import keras_hub

    return keras_hub


def _model_garden():
    from bert_tf.checkpoints import model_garden

    return model_garden


def _tensorflow1():
    from bert_tf.checkpoints import tensorflow1

    return tensorflow1


def _word_vectors():
    from bert_tf.checkpoints import word_vectors

    return word_vectors


def _may_be_vectors(path):
    return path.is_file() and path.suffix not in (".json", ".safetensors", ".yaml")


def _has_index(path):
    if path.is_dir():
        return any(path.glob("*.index"))
    return path.suffix in (".index", ".meta") or path.with_name(f"{path.name}.index").is_file()


def _has_object_graph(path):
    if not _has_index(path):
        return False
    tensorflow1 = _tensorflow1()
    return tensorflow1.TensorFlowArrays(tensorflow1.prefix_of(path)).is_object_graph


def _has_bilm(path):
    return path.is_dir() and all(len(list(path.glob(f"*{name}"))) == 1 for name in ("options.json", "weights.hdf5"))


def _has_config(path):
    return (path / "config.json").is_file() or all((path / part / "config.json").is_file() for part in PAIR)


def _has_keras_weights(path):
    return (path / "config.json").is_file() and any(path.glob("model*.weights.*"))


#: Name -> `Format`; a later one is asked before an earlier one whether it recognizes a path.
FORMATS = Registry(
    "format",
    "format",
    [
        *(_WordVectors(name, "one file of word vectors", _may_be_vectors, _word_vectors) for name in VECTOR_FILES),
        _Own("tf1", "one .index file with its configuration (TensorFlow 1)", _has_index, _tensorflow1),
        _Own("garden", "one .index file of a BERT of the Model Garden", _has_object_graph, _model_garden),
        _Own("bilm", "options.json and weights.hdf5 (ELMo)", _has_bilm, _bilm),
        _Own("numpy", "params_shapes.json (GPT-1)", lambda path: (path / "params_shapes.json").is_file(), _gpt1_numpy),
        _Own("hf", "config.json (Hugging Face)", _has_config, _hugging_face),
        _KerasHub("keras_hub", "config.json and model.weights.h5 (KerasHub)", _has_keras_weights, _keras_hub),
        _KerasFile(),
    ],
)


def written() -> list[str]:
    """The names of the formats in which models can be written."""
    return [record.name for record in FORMATS.values() if type(record).write is not Format.write]


def open_source(path: StrPath, family: str | None = None) -> Source:
    """Opens a model on disk: the last registered format that recognizes `path` opens it.

    `bert_tf.training` registers the format of its runs, and `bert_tf.load` imports it.

    Args:
        path: see the table in `docs/guides/publish.md`; `hf://owner/name` of the Hugging Face Hub becomes a folder
            in the cache.
        family: see `bert_tf.load`.

    Raises:
        RunDirectoryError: there is nothing at `path`, or a damaged run.
        DataError, ConfigError: no format recognizes it, or what it holds cannot be read; or it is of another family.

    Example:
        open_source("bert-base-uncased").config.num_layers  # 12
    """
    path = Path(local_model(path))
    for record in reversed(list(FORMATS.values())):
        if record.recognize(path):
            source = record.open(path, family)
            if family not in (None, source.family):
                raise ConfigError(
                    f"{path} holds a model of the family '{source.family}', not '{family}'; leave the family out"
                )
            return source
    if not is_there(path):
        raise RunDirectoryError(
            f"{path} is not a run directory, and no published checkpoint: it does not exist. A model of the Hugging Face Hub "
            "is given as hf://owner/name, such as hf://google-bert/bert-base-uncased"
        )
    if path.is_file():
        raise DataError(f"{path} is one file of a model; give the folder, {path.parent}")
    files = dict.fromkeys(record.files for record in FORMATS.values() if record.name != _KerasFile.name)
    raise DataError(f"{path} holds no model: it has none of {'; '.join(files)}")


def write_checkpoint(
    model: Any, tokenizer: Tokenizer | None, path: StrPath, format: str = "hf", approximate: bool = False
) -> None:
    """Writes a model in a format; see `bert_tf.save`."""
    if not hasattr(model, "backbones"):
        raise ConfigError(
            f"bert_tf.save takes a model, its tokenizer and a path, in this order; its first argument is a "
            f"{type(model).__name__}, give the `encoder` or the `objective` of what bert_tf.load returns"
        )
    size = next(iter(model.backbones().values())).config.vocabulary_size
    if tokenizer is not None and tokenizer.vocabulary_size > size:
        raise ConfigError(
            f"the tokenizer has {tokenizer.vocabulary_size} tokens, the model only {size}; give the tokenizer of its training"
        )
    FORMATS[format].write(model, tokenizer, path, **options_of(format, approximate))


def options_of(format: str, approximate: bool) -> dict[str, bool]:
    """The arguments of `Format.write` that say `approximate`; ConfigError where the format writes nothing so."""
    if approximate and not FORMATS[format].approximates:
        able = ", ".join(record.name for record in FORMATS.values() if record.approximates)
        raise ConfigError(f"format '{format}' has no approximations; leave approximate out, or choose {able}")
    return {"approximate": True} if approximate else {}
