"""What all encoders share: inputs and outputs by name, and a configuration they are built from."""

import keras
import numpy as np

from bert_tf.config import build, nearest, to_dict
from bert_tf.errors import DataError
from bert_tf.layers import MaskedLMHead
from bert_tf.layers.embeddings import check_length
from bert_tf.layers.gather import gather_positions

#: The features an encoder reads; all but the first may be left out.
ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask", "sequence_ids", "position_ids")


class Encoder(keras.Model):
    """The base of a family's encoder: a functional model from a dict to a dict of tensors.

    A family's class sets `config_class`, builds its layers, calls them on `encoder_inputs()`, and
    hands inputs and outputs to this constructor.

    Args:
        config: an instance of `config_class`.
        inputs, outputs: dicts of symbolic tensors; the inputs may be more than `encoder_inputs()`.
        dtype: the dtype policy of the layers.
        name: of the model.
        arguments: the other arguments of the family's constructor, such as `pooler`; each becomes
            an attribute and part of the serialized configuration.

    Raises:
        ConfigError: when called: sequences above `max_positions` while there are no
            `position_ids`.
        DataError: when called: `token_ids` are missing or not [B, S], or there is an input of another name.
    """

    config_class = None
    #: Whether sequences longer than `config.max_positions` cannot be embedded.
    has_position_table = True

    def __init__(self, config, inputs, outputs, dtype, name, trainable=True, **arguments):
        super().__init__(inputs=inputs, outputs=outputs, name=name, trainable=trainable)
        self.dtype_policy = dtype
        self.config = config
        self._input_names = tuple(inputs)
        self._arguments = arguments
        for key, value in arguments.items():
            setattr(self, key, value)

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(self.complete(inputs), *args, **kwargs)

    def complete(self, inputs):
        """The inputs as tensors, each by name, with None for the absent ones: as a functional model wants them."""
        if not isinstance(inputs, dict) or inputs.get("token_ids") is None:
            given = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise DataError(f"an encoder takes a dict of tensors with at least 'token_ids', got {given}")
        for key in inputs:
            if key not in self._input_names:
                raise DataError(f"an encoder has no input '{key}'{nearest(key, self._input_names)}")
        # Keras refuses dicts that hold arrays beside tensors.
        inputs = {key: as_tensor(value) for key, value in inputs.items()}
        if len(inputs["token_ids"].shape) != 2:
            raise DataError(f"'token_ids' must have two dimensions, [batch, sequence], got {inputs['token_ids'].shape}")
        if self.has_position_table and inputs.get("position_ids") is None:
            check_length(inputs["token_ids"].shape[1], self.config.max_positions)
        return {key: inputs.get(key) for key in self._input_names}

    def compute_output_spec(self, inputs, training=None, mask=None):
        # In a larger functional model: stock Keras reads the shape of absent inputs too.
        tokens = inputs["token_ids"]
        return super().compute_output_spec({k: tokens if v is None else v for k, v in inputs.items()})

    def backbones(self):
        """The models inside by the prefix of their variables' paths, as `PretrainingModel.backbones`: itself."""
        return {"": self}

    def outputs_at(self, inputs, positions, training=False):
        """What heads read that ask about some positions only.

        Args:
            inputs: dict of the encoder's inputs.
            positions: int32 [B, P], each in 0..S-1.
            training: whether dropout is active.

        Returns:
            dict: `sequence_output` float [B, P, H], the vectors at these positions; `pooled_output`
            [B, H] where the encoder has a pooler.
        """
        outputs = self(inputs, training=training)
        here = {"sequence_output": gather_positions(outputs["sequence_output"], as_tensor(positions))}
        return here | {name: outputs[name] for name in ("pooled_output",) if name in outputs}

    @property
    def embedding_table(self):
        """The token table, a variable [V, E]: what an output layer is tied to."""
        return self.get_layer("embeddings").token_table

    def make_masked_lm_head(self, name="masked_lm_head", **settings):
        """A new `MaskedLMHead` over this encoder's vocabulary, built.

        It has the encoder's activation and epsilon; families with another head give `settings`.
        """
        config = self.config
        vocabulary_size, embedding_size = self.embedding_table.shape
        defaults = {
            "activation": config.activation,
            "layer_norm_epsilon": config.layer_norm_epsilon,
            "initializer_range": config.initializer_range,
        }
        head = MaskedLMHead(
            vocabulary_size=vocabulary_size,
            embedding_size=embedding_size,
            dtype=self.dtype_policy,
            name=name,
            **(defaults | settings),
        )
        head.build((None, None, config.hidden_size))
        return head

    def get_config(self):
        return {
            "config": to_dict(self.config),
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "name": self.name,
            "trainable": self.trainable,
            **self._arguments,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**{**config, "config": build(cls.config_class, config["config"])})


def as_tensor(value):
    """A list or array as a tensor, whole numbers as int32; all else as it is."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return value
    value = np.asarray(value)
    return keras.ops.convert_to_tensor(value, dtype="int32" if value.dtype.kind in "iu" else None)


def encoder_inputs():
    """The symbolic inputs of an encoder: [B, S] each, all but `token_ids` optional."""
    return {
        name: keras.Input(
            shape=(None,),
            dtype="bool" if name == "padding_mask" else "int32",
            optional=name != "token_ids",
            name=name,
        )
        for name in ENCODER_INPUTS
    }
