"""The base of the layers of this library."""

from typing import Any

import keras


class Layer(keras.layers.Layer):
    """A Keras layer whose constructor takes numbers, strings and None, and so needs no `get_config`.

    Keras keeps such arguments by itself, but not a dtype policy among them, which every layer of a model is given: here it
    is kept by its name.

    Example:
        class Scale(Layer):
            def __init__(self, factor, **kwargs):
                super().__init__(**kwargs)
                self.factor = factor

        Scale(2.0, dtype=keras.DTypePolicy("mixed_bfloat16")).get_config()["dtype"]  # 'mixed_bfloat16'
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "Layer":
        # Only what Keras keeps is changed here: the constructor still gets the policy itself.
        if isinstance(policy := kwargs.get("dtype"), keras.DTypePolicy):
            kwargs["dtype"] = policy.name
        return super().__new__(cls, *args, **kwargs)
