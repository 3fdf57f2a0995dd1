"""Warm-up requests: TF Serving runs them while it loads a version.

`assets.extra/tf_serving_warmup_requests` is a TFRecord file of PredictionLog messages (tensorflow/serving,
apis/prediction_log.proto, predict.proto, model.proto). They are encoded here, because tensorflow-serving-api would
install a second TensorFlow.
"""

from pathlib import Path

import tensorflow as tf

FILE = Path("assets.extra") / "tf_serving_warmup_requests"


def write_warmup_requests(folder, signature_name, requests):
    """Writes one request of a signature for each dict of inputs (eager tensors) into the SavedModel `folder`."""
    path = Path(folder) / FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for inputs in requests:
            writer.write(_prediction_log(signature_name, inputs))


def _prediction_log(signature_name, inputs):
    model_spec = _field(3, signature_name.encode())
    request = _field(1, model_spec)
    for name, tensor in inputs.items():
        proto = tf.make_tensor_proto(tensor.numpy()).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, proto))  # an entry of map<string, TensorProto>
    predict_log = _field(1, request)
    return _field(6, predict_log)


def _field(number, content):
    """A length-delimited field of a protocol buffer message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded + bytes([value]))
