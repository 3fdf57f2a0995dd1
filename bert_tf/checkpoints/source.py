"""Opens published checkpoints, and fills models with their weights."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints import bilm, finetuned, gpt1_numpy, hugging_face, tensorflow1, word_vectors
from bert_tf.checkpoints.finetuned import PublishedTask
from bert_tf.checkpoints.model_garden import OTHER_HEADS, GardenArrays
from bert_tf.checkpoints.sizes import check_sizes
from bert_tf.config import build
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.electra.checkpoints import split_pair
from bert_tf.models.families import FAMILIES, maps_of
from bert_tf.models.weights import LoadReport, WeightMap, by_path, load_weights, part_of
from bert_tf.parsing import brief
from bert_tf.tokenizers import load_tokenizer
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import StrPath


@dataclasses.dataclass(frozen=True)
class Source:
    """An opened checkpoint, made by `open_checkpoint`. Its weights are read when they are used.

    Attributes:
        path: its folder.
        format: "hf", "tf1", "garden", "numpy", "bilm" or "vectors".
        family: the name of the family in this library, e.g. "bert".
        config: its configuration, e.g. a `BertConfig`.
        arrays: published name -> array.
        weight_map: from these names to the variables of this library's model.
        padding_id: the padding id that its configuration names, or None.
        generator: the configuration of ELECTRA's generator, where it is in the same checkpoint.
        objective: None: published checkpoints do not name the objective that they were trained with.
        hf_config: the content of config.json of a Hugging Face directory; empty for other formats.

    Example:
        bert_tf.save(encoder, tokenizer, "published")
        source = open_checkpoint("published")
        source.config, source.tokenizer()
        source.fill(build_backbone(source.config)).unused  # ()
    """

    path: Path
    format: str
    family: str
    config: Any
    arrays: Any
    weight_map: WeightMap
    padding_id: int | None = None
    generator: Any = None
    objective: dict[str, Any] | None = None
    hf_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_finetuned(self) -> bool:
        """Whether it is a model with the head of a task of this library."""
        return self._published_head is not None

    @property
    def _published_head(self):
        return (
            finetuned.published_head(self.hf_config, FAMILIES[self.family].maps("hf").heads) if self.hf_config else None
        )

    def task(self) -> PublishedTask:
        """The `PublishedTask` of a fine-tuned model.

        Raises:
            DataError: the model is not fine-tuned.
            ConfigError: a task or labels that cannot be read.
        """
        published = self._published_head
        if published is None:
            raise DataError(
                f"{self.path} holds no fine-tuned model: the architectures in its configuration are "
                f"{brief(self.hf_config.get('architectures'))}; give a run of bert-tf finetune, or a directory of a class such "
                "as BertForSequenceClassification"
            )
        head, published_head = published
        return finetuned.read_task(self.hf_config, head, published_head, self.path / hugging_face.CONFIG)

    @property
    def paths(self) -> set[str]:
        """The paths of the variables that it fills, a set."""
        return {target[0] for name in self.arrays if (target := self.place(name))}

    @property
    def parts(self) -> set[str]:
        """The parts of a model that it fills, a set: layers, "pooler", "masked_lm_head", ...

        A masked LM head without its output bias does not count: ModernBERT's classifiers keep the layers before it.
        """
        paths = self.paths
        parts = {part_of(path) for path in paths}
        return parts if "masked_lm_head/output_bias" in paths else parts - {"masked_lm_head"}

    def place(self, name: str) -> tuple[str, bool] | None:
        """(path, whether transposed) of the variable that an array fills, tied copies too; None where it fills no variable."""
        name = self.weight_map.canonical(name)
        return self.weight_map.target(self.weight_map.copies.get(name, name))

    def fill(self, model: Any, partly: bool = False, fresh: Iterable[str] = ()) -> LoadReport:
        """Sets all variables of a model of `config`.

        Args:
            model: an encoder, or an objective around one; or a dict of its variables by path.
            partly: whether parts that the model lacks may be left out, such as the heads.
            fresh: parts of the model that may keep their random initial values, where the checkpoint lacks them.

        Returns:
            A `LoadReport`.

        Raises:
            DataError: an array without a variable, a variable without an array, or other shapes.
        """
        heads = {"hf": hugging_face.TASK_HEADS, "garden": OTHER_HEADS}.get(self.format, ())
        try:
            return load_weights(model, self.arrays, self.weight_map, partly, heads, fresh)
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None

    def fill_task(self, model: Any) -> LoadReport:
        """Sets all variables of the model of a fine-tuned checkpoint's task; parts of the checkpoint that the task does not need are left out.

        Returns:
            A `LoadReport`.

        Raises:
            DataError: as `fill`.
        """
        _, published = self._published_head
        try:
            names = published.weights(self.weight_map)
            return load_weights(model, self.arrays, names, partly=True, other_heads=hugging_face.TASK_HEADS)
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None

    def tokenizer(self) -> Tokenizer:
        """The tokenizer beside the weights.

        Raises:
            DataError: there is no tokenizer, or it has more tokens than the model.
            ConfigError: it has another padding id than the model.
        """
        tokenizer = load_tokenizer(self.path)
        if tokenizer.vocabulary_size > self.config.vocabulary_size:
            raise DataError(
                f"the tokenizer in {self.path} has {tokenizer.vocabulary_size} tokens, "
                f"the model only {self.config.vocabulary_size}"
            )
        if self.padding_id not in (None, tokenizer.pad_id):
            raise ConfigError(
                f"pad_token_id is {brief(self.padding_id)} in {self.path / hugging_face.CONFIG}, but the tokenizer's "
                f"padding token '{tokenizer.id_to_token(tokenizer.pad_id)}' is {tokenizer.pad_id}"
            )
        return tokenizer


@dataclasses.dataclass(frozen=True)
class PairSource(Source):
    """ELECTRA's two models side by side: the source of the discriminator, and of the generator.

    Attributes:
        beside: the generator's source; `generator` is its configuration.
    """

    beside: Any = None

    @property
    def parts(self) -> set[str]:
        return super().parts | {"generator"}

    def fill(self, model: Any, partly: bool = False, fresh: Iterable[str] = ()) -> LoadReport:
        discriminator, generator = split_pair(by_path(model))
        if generator:  # before anything is assigned
            self._check_shared_embeddings()
        report = super().fill(discriminator, partly, fresh)
        if not generator:
            return dataclasses.replace(report, unused=tuple(sorted((*report.unused, "generator"))))
        self.beside.fill(generator)
        return report

    def _check_shared_embeddings(self):
        discriminator, generator = (
            {target[0]: name for name in source.arrays if (target := source.place(name))}
            for source in (self, self.beside)
        )
        for path, name in generator.items():
            if path.startswith("embeddings/") and not np.array_equal(
                self.beside.arrays[name], self.arrays[discriminator[path]]
            ):
                raise DataError(
                    f"{self.beside.path}: '{name}' is another than in {self.path}; these two were not trained together"
                )


@dataclasses.dataclass(frozen=True)
class VectorsSource(Source):
    """A file of word vectors, which holds its words too.

    Attributes:
        words: the tokenizer of these words.
    """

    words: Any = None

    def tokenizer(self) -> Tokenizer:
        return self.words


def is_checkpoint(path: StrPath) -> bool:
    """Whether `path` looks like a published checkpoint: a folder, a file of vectors, or the prefix of TensorFlow's."""
    if gpt1_numpy.recognize(path) or bilm.recognize(path) or word_vectors.recognize(path) or _is_pair(path):
        return True
    return any(found is not None for found in (hugging_face.recognize(path), tensorflow1.recognize(path)))


