"""Addresses such as s3://bucket/run, by fsspec: file systems, time-outs, one kind of error.

fsspec reads its own settings (endpoint, project, credentials, ...) from `~/.config/fsspec/*.json` and from environment
variables; those of a driver apply too, such as AWS_PROFILE or GOOGLE_APPLICATION_CREDENTIALS.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import re
from collections.abc import Iterator
from typing import Any

from bert_tf.errors import DataError, UserError
from bert_tf.types import StrPath

#: How long a server may send nothing, in seconds, before a request fails. Drivers repeat a request a few times.
TIMEOUT = 30.0
#: What the drivers read credentials from. The scheme is the extra of setup.cfg that installs a driver, too.
CREDENTIALS = {
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`",
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `aws configure`",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or `az login`",
    "hf": "HF_TOKEN, or `hf auth login`",
}

_ADDRESS = re.compile(r"(?!file://)[a-z][a-z0-9+.-]+://.*", re.DOTALL)
#: Packages whose exceptions are errors of an address, beside those of the operating system.
_PACKAGES = (
    "adlfs aiobotocore aiohttp azure botocore fsspec gcsfs google httpx httpx2 huggingface_hub requests s3fs".split()
)

_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def is_address(path: Any) -> bool:
    """Whether a path is an address such as s3://bucket/run. One of file:// is a path of this machine.

    Example:
        is_address("s3://bucket/run")  # True
    """
    return bool(_ADDRESS.fullmatch(str(path)))


def without_scheme(path: StrPath) -> StrPath:
    """A path of this machine without file://; other paths and addresses as they are."""
    return str(path).removeprefix("file://") if str(path).startswith("file://") else path


def open_file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it; it remembers no listings.

    Raises:
        DataError: an unknown scheme, a driver that is not installed, or an address with an empty part or "..".
    """
    import fsspec

    scheme, _, rest = address.partition("://")
    if not address.isprintable() or any(part in ("", ".", "..") for part in rest.removeprefix("/").split("/")):
        raise DataError(f"{address!a} has an empty part, '.', '..' or a control character in it; write it without")
    try:
        fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise DataError(f"{address}: there is no file system {scheme}://; known: {', '.join(CREDENTIALS)}") from None
    except ImportError as error:
        remedy = f"pip install 'bert_tf[{scheme}]'" if scheme in CREDENTIALS else str(error)
        raise DataError(f"{address}: the driver of {scheme}:// is not installed; {remedy}") from None
    with explain_address(address):
        configured = fsspec.config.conf.get(scheme, {})
        limits = {name: value for name, value in _time_limits(scheme).items() if name not in configured}
        system, path = fsspec.url_to_fs(address, **limits)
        system.invalidate_cache()
    return system, path


def _time_limits(scheme: str) -> dict[str, Any]:
    """The options of a driver that bound the wait for a server."""
    if scheme == "s3":
        seconds = {"connect_timeout": TIMEOUT, "read_timeout": TIMEOUT}
        return {"config_kwargs": seconds | {"retries": {"max_attempts": 0}}}
    if scheme == "gs":
        import aiohttp

        return {"session_kwargs": {"timeout": aiohttp.ClientTimeout(sock_connect=TIMEOUT, sock_read=TIMEOUT)}}
    return {"connection_timeout": TIMEOUT, "read_timeout": TIMEOUT} if scheme == "az" else {}


@contextlib.contextmanager
def explain_address(address: Any, error_class: type[UserError] = DataError) -> Iterator[None]:
    """Turns an error of a driver or of the network into one sentence: the address, the reason, the remedy."""
    try:
        yield
    except Exception as error:
        explained = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _PACKAGES
        if not explained or isinstance(error, gzip.BadGzipFile) or getattr(error, "errno", None) in _OF_THIS_MACHINE:
            raise
        raise error_class(f"{address}: {_reason(str(address), error)}") from None


def _reason(address, error):
    name, text = type(error).__name__, " ".join(str(error).split())[:300]
    if isinstance(error, FileNotFoundError):
        return "there is nothing; check the address, and that the credentials may read it"
    if isinstance(error, PermissionError) or "Credential" in name or str(getattr(error, "code", "")) in ("401", "403"):
        credentials = CREDENTIALS.get(address.partition("://")[0], "those of the driver")
        return f"access is refused ({text or name}); check the credentials: {credentials}"
    if isinstance(error, (TimeoutError, ConnectionError)) or re.search("Timeout|Connect", name):
        return f"the server does not answer ({text or name}); check connection and endpoint, and run the same command again"
    return text or name
