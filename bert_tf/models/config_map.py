"""Other libraries' configuration files, read and written strictly.

Every key is mapped to a setting, or known to have no effect, or has one value that is supported. Any other
key is an error: it may be the one that changes the numbers.
"""

import dataclasses
from typing import Any

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief
from bert_tf.types import Config, Function, Names, Settings

#: Stands for the default of a key that must be there.
REQUIRED = object()

#: Hugging Face's name of an activation -> this library's. The first of several is written.
HF_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "linear": "linear",
}
#: In google-research/bert, albert and zihangdai/xlnet "gelu" is the tanh approximation.
TF1_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"}

#: The sizes that KerasHub's models have by the same names: a part of `ConfigMap.fields`.
HUB_SIZES = {
    "vocabulary_size": ("vocabulary_size", REQUIRED),
    "num_layers": ("num_layers", REQUIRED),
    "num_heads": ("num_heads", REQUIRED),
    "hidden_dim": ("hidden_size", REQUIRED),
    "intermediate_dim": ("intermediate_size", REQUIRED),
}
#: Keras's and KerasHub's names of activations.
HUB_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_approximate": "gelu_tanh"} | {
    name: name for name in ("relu", "silu", "tanh", "linear")
}

# Keys of any Hugging Face configuration that change nothing in an encoder: names, labels of task
# heads, what is returned, and the defaults of text generation.
_HF_IGNORED = {
    "_attn_implementation_autoset", "_name_or_path", "_num_labels", "architectures", "attn_implementation",
    "bad_words_ids", "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward", "classifier_dropout",
    "cls_token_id", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype", "early_stopping",
    "encoder_no_repeat_ngram_size", "eos_token_id", "eos_token_ids", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "id2label",
    "label2id", "language", "length_penalty", "max_length", "min_length", "model_type", "name",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels", "num_return_sequences",
    "output_attentions", "output_hidden_states", "output_past", "output_scores", "pad_token_id", "prefix",
    "problem_type", "remove_invalid_values", "repetition_penalty", "return_dict", "return_dict_in_generate",
    "sep_token_id", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
    "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript", "transformers_version", "typical_p",
    "use_bfloat16", "use_cache",
}  # fmt: skip
#: What the Hugging Face configuration of an encoder says where it says it: `ConfigMap.checked` of encoders.
HF_ENCODER: Settings = {
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "pruned_heads": ({}, None),
    "tie_encoder_decoder": (False,),
}
#: The output layer of the language model is the token table: a part of `ConfigMap.fixed`.
HF_TIED = {"tie_word_embeddings": (True,)}


