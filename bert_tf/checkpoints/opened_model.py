"""A model on disk, of which each part is made when it is asked for: the base of what `bert_tf.load` returns."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_tf import config as configuration
from bert_tf.backend.dtype_policy import dtype_policy
from bert_tf.backend.initial_weights import zero_weights
from bert_tf.checkpoints.published_tasks import longest_sequence
from bert_tf.checkpoints.source import Source
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer
from bert_tf.models.families import FAMILIES, arguments_of, build_backbone, describe, encoder_alone
from bert_tf.models.weights import LoadReport, by_path
from bert_tf.objectives.registry import OBJECTIVES
from bert_tf.objectives.settings import ObjectiveConfig
from bert_tf.tasks.task import Task
from bert_tf.tokenizers.frame import Frame
from bert_tf.tokenizers.tokenizer import Tokenizer


class OpenedModel:
    """A run directory or a published checkpoint. What is asked for is made then, and kept.

    `objective` is around `backbone`, whichever is asked for first. `model` of a fine-tuned source has a backbone of its own
    if `backbone` was asked for before.

    Args:
        source: of `open_source`.
        dtype: the dtype policy of its models; None: the global one.
        pooler: whether the encoder has a pooler; None: if the source has one.
        fresh: parts that may be randomly initialized if the source does not have them: "pooler", "masked_lm_head",
            "pair_head".
        trained: False keeps the random initial weights: the same model without its training.
        arguments: further ones of the encoder, such as `output_hidden_states`.

    Attributes:
        source: its `Source`, with the settings and the names of its weights.

    Raises:
        ConfigError: an argument that this model does not have.

    Example:
        OpenedModel(open_source("bert-base-NER")).task.labels  # ('B-LOC', 'O')
    """

    def __init__(
        self,
        source: Source,
        dtype: str | None = None,
        pooler: bool | None = None,
        fresh: Iterable[str] = (),
        trained: bool = True,
        **arguments: Any,
    ) -> None:
        self.source, self.dtype = source, dtype
        self._pooler, self._trained, self._arguments = pooler, trained, arguments
        self._reports: list[LoadReport] = []
        self._fresh = _checked(pooler, fresh)
        names = arguments_of(source.config)
        for name in arguments:
            if name not in names:
                raise ConfigError(
                    f"bert_tf.load has no argument '{name}' for this model{configuration.nearest(name, names)}"
                )

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.source.path

    @property
    def family(self) -> str:
        """The name of its family in this library."""
        return self.source.family

    @property
    def config(self) -> Any:
        """The configuration of its encoder or decoder."""
        return self.source.config

    @property
    def sequence_length(self) -> int:
        """Tokens of the sequences that it was trained on; where the files do not say it, as many as it can read."""
        return self.source.sequence_length or longest_sequence(self.config)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer beside the weights. A task may add separators to it: `task.tokenizer`."""
        return self.source.tokenizer

    @property
    def report(self) -> LoadReport:
        """What became of the weights in all models that were made so far; where none was, `model` is made.

        An array is unused if none of them uses it.
        """
        if not self._reports:
            _ = self.model
        return functools.reduce(LoadReport.joined, self._reports) if self._reports else LoadReport()  # if not trained

    @functools.cached_property
    def backbone(self) -> Any:
        """The encoder, decoder or encoder-decoder, without heads."""
        for name in ("objective", "model"):
            if name in vars(self):
                return vars(self)[name].backbone
        backbone = self._new_backbone(False)
        self._fill(backbone, partly=True)
        return backbone

    @functools.cached_property
    def encoder(self) -> Any:
        """What reads texts: `backbone`, or of an encoder-decoder such as T5 the encoder alone, a model of its own."""
        config = encoder_alone(self.config)
        if config is self.config:
            return self.backbone
        with dtype_policy(self.dtype), self._unfilled():
            encoder = build_backbone(config, **{"pooler": bool(self._pooler)} | self._arguments)
        self._fill(encoder, partly=True)
        return encoder

    @functools.cached_property
    def objective_settings(self) -> ObjectiveConfig | None:
        """The settings of the objective that it was pretrained with; None without a pretraining head.

        A run names it. A published checkpoint shows the head of one of `OBJECTIVES`; or the family's own objective has no
        head. `fresh` counts as what the source has.
        """
        family, parts = FAMILIES[self.family], self.source.parts
        if self.source.objective:
            settings = configuration.build(ObjectiveConfig, self.source.objective, "objective")
        else:
            record = _shown_objective(family, parts) or _shown_objective(family, self._fresh)
            if record is None:
                return None
            settings = record.config()
        generator = None if self.source.generator is None else describe(self.source.generator)
        return settings.for_parts({*parts, *self._fresh}, family.pair_task, generator)

    @functools.cached_property
    def objective(self) -> Any:
        """The pretraining model around the backbone, with its heads.

        Raises:
            DataError: the source has no pretraining head, as after fine-tuning.
        """
        if self.objective_settings is None:
            head = OBJECTIVES[FAMILIES[self.family].objective].head
            raise DataError(
                f"{self.path} holds no pretraining head, as after fine-tuning; give the run of its pretraining, or in Python "
                f"initialize one randomly with bert_tf.load(..., fresh=('{head}',))"
            )
        return self.make_objective(self.objective_settings)

    def make_objective(self, settings: ObjectiveConfig) -> Any:
        """A pretraining model of these settings around `backbone`, with the weights of the source."""
        if "objective" in vars(self) and settings == self.objective_settings:
            return self.objective
        built = {"backbone", "objective", "model"} & vars(self).keys()
        variables = by_path(self.backbone) if built else {}
        with dtype_policy(self.dtype), self._unfilled():
            backbone = self.backbone if variables else self._new_backbone(settings.needs_pooler)
            model_class: Any = OBJECTIVES[settings.name].model_class
            objective = model_class.from_settings(backbone, settings)
        if not variables:
            self._fill(objective)
            return objective
        # The others may have been trained meanwhile.
        self._fill({path: v for path, v in by_path(objective).items() if path not in variables}, partly=True)
        for path, variable in by_path(vars(self).get("objective", {})).items():
            if path in by_path(objective) and path not in variables:
                by_path(objective)[path].assign(variable)
        return objective

    @functools.cached_property
    def task(self) -> Task:
        """The task that it was fine-tuned for.

        Raises:
            DataError: it is not fine-tuned.
            ConfigError: a task, or labels, that this library cannot have.
        """
        if self.source.task is None:
            raise DataError(
                f"{self.path} holds no fine-tuned model; give a run of bert-tf finetune, or a Hugging Face directory of a "
                "class such as BertForSequenceClassification"
            )
        return self.source.task.make(self.tokenizer)

    @functools.cached_property
    def model(self) -> Any:
        """The whole of what was trained: the model of `task`; or without one `objective`; or without its heads `backbone`."""
        if self.source.task is None:
            return self.backbone if self.objective_settings is None else self.objective
        with dtype_policy(self.dtype), self._unfilled():
            encoder = build_backbone(self.config, pooler=self.task.needs_pooler(self.config), **self._arguments)
            model = self.task.model(encoder)
        if self._trained:
            self._reports.append(self.source.fill_task(model))
        return model

    @property
    def frame(self) -> Frame | None:
        """The `Frame` in which it was trained to read prompts; None for the usual one."""
        if self.source.task is not None and self.task.frame is not None:
            return self.task.frame
        return self.objective.frame(self.tokenizer)

    @functools.cached_property
    def generator(self) -> TextGenerator:
        """Continues prompts, or answers them where it was trained to: a `TextGenerator`.

        A task that writes texts gives it the settings that it was trained with.

        Raises:
            DataError, ConfigError: a model that writes no text.
        """
        settings = self.source.task and getattr(self.task.config, "generation", None)
        return TextGenerator(*self._writing(), frame=self.frame, config=settings or GenerationConfig())

    @functools.cached_property
    def scorer(self) -> TextScorer:
        """Says how probable texts are: a `TextScorer`.

        Raises:
            DataError, ConfigError: a model that writes no text.
        """
        return TextScorer(*self._writing(), frame=self.frame)

    def _writing(self):
        if self.source.task is not None:
            return self.model.backbone, self.task.tokenizer
        return self.objective.backbone, self.tokenizer

    def _new_backbone(self, needs_pooler):
        pooler = self._pooler
        if pooler is None:
            pooler = needs_pooler or "pooler" in {*self.source.parts, *self._fresh}
        with dtype_policy(self.dtype), self._unfilled():
            return build_backbone(self.config, pooler=pooler, **self._arguments)

    def _unfilled(self):
        """Within, models are made whose weights are all set next, or else it is an error."""
        return zero_weights(self._trained and self.source.parts.issuperset(self._fresh))

    def _fill(self, model, partly=False):
        if self._trained:
            self._reports.append(self.source.fill(model, partly, self._fresh))


def _checked(pooler: Any, fresh: Any) -> Sequence[str]:
    """`fresh` as a tuple; refuses values that these two arguments do not have."""
    if pooler not in (True, False, None):
        raise ConfigError(f"pooler is {pooler!r}; it must be True or False")
    if isinstance(fresh, str):
        raise ConfigError(f"fresh is {fresh!r}, one text; give a list of parts, ({fresh!r},)")
    fresh, parts = (
        tuple(fresh),
        ["pooler", "pair_head", *(record.head for record in OBJECTIVES.values() if record.head)],
    )
    for part in fresh:
        if part not in parts:
            raise ConfigError(f"fresh names '{part}'{configuration.nearest(part, parts)}")
    return fresh


def _shown_objective(family, parts):
    default = OBJECTIVES[family.objective]
    shown = (record for record in OBJECTIVES.values() if record.head in parts)
    return next(shown, default if default.head is None else None)
