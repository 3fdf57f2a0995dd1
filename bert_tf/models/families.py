"""The list of families; from settings to a configuration, and from that to a backbone.

No Keras is imported before a model is built.
"""

import dataclasses
import inspect
from typing import Any

from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError
from bert_tf.models.albert.config import ALBERT
from bert_tf.models.bert.config import BERT, SPANBERT
from bert_tf.models.distilbert.config import DISTILBERT
from bert_tf.models.electra.config import ELECTRA
from bert_tf.models.elmo.config import ELMO, TRANSFORMER_BILM
from bert_tf.models.family import Family, Maps, Preset
from bert_tf.models.gpt1.config import GPT1
from bert_tf.models.gpt2.config import GPT2
from bert_tf.models.lstm.config import BILSTM, LSTM_LM
from bert_tf.models.modernbert.config import MODERNBERT
from bert_tf.models.roberta.config import ROBERTA
from bert_tf.models.t5.config import T5_DECODER, T5_ENCODER, T5_FAMILY
from bert_tf.models.task_heads import BERT_HEADS, TaskHead
from bert_tf.models.transformer.config import TRANSFORMER
from bert_tf.models.word_vectors.config import WORD_VECTORS
from bert_tf.models.xlnet.config import XLNET
from bert_tf.parsing import brief
from bert_tf.registry import Registry
from bert_tf.types import Config, Model, Options, Settings

#: Name -> `Family`. Where Hugging Face's files have one `model_type` for several families and the caller does not
#: say which is meant, it is the first.
FAMILIES: Registry[Family] = Registry("family", "model.family")
#: Published name -> `Preset`, of all families.
PRESETS: dict[str, Preset] = {}


def register_family(record: Family) -> None:
    """Adds a family to those that configurations, checkpoints and runs may name.

    Args:
        record: a `Family`.

    Raises:
        ConfigError: another family has its name, or a preset of the same name.
    """
    for name, size in record.sizes.items():
        if PRESETS.get(name, size) != size:
            raise ConfigError(f"there is another preset of the name '{name}'; choose another name")
    FAMILIES.register(record)
    PRESETS.update(record.sizes)


for _record in (
    BERT, ROBERTA, ALBERT, DISTILBERT, MODERNBERT, ELECTRA, SPANBERT, XLNET, TRANSFORMER, T5_FAMILY, T5_ENCODER, T5_DECODER, TRANSFORMER_BILM, GPT1, GPT2,
    LSTM_LM, ELMO, WORD_VECTORS, BILSTM,
):  # fmt: skip
    register_family(_record)


def family_of(config: Config) -> Family:
    """The `Family` whose configuration this is.

    Raises:
        ConfigError: it does not belong to a registered family.
    """
    record = find_family(config)
    if record is None:
        raise ConfigError(
            f"{type(config).__name__} does not belong to a registered family; register one with register_family"
        )
    return record


def find_family(config: Config) -> Family | None:
    """The `Family` whose configuration this is; None for none of the registered ones."""
    return next((record for record in FAMILIES.values() if record.config is type(config)), None)


def maps_of(format: str) -> dict[str, Maps]:
    """Name -> `Maps` of the families with published checkpoints in a format; see `Family.checkpoints`."""
    return {name: maps for name, record in FAMILIES.items() if (maps := record.maps(format))}


def preset(name: Any, **overrides: Options) -> Any:
    """The configuration of a published size.

    Args:
        name: a key of `PRESETS`, e.g. "bert_base".
        overrides: fields of the configuration to change, e.g. `vocabulary_size=8000`.

    Raises:
        ConfigError: no such preset or field (the message has the nearest one), or a value of the
            wrong type.

    Example:
        encoder = build_backbone(preset("bert_tiny", vocabulary_size=8000))
    """
    config = _preset(name, "there is no preset").config
    return build(type(config), overrides, where=name, base=config)


def build_config(section: Settings, vocabulary_size: int | None = None, padding_id: int | None = None) -> Any:
    """The configuration that a `model:` section describes.

    Args:
        section: dict; either `preset`, with any field of its configuration to change, or `family`
            with all sizes.
        vocabulary_size: used where the section does not set its own.
        padding_id: the tokenizer's; used by families whose positions depend on it (RoBERTa), where
            the section does not set its own.

    Raises:
        ConfigError: an unknown preset, family or field, a missing size, or one out of its range.

    Example:
        config = build_config({"preset": "bert_tiny", "dropout": 0.0}, vocabulary_size=8000)
    """
    section = dict(section)
    name, family_name = section.pop("preset", None), section.pop("family", None)
    if name is not None and family_name is not None:
        raise ConfigError(
            f"model.preset is {brief(name)} and model.family is {brief(family_name)}; "
            "keep the preset, which has its family, or the family with all sizes"
        )
    if name is None and family_name is None:
        raise ConfigError("'model' has neither a preset nor a family; set model.preset, e.g. model.preset=bert_base")
    base = None if name is None else _preset(name, "'model.preset' is").config
    cls = FAMILIES[family_name].config if base is None else type(base)
    if vocabulary_size is not None:
        section.setdefault("vocabulary_size", vocabulary_size)
    if padding_id is not None and "padding_id" in {field.name for field in dataclasses.fields(cls)}:
        section.setdefault("padding_id", padding_id)
    return build(cls, section, "model", base)


