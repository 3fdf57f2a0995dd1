"""What answers in the place of TensorFlow Serving: its REST and gRPC protocols in front of a SavedModel in this process."""

import concurrent.futures
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


@contextlib.contextmanager
def serving(folder, name):
    """Serves the newest version in `folder` as the model `name`: yields (REST address, gRPC address)."""

    def answer(inputs):
        version = max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        return tf.saved_model.load(str(version)).signatures["serving_default"](**inputs)

    class Rest(BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.path == f"/v1/models/{name}:predict", self.path
            instances = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
            inputs = {key: tf.constant([one[key] for one in instances]) for key in instances[0]}
            columns = {key: _plain(value.numpy()) for key, value in answer(inputs).items()}
            rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
            content = json.dumps({"predictions": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    class Grpc(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            assert (request.model_spec.name, request.model_spec.signature_name) == (name, "serving_default")
            found = answer({key: tf.constant(tf.make_ndarray(value)) for key, value in request.inputs.items()})
            outputs = {key: tf.make_tensor_proto(value.numpy()) for key, value in found.items()}
            return predict_pb2.PredictResponse(outputs=outputs)

    rest = ThreadingHTTPServer(("127.0.0.1", 0), Rest)
    threading.Thread(target=rest.serve_forever, daemon=True).start()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Grpc(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{rest.server_port}", f"127.0.0.1:{port}"
    finally:
        server.stop(None)
        rest.shutdown()


def _plain(array):
    """As JSON has it: bytes as text."""
    if array.dtype == object:
        return [_plain(one) if hasattr(one, "dtype") else one.decode() for one in array]
    return array.tolist()
