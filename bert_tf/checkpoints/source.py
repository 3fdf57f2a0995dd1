"""A model on disk that was opened: its configuration, weights, tokenizer and task, whatever the format."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from absl import logging

from bert_tf.checkpoints.arrays import NamedArrays
from bert_tf.errors import DataError
from bert_tf.models.weights import LoadReport, WeightMap, load_weights, part_of
from bert_tf.tasks.task import Task
from bert_tf.tokenizers import load_tokenizer
from bert_tf.tokenizers.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class StoredTask:
    """The task of a fine-tuned model.

    Attributes:
        make: function from the tokenizer to the `Task`.
        weights: from the names of the arrays to the variables of the task's model.
        partly: whether the files may hold parts that this model lacks, such as a pooler.

    Example:
        open_source("bert-base-NER").task.partly  # True
    """

    make: Callable[[Tokenizer], Task]
    weights: WeightMap
    partly: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """What `open_source` returns. Weights and tokenizer are read when they are asked for.

    Attributes:
        path: its folder or file.
        format: the name of its `Format`; "word2vec" for all word vectors.
        family: the name of the family in this library, e.g. "bert".
        config: its configuration, e.g. a `BertConfig`.
        arrays: published name -> array.
        weight_map: from these names to the variables of this library's model.
        generator: the configuration of ELECTRA's generator, where it lies beside the discriminator.
        other_heads: patterns of the names of heads that are left unused.
        holds_more: whether the files always may hold parts that a model lacks, as runs do.
        objective: the settings of the objective that it was pretrained with; None where the files do not say it.
        settings: all settings of its training; empty where the files do not say them.
        sequence_length: that of its training; None where the files do not say it.
        read_tokenizer: function from `path` to the tokenizer.
        task: of a fine-tuned model, else None.

    Example:
        bert_tf.save(encoder, tokenizer, "published")
        source = open_source("published")
        source.config, source.tokenizer
        source.fill(build_backbone(source.config)).unused  # ()
    """

    path: Path
    format: str
    family: str
    config: Any
    arrays: NamedArrays
    weight_map: WeightMap
    generator: Any = None
    other_heads: tuple[str, ...] = ()
    holds_more: bool = False
    objective: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    sequence_length: int | None = None
    read_tokenizer: Callable[[Path], Tokenizer] = load_tokenizer
    task: StoredTask | None = None

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer beside the weights.

        Raises:
            DataError: there is no tokenizer, or it has more tokens than the model.
            ConfigError: it has another padding id than the model.
        """
        tokenizer = self.read_tokenizer(self.path)
        if tokenizer.vocabulary_size > self.config.vocabulary_size:
            raise DataError(
                f"the tokenizer in {self.path} has {tokenizer.vocabulary_size} tokens, "
                f"the model only {self.config.vocabulary_size}"
            )
        return tokenizer

    @property
    def paths(self) -> set[str]:
        """The paths of the variables that it fills, a set."""
        shapes = self.arrays.shapes.items()
        names = [part for name, shape in shapes for part, *_ in self.weight_map.parts(name, tuple(shape))]
        return {target[0] for name in names if (target := self.place(name))}

    @functools.cached_property
    def parts(self) -> set[str]:
        """The parts of a model that it fills, a set: layers, "pooler", "masked_lm_head", ...

        A masked LM head without its output bias does not count: ModernBERT's classifiers keep the layers before it.
        """
        paths = self.paths
        parts = {part_of(path) for path in paths}
        return parts if "masked_lm_head/output_bias" in paths else parts - {"masked_lm_head"}

    def place(self, name: str) -> tuple[str, bool] | None:
        """(path, whether transposed) of the variable that an array fills, or for a tied copy that of its original, which
        stands for it where the model has no variable of its own; None where it fills no variable."""
        name = self.weight_map.canonical(name)
        return self.weight_map.target(name) or self.weight_map.target(self.weight_map.copies.get(name, name))

    def identity(self) -> dict[str, Any]:
        """A checksum of the model, which does not depend on its path: a dict that JSON can hold."""
        return self.arrays.identity(self.config)

    def fill(self, model: Any, partly: bool = False, fresh: Iterable[str] = ()) -> LoadReport:
        """Sets all variables of a model of `config`; what stays random is logged.

        Args:
            model: an encoder, or an objective around one; or a dict of its variables by path.
            partly: whether parts that the model lacks may be left out, such as the heads.
            fresh: parts of the model that may keep their random initial values, where the source lacks them.

        Returns:
            A `LoadReport`.

        Raises:
            DataError: an array without a variable, a variable without an array, or other shapes.
        """
        return self._fill(model, self.weight_map, partly or self.holds_more, self.other_heads, fresh)

    def fill_task(self, model: Any) -> LoadReport:
        """Sets all variables of the model of `task`.

        Raises:
            DataError: as `fill`; or the source is not fine-tuned.
        """
        if self.task is None:
            raise DataError(f"{self.path} is not fine-tuned; give a run of bert-tf finetune")
        partly = self.task.partly
        return self._fill(model, self.task.weights, partly, self.other_heads if partly else ())

    def _fill(self, model, weight_map, partly, other_heads, fresh=()):
        try:
            report = load_weights(model, self.arrays, weight_map, partly, other_heads, fresh)
        except DataError as error:
            raise DataError(f"{self.path}: {error}") from None
        parts = sorted({part_of(path) for path in report.fresh})
        if parts:
            logging.warning("%s has no %s: it is randomly initialized", self.path, ", ".join(parts))
        return report
