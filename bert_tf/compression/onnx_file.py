"""ONNX files, by Keras's own export (which calls tf2onnx), and onnxruntime to read them."""

import functools

import keras
import numpy as np
import tensorflow as tf

from bert_tf.compression.fixed_length import FileFormat


class OutputsOf(keras.Model):
    """A model whose call takes the features alone, as Keras's export needs it."""

    def __init__(self, model):
        super().__init__()
        self.model, self.built = model, True

    def call(self, features):
        return self.model(features, training=False)


def write_onnx(model, specs, path, quantize):
    """Writes a model as an ONNX file.

    Args:
        model: returns a dict of tensors for a dict of features.
        specs: of `specs_of`: any number of rows of one length. With lengths that vary tf2onnx writes a file that fails.
        path: of the file.
        quantize: None; "dynamic_int8": `quantize_onnx`.
    """
    _teach_erfc()
    # A tokenizer's lookup table is made outside of a graph. TensorFlow notes it as None, of which the conversion warns.
    tables = tf.compat.v1.get_collection_ref(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS)
    tables[:] = [table for table in tables if table is not None]
    inputs = {name: keras.InputSpec(shape=spec.shape, dtype=spec.dtype.name, name=name) for name, spec in specs.items()}
    float_path = path if quantize is None else path.with_suffix(".float32.onnx")
    OutputsOf(model).export(str(float_path), format="onnx", input_signature=[inputs], verbose=False)
    if quantize is not None:
        quantize_onnx(float_path, path)
        float_path.unlink()


def quantize_onnx(float_path, path):
    """Writes an ONNX file again with weights in int8 per channel, by onnxruntime's `quantize_dynamic`.

    Its products are those of int8 with activations that are quantized at each call.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # 7 bits: on CPUs without VNNI instructions sums of two products of 8 bits overflow.
    quantize_dynamic(float_path, path, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)


@functools.cache
def _teach_erfc():
    """Adds the operation of the exact GELU to tf2onnx, which has erf alone: erfc(x) = 1 - erf(x)."""
    from tf2onnx.handler import tf_op
    from tf2onnx.utils import make_name

    @tf_op("Erfc")
    class Erfc:
        @classmethod
        def version_9(cls, graph, node, **options):
            inputs, outputs, name = list(node.input), list(node.output), node.name
            about = {"shapes": [graph.get_shape(outputs[0])], "dtypes": [graph.get_dtype(outputs[0])]}
            graph.remove_node(name)
            one = graph.make_const(make_name("one"), np.ones((), np.float32))
            erf = graph.make_node("Erf", inputs, **about)
            graph.make_node("Sub", [one.output[0], erf.output[0]], name=name, outputs=outputs, **about)


def open_onnx(path):
    """A function from features [B, S] to the outputs of an ONNX file, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda features: dict(zip(names, session.run(names, features)))


ONNX = FileFormat(
    file="model.onnx",
    quantize=("dynamic_int8",),
    packages={"tf2onnx": "tf2onnx", "onnxruntime": "onnxruntime"},
    write=write_onnx,
    open=open_onnx,
    rows=None,
)
