"""LiteRT files (formerly TensorFlow Lite), for phones and other small machines.

The converter is TensorFlow's, the interpreter that of ai-edge-litert. A tokenizer's operations have no counterpart in
LiteRT: a client tokenizes itself, with the files in `tokenizer/`.
"""

import tensorflow as tf

from bert_tf.compression.fixed_length import FileFormat


def write_litert(model, specs, path, quantize):
    """Writes a model as a LiteRT file with one signature, `serving_default`.

    Args:
        model: returns a dict of tensors for a dict of features.
        specs: of `specs_of`: static shapes. With lengths that vary the converter fails at the attention mask.
        path: of the file.
        quantize: None; "float16", weights in float16; "dynamic_int8", weights in int8 per channel, and products of int8
            with activations that are quantized at each call.
    """
    names = list(specs)

    def call(*values):
        return model(dict(zip(names, values)), training=False)

    function = tf.function(call, autograph=False).get_concrete_function(*specs.values())
    # Raw variables: from a module that tracks a Keras 3 model the converter makes a file that answers NaN.
    module = tf.Module()
    module.weights = [v.value for v in model.variables]
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], module)
    if quantize is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    path.write_bytes(converter.convert())


def open_litert(path):
    """A function from features [1, S] to the outputs of a LiteRT file, on one thread."""
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=str(path), num_threads=1).get_signature_runner()
    return lambda features: runner(**features)


LITERT = FileFormat(
    file="model.tflite",
    quantize=("float16", "dynamic_int8"),
    packages={"ai_edge_litert": "ai-edge-litert"},
    write=write_litert,
    open=open_litert,
    rows=1,
)
