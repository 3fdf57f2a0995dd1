"""The weights of a SavedModel in float16 or int8, which are expanded to float32 once, when the model is loaded.

The version is smaller on disk; its arithmetic, its latency and, after loading, its memory are those of float32. Matrix
products of int8 in TensorFlow take twice the time of those in float32 on a CPU, so that none is used.
"""

import uuid

import keras
import tensorflow as tf

from bert_tf.export.storage import Stored

#: Smaller weights, such as biases and the scales of normalizations, stay in float32.
SMALLEST = 1024


def store_float16(value, axis):
    """The parts of which a float32 tensor is kept, and the function that expands them."""
    largest = tf.float16.max  # beyond it float16 is infinite
    return [tf.cast(tf.clip_by_value(value, -largest, largest), tf.float16)], lambda half: tf.cast(half, tf.float32)


def store_int8(value, axis):
    """As `store_float16`: symmetric int8 with one scale for each channel, by Keras's `abs_max_quantize`."""
    whole, scale = keras.quantizers.abs_max_quantize(value, axis=axis)
    return [whole, scale], lambda whole, scale: tf.cast(whole, tf.float32) / scale


STORES = {"float16": store_float16, "dynamic_int8": store_int8}


def store_weights(model, quantize):
    """How the matrices of a model are stored.

    Args:
        model: a built Keras model.
        quantize: "float16", or "dynamic_int8": with one scale for each column of a kernel (an output), and for each row
            of a table (a token). Integers of 127 levels on each side of 0; no scale depends on data.

    Returns:
        A list of `Stored`, for `ServingModule.storage`.

    Example:
        module.storage = functools.partial(store_weights, quantize="float16")
    """
    matrices = [v for v in model.variables if v.dtype == "float32" and len(v.shape) >= 2]
    return [_store(v, STORES[quantize]) for v in matrices if tf.size(v.value) >= SMALLEST]


def _store(v, store):
    kernel = v.path.endswith("kernel")
    parts, expand = store(tf.convert_to_tensor(v.value), tuple(range(len(v.shape) - 1)) if kernel else -1)
    expanded = ExpandedWeight([tf.Variable(part, trainable=False) for part in parts], expand)
    return Stored(v, expanded.variable, [expanded, *expanded.parts])


class ExpandedWeight(tf.saved_model.experimental.TrackableResource):
    """A float32 variable that a SavedModel computes from smaller ones when it is loaded, and does not save.

    Servers run `_create_resource` and `_initialize` after they have read the variables, as for lookup tables.

    Args:
        parts: tf.Variables, which the SavedModel must save as well.
        expand: function from their values to the float32 tensor.

    Attributes:
        variable: the tf.Variable to read.
    """

    def __init__(self, parts, expand):
        super().__init__()
        self.parts, self.expand = parts, expand
        self.variable = tf.Variable(expand(*parts), trainable=False)
        # Two versions in one process must not share a variable.
        self._name = f"expanded_{uuid.uuid4()}"

    @property
    def resource_handle(self):
        return self.variable.handle

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=self.variable.shape, shared_name=self._name)

    def _initialize(self):
        value = self.expand(*(tf.convert_to_tensor(part) for part in self.parts))
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=value)
