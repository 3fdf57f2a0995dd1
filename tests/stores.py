"""Object stores on the loopback address that speak the protocols of S3 and Google Cloud Storage."""

import contextlib
import functools
import http
import logging
import os
from unittest import mock


@functools.cache
def start(scheme):
    """Starts the store of a scheme, which runs until this process ends; the environment variables that lead to it."""
    for name in (
        "werkzeug",
        "gcp_storage_emulator",
    ):  # whose threads would log a line for each request into other tests
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return {"s3": _s3, "gs": _gs}[scheme]()


@contextlib.contextmanager
def serving(scheme):
    """Yields the address of a bucket: of s3:// or gs:// on a server, or of memory:// in this process."""
    if scheme != "memory":
        with mock.patch.dict(os.environ, start(scheme)):
            yield f"{scheme}://bucket"
    else:
        yield "memory://bucket"


def _s3():
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    where = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    with mock.patch.dict(os.environ, where):
        import boto3

        boto3.client("s3").create_bucket(Bucket="bucket")
    return where


def _gs():
    from gcp_storage_emulator.exceptions import NotFound
    from gcp_storage_emulator.handlers import objects

    def insert(request, response, storage, *args, original=objects.insert, **kwargs):
        """The emulator ignores the condition that an object must not exist yet, which Google's store keeps."""
        if request.query.get("ifGenerationMatch") == ["0"]:
            name = request.query.get("name", [None])[0] or request.data.get("meta", request.data)["name"]
            with contextlib.suppress(NotFound):
                storage.get_file_obj(request.params["bucket_name"], name)
                response.status = http.HTTPStatus.PRECONDITION_FAILED
                return None
        return original(request, response, storage, *args, **kwargs)

    objects.insert = insert
    from gcp_storage_emulator import server

    running = server.create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    running.start()
    running._api.is_running.wait(10)
    return {
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{running._api._httpd.server_address[1]}",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
    }