@dataclasses.dataclass(frozen=True)
class ConfigMap:
    """How one family's published configurations name the settings.

    Args:
        fields: their key -> (our field, the value where the key is absent, or `REQUIRED`).
        activations: their name of an activation -> this library's.
        fixed: their key -> the values that mean what we compute; absent means the first, which is
            also the one written.
        checked: as `fixed`, but never written.
        ignored: their keys that have no effect on the numbers.
        assumed: our field -> the value that their code has without a key for it.
        derived: None, or a pair of functions for what is not one key for one field: from their
            mapping to a dict of our fields, and from our configuration to a dict of their keys.
            The keys are to be in `ignored`.
        model_type: Hugging Face's name of the family; "" in other formats.
        other_model_types: its other names of the same model, which are read and not written.
        architectures: the parts of a model beside the encoder (the first words of the variables'
            paths) -> the class that has them; the first whose parts are all there is written.
        other_architectures: further classes of the same model, which are read and not written.
        file: the name of the configuration file.
        token_ids: their key -> the tokenizer's attribute; written where there is a tokenizer.
        head_activations: part of a model -> our name of the activation that their code has there, whatever the
            configuration says.
        head_epsilon: the epsilon that their masked LM head has, whatever the configuration says; None for the encoder's.

    Example:
        config_map = ConfigMap(fields={"dim": ("hidden_size", 512)}, fixed={"causal": (False,)})
        config_map.read({"dim": 768, "causal": False}, "config.json")  # {"hidden_size": 768}
    """

    fields: dict[Any, Any]
    activations: dict[str, str] = dataclasses.field(default_factory=lambda: HF_ACTIVATIONS)
    fixed: dict[Any, Any] = dataclasses.field(default_factory=dict)
    checked: dict[Any, Any] = dataclasses.field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    assumed: dict[Any, Any] = dataclasses.field(default_factory=dict)
    derived: tuple[Function, Function] | None = None
    model_type: str = ""
    other_model_types: tuple[str, ...] = ()
    architectures: dict[Any, Any] = dataclasses.field(default_factory=dict)
    other_architectures: tuple[str, ...] = ()
    file: str = "config.json"
    token_ids: dict[Any, Any] = dataclasses.field(default_factory=lambda: {"pad_token_id": "pad_id"})
    head_activations: dict[Any, Any] = dataclasses.field(default_factory=dict)
    head_epsilon: float | None = None

    def read(self, keys: Settings, where: str) -> Settings:
        """Our fields, a dict, from their configuration.

        Args:
            keys: dict, as the file holds it.
            where: the file, for messages.

        Raises:
            ConfigError: keys that are not understood, or values that are not supported; all of
                them are listed.
        """
        fixed = self.checked | self.fixed
        ignored = {*self.ignored, *(_HF_IGNORED if self.model_type else ())}
        settings, problems = dict(self.assumed), []
        for key, (field, default) in self.fields.items():
            value = keys.get(key, default)
            if value is REQUIRED:
                problems.append(f"'{key}' is missing")
                continue
            if field == "activation":
                if not isinstance(value, str) or value not in self.activations:
                    problems.append(f"{key} is {brief(value)}{nearest(str(value)[:100], self.activations)}")
                    continue
                value = self.activations[value]
            settings[field] = value
        for key, value in keys.items():
            if key in fixed:
                if value not in fixed[key]:
                    problems.append(f"{key} is {brief(value)}; only {fixed[key][0]!r} is supported")
            elif key not in self.fields and key not in ignored:
                problems.append(f"{brief(key)} ({brief(value)}) is not understood")
        if problems:
            raise ConfigError(f"{where} cannot be used:\n  " + "\n  ".join(sorted(problems)))
        try:
            self.check_activation(settings.get("activation"), self._parts(keys))
            return settings | self.derived[0](keys) if self.derived else settings
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    def write(self, config: Config) -> Settings:
        """Their configuration, a dict, of a configuration.

        Raises:
            ConfigError: a value that their code cannot have.
        """
        keys = {key: values[0] for key, values in self.fixed.items()}
        for field, value in self.assumed.items():
            if getattr(config, field) != value:
                raise ConfigError(
                    f"{self.file} cannot say {field}={getattr(config, field)!r}: the code it is for has {value!r}"
                )
        for key, (field, _) in self.fields.items():
            value = getattr(config, field)
            if field == "activation":
                names = [name for name, activation in self.activations.items() if activation == value]
                if not names:
                    raise ConfigError(f"{self.file} has no name for the activation '{value}'")
                value = names[0]
            keys[key] = value
        return keys | self.derived[1](config) if self.derived else keys

    def check_activation(self, activation: str | None, parts: Names) -> None:
        """Refuses our activation of a model with these parts beside the encoder, where their code has another in one.

        Raises:
            ConfigError: names the key and the part.
        """
        key = next((key for key, (field, _) in self.fields.items() if field == "activation"), None)
        for part, fixed in self.head_activations.items():
            if part in parts and activation != fixed:
                raise ConfigError(
                    f"{key} is '{activation}', but {self.architecture((part,))} has '{fixed}' in its {part} whatever {key} "
                    "says, and here both have one activation"
                )

    def _parts(self, keys):
        names = keys.get("architectures")
        names = names if isinstance(names, list) else []
        return next((parts for parts, name in self.architectures.items() if name in names), ())

    def architecture(self, parts: Names) -> str:
        """The name of their class for a model with these parts beside the encoder."""
        return next(name for needed, name in self.architectures.items() if set(needed) <= set(parts))


def number(keys: Settings, key: str, default: Any, allowed: Any = int) -> Any:
    """`keys[key]` (or the default), for the functions in `ConfigMap.derived`.

    Raises:
        ConfigError: the value is not an int (with `allowed`: not a float), or has more than 32 bits.
    """
    value = keys.get(key, default)
    if value is default:
        return value
    if not isinstance(value, allowed) or isinstance(value, bool) or not abs(value) < 2**31:
        raise ConfigError(f"{key} must be {'an integer' if allowed is int else 'a number'}, but is {brief(value)}")
    return value
