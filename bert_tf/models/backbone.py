"""The base of every model: named inputs and outputs, and the configuration that it is built from."""

from typing import Any

import keras
import numpy as np

from bert_tf.backend import SeededByName
from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.layers.embeddings import check_length
from bert_tf.models.families import arguments_of_class, find_family
from bert_tf.types import Config, Model, Names, Options, Policy, Settings, StrPath, Tensor, Tensors


class Backbone(keras.Model, metaclass=SeededByName):
    """A functional model from a dict of tensors to a dict of tensors, built from a configuration.

    A class sets `config_class`, makes its layers, calls them on symbolic inputs, and hands inputs and
    outputs to this constructor. The symbolic inputs declare what the model reads: a name, a shape, a dtype, and
    whether it may be left out (`optional=True`).

    Args:
        config: an instance of `config_class`.
        inputs: dict from name to `keras.Input` of the same name.
        outputs: dict from name to symbolic tensor, or list of them.
        dtype: the dtype policy of the layers.
        name: of the model; None for that of its family.
        trainable: see `keras.Model`.
        arguments: the other arguments of the class's constructor, such as `pooler`; each becomes
            an attribute and part of the serialized configuration.

    Raises:
        ConfigError: an argument that no constructor of the class has.
        DataError: when called: an input is missing, has an unknown name, is not a tensor, or has another number of dimensions
            or another length than the tokens.

    Example:
        class WordVectors(Backbone):
            config_class = ModelConfig

            def __init__(self, config, dtype=None, name=None, **kwargs):
                dtype = policy(dtype)
                inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
                table = keras.layers.Embedding(config.vocabulary_size, config.hidden_size, dtype=dtype)
                outputs = {"sequence_output": table(inputs["token_ids"])}
                super().__init__(config, inputs, outputs, dtype=dtype, name=name, **kwargs)

        model = WordVectors(ModelConfig(vocabulary_size=100, hidden_size=16))
        model({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class: Any = None
    #: "encoder" or "decoder": what objectives ask for. The same as in the family's record.
    structure: Any = None

    def __init__(
        self,
        config: Config,
        inputs: Tensors,
        outputs: Tensors,
        dtype: Policy,
        name: str | None = None,
        trainable: bool = True,
        **arguments: Options,
    ) -> None:
        for argument in arguments:
            if argument not in (known := arguments_of_class(type(self))):
                raise ConfigError(f"{type(self).__name__} has no argument '{argument}'{nearest(argument, known)}")
        family = find_family(config)
        name = name or (family.name if family else None)
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.trainable = trainable  # given to Keras's constructor, it would not reach the layers
        self.dtype_policy = dtype
        self.config = config
        # Shapes with None for the batch and other free axes.
        self._input_shapes = {key: tuple(tensor.shape) for key, tensor in inputs.items()}
        self._required = [key for key in inputs if not self.get_layer(key).optional]
        self._arguments = arguments
        for key, value in arguments.items():
            setattr(self, key, value)

    @property
    def prefix(self) -> bool:
        """Whether it is a decoder that was trained with a prefix, whose tokens see each other in both directions."""
        return getattr(self.config, "prefix", False)

    @property
    def longest(self) -> int | None:
        """The longest sequence that it takes without `position_ids`; None for no limit."""
        return None

    def select(self, features: Tensors) -> Tensors:
        """The features of a batch, a dict, that this model reads."""
        return {key: features[key] for key in self._input_shapes if key in features}

    def __call__(self, inputs: Any, *args: Options, **kwargs: Options) -> Any:
        return super().__call__(self.standardize_inputs(inputs), *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Tensor = None) -> Any:
        # `stateless_call`, and with it `predict` on JAX, comes here directly.
        return super().call(self.standardize_inputs(inputs), training=training, mask=mask)

    def standardize_inputs(self, inputs: Any) -> Tensors:
        """The inputs as tensors, each by name, with None for the absent ones: as a functional model wants them."""
        required = " and ".join(f"'{key}'" for key in self._required)
        if not isinstance(inputs, dict):
            got = type(inputs).__name__
            raise DataError(f"{self.name} takes a dict of tensors with at least {required}, got {got}")
        if any(inputs.get(key) is None for key in self._required):
            raise DataError(f"{self.name} takes a dict of tensors with at least {required}, got {sorted(inputs)}")
        for key in inputs:
            if key not in self._input_shapes:
                raise DataError(f"{self.name} has no input '{key}'{nearest(key, self._input_shapes)}")
        # Keras refuses dicts that hold arrays beside tensors.
        inputs = {key: _named_tensor(key, value) for key, value in inputs.items() if value is not None}
        for key, value in inputs.items():
            shape = self._input_shapes[key]
            if len(value.shape) != len(shape):
                raise DataError(f"'{key}' must have {len(shape)} dimensions, {shape}, got {tuple(value.shape)}")
        _check_lengths(inputs)
        if self.longest is not None and inputs.get("position_ids") is None:
            check_length(inputs["token_ids"].shape[1], self.longest)
        return {key: inputs.get(key) for key in self._input_shapes}

    def compute_output_spec(self, inputs: Any, training: bool | None = None, mask: Tensor = None) -> Any:
        # In a larger functional model: stock Keras reads the shape of absent inputs too.
        present = inputs[self._required[0]]
        return super().compute_output_spec({key: present if value is None else value for key, value in inputs.items()})

    def export(
        self, filepath: StrPath, format: str = "tf_saved_model", *, input_signature: Any = None, **kwargs: Options
    ) -> None:
        """Keras's `export`; by default the exported model takes what tells one text from another, and no more.

        That are token ids, padding mask and, where the model reads them, segment ids. Each input that a signature names
        must be given when the exported model is called.

        Raises:
            ConfigError: the model returns a list, such as `hidden_states`.

        Example:
            BertEncoder(BertConfig(100, 16, 2, 2, 32)).export("encoder", verbose=False)
            served = tf.saved_model.load("encoder").serve
            served({"token_ids": [[5, 6]], "segment_ids": [[0, 0]], "padding_mask": [[True, True]]})["pooled_output"]
        """
        lists = [name for name, value in self.output.items() if isinstance(value, list)]
        if lists:
            raise ConfigError(
                f"an exported model returns tensors, and {' and '.join(lists)} of {self.name} is a list of them; export a "
                "model that is made without it"
            )
        if input_signature is None:
            names = {*self._required, *(name for name in self.input if name.endswith("padding_mask"))}
            names |= {"segment_ids"} if self.config.reads_segments else set()
            inputs = {name: tensor for name, tensor in self.input.items() if name in names}
            input_signature = [
                {name: keras.InputSpec(x.dtype, x.shape, name=name) for name, x in inputs.items()}
            ]  # fmt: skip
        return super().export(filepath, format, input_signature=input_signature, **kwargs)

    def backbones(self) -> dict[str, Model]:
        """The models inside by the prefix of their variables' paths, as `PretrainingModel.backbones`: itself."""
        return {"": self}

    def get_config(self) -> Settings:
        return {
            "config": to_dict(self.config),
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "name": self.name,
            "trainable": self.trainable,
            **self._arguments,
        }

    @classmethod
    def from_config(cls, config: Settings, custom_objects: Options = None) -> Any:
        model = cls(**config | {"config": build(cls.config_class, config["config"]), "trainable": True})
        model.trainable = config.get("trainable", True)  # now that it has all its layers
        return model