def _is_pair(path):
    return all((Path(path) / name / hugging_face.CONFIG).is_file() for name in hugging_face.PAIR)


def open_checkpoint(path: StrPath, family: str | None = None) -> Source:
    """Recognizes a checkpoint and reads its configuration.

    Args:
        path: a Hugging Face directory, or a folder with two of ELECTRA's, `discriminator` and
            `generator`; or a folder with a TensorFlow 1 or Model Garden checkpoint
            and its configuration, or the checkpoint's prefix in it; or a folder with GPT-1's params_*.npy, or
            with ELMo's options.json and weights.hdf5; or a file of word vectors.
        family: the name of the family, where the files do not name it, or are in the format of another family
            ("spanbert" in BERT's). None: as the files say.

    Raises:
        DataError: there is no checkpoint that can be read.
        ConfigError: an unknown family, or a setting that is not understood.
    """
    if _is_pair(path):
        source, beside = (open_checkpoint(Path(path) / name, family) for name in hugging_face.PAIR)
        return PairSource(**(vars(source) | {"generator": beside.config, "beside": beside}))
    if word_vectors.recognize(path) and tensorflow1.recognize(path) is None:
        config, arrays, words = word_vectors.read_checkpoint(path)
        return VectorsSource(Path(path), "vectors", "word_vectors", config, arrays, word_vectors.WEIGHTS, words=words)
    hf_config, generator, padding_id = hugging_face.recognize(path), None, None
    if hf_config is not None:
        folder = Path(path)
        file = folder / hugging_face.CONFIG
        record, format = hugging_face.recognize_family(hf_config, file, family), "hf"
        maps, padding_id = record.maps(format), hf_config.get("pad_token_id")
        settings, arrays = maps.config.read(hf_config, file), hugging_face.SafetensorsArrays(folder, maps.weights.knows)
        settings |= maps.config_of_arrays(arrays) if maps.config_of_arrays else {}
        config = build(record.config, settings, str(file))
    elif gpt1_numpy.recognize(path):
        folder, record, format = Path(path), FAMILIES["gpt1"], "numpy"
        arrays = gpt1_numpy.NumpyArrays(folder)
        config = record.maps(format).config_of_shapes(arrays.shapes)
    elif (files := bilm.recognize(path)) is not None:
        folder, record, format = Path(path), FAMILIES["elmo"], "bilm"
        options = bilm.read_options(files[0])
        config = build(record.config, record.maps(format).config.read(options, files[0]), str(files[0]))
        arrays = bilm.BilmArrays(files[1], options)
    else:
        found = tensorflow1.recognize(path)
        if found is None:
            raise DataError(
                f"{path} is not a checkpoint: it has neither {hugging_face.CONFIG} with {hugging_face.WEIGHTS} "
                "(Hugging Face) nor a .index file with its configuration (TensorFlow 1) nor config.yaml (a run)"
            )
        named, folder, prefix = found
        name, published = family or named, maps_of("tf1")
        if name is None or name not in published:
            known = ", ".join(maps.config.file for maps in published.values() if maps.config)
            raise DataError(f"{folder} has a TensorFlow checkpoint, but none of its configurations: {known}")
        record, format = FAMILIES[name], "tf1"
        arrays = tensorflow1.TensorFlowArrays(prefix)
        config, generator = tensorflow1.read_configs(record, folder, arrays)
        if arrays.is_object_graph:
            if record.maps("garden") is None:
                readable = ", ".join(maps_of("garden"))
                raise DataError(f"{prefix} was saved by TensorFlow 2; of the Model Garden only {readable} can be read")
            arrays, format = GardenArrays(arrays), "garden"
    weights = record.maps(format).weights
    source = Source(
        folder, format, record.name, config, arrays, weights, padding_id, generator, hf_config=hf_config or {}
    )
    for each in (config, generator):
        if each is not None:
            check_sizes(each, arrays.shapes, path)
    return source