def config_for_token_table(section: Settings, vocabulary_size: int, width: int, padding_id: int | None = None) -> Any:
    """The configuration of a new encoder above a token table: `build_config` with `embedding_size` from the table.

    Args:
        section: as for `build_config`, without a vocabulary size. A family without the setting `embedding_size` has a
            table of its `hidden_size`, which must then be that of the table.
        vocabulary_size: rows of the table.
        width: of the table.
        padding_id: as for `build_config`.

    Raises:
        ConfigError: as `build_config`.

    Example:
        config_for_token_table({"family": "bilstm", "hidden_size": 256}, vocabulary_size=8000, width=100).embedding_size  # 100
    """
    names = {field.name for field in dataclasses.fields(config_class(section))}
    embedding = {"embedding_size": width} if "embedding_size" in names else {}
    return build_config(embedding | dict(section), vocabulary_size, padding_id)


def config_class(section: Settings) -> Any:
    """The class of the configuration that a `model:` section describes."""
    if section.get("preset") is not None:
        return type(_preset(section["preset"], "'model.preset' is").config)
    return FAMILIES[section["family"]].config


def describe(config: Config) -> Settings:
    """The `model:` section that builds this configuration again, every value written out."""
    return {"family": family_of(config).name} | to_dict(config)


def build_backbone(config: Config, **arguments: Options) -> Model:
    """The backbone of a configuration; `arguments` are those of its class, such as `pooler`.

    Example:
        encoder = build_backbone(preset("bert_tiny"), pooler=False)
    """
    return family_of(config).model_class()(config, **arguments)


def encoder_alone(config: Config) -> Any:
    """The configuration of an encoder-decoder's encoder without the decoder; any other configuration itself.

    Example:
        encoder_alone(preset("t5_small"))  # a T5EncoderConfig
    """
    alone = family_of(config).encoder_alone
    return config if alone is None else alone(config)


def arguments_of(config: Config) -> list[str]:
    """The names of what `build_backbone` takes for this configuration, such as `output_hidden_states`; sorted."""
    return arguments_of_class(family_of(config).model_class())


def arguments_of_class(model_class: type) -> list[str]:
    """The names of what the constructor of a backbone's class takes beside the configuration; sorted."""
    classes = [c for c in model_class.__mro__ if c.__module__.partition(".")[0] != "keras"]
    parameters = {
        name for c in classes if "__init__" in vars(c) for name in inspect.signature(vars(c)["__init__"]).parameters
    }
    not_arguments = {"self", "config", "inputs", "outputs", "args", "kwargs", "options", "arguments"}
    return sorted(parameters - not_arguments)


def task_head(config: Config, kind: str, variant: str | None = None) -> TaskHead:
    """The head for a task on a model of this configuration.

    Args:
        config: of the model.
        kind: "classification" (of texts, also for regression), "tagging", or "choices" (multiple choice), for which
            families have the head of classification with one output.
        variant: None for the family's own, "bert" for BERT's, "hugging_face" for that of Hugging Face's class, "mean"
            for the output layer alone on the mean of all tokens.

    Raises:
        ConfigError: Hugging Face has no such class for the family; the mean of a task on tokens.

    Example:
        task_head(preset("distilbert_base"), "classification").activation  # 'relu'
    """
    record = find_family(config)
    if variant == "mean":
        if kind == "tagging":
            raise ConfigError(
                "task.head.name=mean is for tasks on texts, and tagging predicts each word; remove task.head"
            )
        return TaskHead("mean")
    if variant == "hugging_face":
        published = record and record.maps("hf") and record.maps("hf").heads.get(kind)
        if not published:
            name = record.name if record else type(config).__name__
            raise ConfigError(
                f"task.head.name=hugging_face: Hugging Face has no class for {kind} with '{name}'; remove task.head"
            )
        if published.head is not None:
            return published.head
    family_heads = record.heads(config) if record is not None and record.heads and variant != "bert" else {}
    return family_heads.get("classification" if kind == "choices" else kind, BERT_HEADS[kind])


def _preset(name, problem):
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f"{problem} {brief(name)}{nearest(str(name)[:100], PRESETS)}")
    return PRESETS[name]