def _named_tensor(key, value):
    try:
        tensor = as_tensor(value)
    except (ValueError, TypeError):  # of lists of several lengths, or of texts
        tensor = None
    if not hasattr(tensor, "shape") or tensor.dtype == "string":
        raise DataError(f"'{key}' must be numbers: a tensor, an array or lists of one length; pad the shorter texts")
    return tensor


#: Inputs with a value for each token; those of a decoder beside its encoder begin with "decoder_".
_OF_TOKENS = ("segment_ids", "padding_mask", "sequence_ids", "position_ids", "prefix_mask")


def _check_lengths(inputs):
    """Refuses a mask or ids of another length than the tokens, which TensorFlow would partly broadcast."""
    for key, value in inputs.items():
        side = "decoder_" if key.startswith("decoder_") else ""
        tokens = inputs.get(f"{side}token_ids")
        if key.removeprefix(side) not in _OF_TOKENS or tokens is None:
            continue
        (batch, length), (all_rows, all_tokens) = value.shape[:2], tokens.shape[:2]
        same_batch = None in (batch, all_rows) or batch in (1, all_rows)
        same_length = None in (length, all_tokens) or length == all_tokens
        if not (same_batch and same_length):
            raise DataError(
                f"'{key}' has the shape {tuple(value.shape)} and '{side}token_ids' {tuple(tokens.shape)}; give one "
                "value for each token"
            )


def policy(dtype: Policy) -> keras.DTypePolicy:
    """The dtype policy that a constructor's `dtype` names; None for the global one."""
    return keras.dtype_policies.get(dtype or keras.config.dtype_policy())


def symbolic_inputs(names: Names) -> Tensors:
    """The symbolic inputs of these names: [B, S] each, all but token ids optional."""
    return {
        name: keras.Input(
            shape=(None,),
            dtype="bool" if name.endswith("_mask") else "int32",
            optional=not name.endswith("token_ids"),
            name=name,
        )
        for name in names
    }


def as_tensor(value: Any) -> Tensor:
    """A list or array as a tensor, whole numbers as int32; all else as it is."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return value
    value = np.asarray(value)
    return keras.ops.convert_to_tensor(value, dtype="int32" if value.dtype.kind in "iu" else None)
