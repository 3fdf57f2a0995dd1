"""Models and data of the Hugging Face Hub: `hf://owner/name` works wherever a local path does.

huggingface_hub fetches the files into its cache (HF_HOME), resumes interrupted downloads, shows the progress, logs in
(`hf auth login`, HF_TOKEN) and works offline from the cache (HF_HUB_OFFLINE=1). A hub that stalls ends in an error. Only
files of `MODEL` and `DATA` are fetched: weights, vocabularies, settings and text. Files that run code when they are opened
are never fetched. Other addresses, such as gs://, go to `bert_tf.files`.
"""

import contextlib
import functools
import glob
import re
import sys
import time
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError
from bert_tf.files import is_address, list_files, local_copy
from bert_tf.files.addresses import without_scheme
from bert_tf.types import StrPath

#: The files that tokenizers are read from.
TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json",
    "merges.txt", "encoder.json", "vocab.bpe", "*.model", "*.spm",
)  # fmt: skip
#: The files that models are read from.
MODEL = (
    "config.json", "model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", *TOKENIZER,
    "model*.weights.*", "task.json", "task.weights.h5", "metadata.json", "assets/tokenizer/*",
)  # fmt: skip
#: The endings of corpora as text.
CORPORA = (".txt", ".jsonl", ".ndjson")
#: The endings of corpora and labelled files.
_TEXT = (*CORPORA, ".json", ".tsv", ".csv")
DATA = (*_TEXT, *(f"{ending}.gz" for ending in _TEXT), ".parquet", ".conll", ".conllu", ".iob", ".bio")

#: For how many seconds the hub may send nothing, or fewer than `_LEAST` bytes, or may ask to wait.
PATIENCE = 60.0
_LEAST = 60_000

_PREFIX = "hf://"
_ADDRESS = re.compile(
    r"hf://(?P<type>(datasets|models)/)?(?P<repository>[^/@\s]+/[^/@\s]+)"
    r"(@(?P<revision>refs/(pr|convert)/[^/]+|[^/]+))?(/(?P<inside>.+?))?/?"
)


def local_model(path: StrPath) -> StrPath:
    """The folder of a model: `path`, or for hf:// and gs:// the fetched one.

    Args:
        path: a path, or `hf://owner/name`, `hf://owner/name@revision`, `hf://owner/name/folder`. A revision is a
            branch, a tag or the 40 digits of a commit; a commit never changes.

    Raises:
        DataError: the address has another form; there is no such model or revision, or it needs a login; there is no
            connection and the cache does not have it; it holds no safetensors.

    Example:
        local_model("runs/bert")  # 'runs/bert'
        local_model("hf://google-bert/bert-base-uncased@main")  # a folder in the cache
    """
    if not is_hub_address(path):
        return local_copy(path)
    folder = _fetch(str(path), "models", MODEL)
    if not any(Path(folder).glob("*.safetensors")) and not any(Path(folder).glob("model*.weights.*")):
        match = _ADDRESS.fullmatch(str(path))
        repository = match["repository"] if match else path
        raise DataError(
            f"{path} holds no model.safetensors, and pickles (pytorch_model.bin) are not fetched, because they can run "
            "code when they are opened; give a revision that has it, e.g. a conversion that somebody proposed "
            f"(hf://{repository}@refs/pr/1), or download the model where PyTorch is installed and convert it there"
        )
    return folder


def local_tokenizer(path: StrPath) -> StrPath:
    """As `local_model`, without the weights; `path` may also name one file, as `hf://owner/name/vocab.txt`."""
    return _fetch(str(path), "models", TOKENIZER) if is_hub_address(path) else local_copy(path)


def local_data(path: StrPath) -> StrPath:
    """A file, folder or glob of text: `path`, or for hf:// the fetched one. Other addresses stay: they are read as streams.

    Args:
        path: a path, or `hf://datasets/owner/name[@revision][/file, folder or glob]`.

    Raises:
        DataError: as `local_model`; also where it holds no file with an ending of `DATA`.
    """
    if not is_hub_address(path):
        return without_scheme(path)
    return _fetch(str(path), "datasets", tuple(f"*{ending}" for ending in DATA))


def local_file(path: StrPath) -> StrPath:
    """As `local_data` for one file; a glob must match one. A folder at an address, such as RACE's, is copied."""
    found = str(local_data(path))
    if is_address(found):
        files = list(list_files(found))
        if not glob.has_magic(found) and files != [found]:
            return local_copy(found)
    elif found == str(path):
        return path
    else:
        files = [found] if Path(found).is_file() else sorted(glob.glob(found))
    if len(files) != 1 or not (is_address(files[0]) or Path(files[0]).is_file()):
        names = ", ".join(sorted(Path(name).name for name in files)[:5])
        raise DataError(f"{path} must be one file, but is {names or 'none'}; name one of its files")
    return files[0]


def is_hub_address(path: StrPath) -> bool:
    """Whether a path begins with hf://."""
    return str(path).startswith(_PREFIX)


def push_folder(folder: StrPath, address: str, private: bool = True) -> str:
    """Uploads a folder as one commit of a model on the hub, which is made if there is none.

    Args:
        folder: its files replace those of the same names there; others stay.
        address: `hf://owner/name`, or with a branch `hf://owner/name@branch`.
        private: whether only its owners see it, if it is new.

    Returns:
        The address of its page.

    Raises:
        DataError: another address; or the hub does not answer, or does not let in.
    """
    from huggingface_hub import HfApi, constants, errors

    match = _ADDRESS.fullmatch(address)
    if match is None or match["type"] == "datasets/" or match["inside"]:
        raise DataError(f"{address} is not a model of the Hugging Face Hub; give hf://owner/name")
    repository = match["repository"]
    try:
        hub = HfApi()
        hub.create_repo(repository, private=private, exist_ok=True)
        hub.upload_folder(
            repo_id=repository, folder_path=str(folder), revision=match["revision"], commit_message="A model of bert_tf"
        )
    except errors.HFValidationError as error:
        raise DataError(f"{address} is not a Hugging Face Hub address: {_one_line(error)}") from None
    except (OSError, errors.HTTPError, RuntimeError, TypeError, ValueError, LookupError) as error:
        raise DataError(
            f"{address}: publishing it failed ({_one_line(error)}); what was there before is unchanged. It needs a token that "
            "may write: 'hf auth login', or HF_TOKEN"
        ) from None
    return f"{constants.ENDPOINT}/{repository}"


@functools.cache  # one look at the hub for each address in a process, so that all see the same files
def _fetch(address, repository_type, endings):
    """The local path of what an address names; `endings` are the patterns of the files that may be fetched."""
    match = _ADDRESS.fullmatch(address)
    if not match:
        example = "hf://datasets/owner/name/train.tsv" if repository_type == "datasets" else "hf://owner/name"
        raise DataError(f"{address} is not a Hugging Face Hub address; it must look like {example}, or with a "
                        "revision like hf://owner/name@main")  # fmt: skip
    if (match["type"] or "models/") != f"{repository_type}/":
        wanted = (
            "a file of a data set, hf://datasets/owner/name/..."
            if repository_type == "datasets"
            else "a model, hf://owner/name"
        )
        raise DataError(f"{address} cannot be used here: what is needed is {wanted}")
    inside = match["inside"]
    if inside is None:
        patterns = list(endings)
    elif any(Path(inside).match(ending) for ending in endings):
        patterns = [inside]
    else:
        patterns = [f"{inside}/{ending}" for ending in endings]
    folder = Path(_snapshot(address, match["repository"], repository_type, match["revision"], patterns))
    path = folder / inside if inside else folder
    if not (path.is_file() or any(folder.glob(inside) if inside and glob.has_magic(inside) else path.rglob("*"))):
        raise DataError(f"{address} holds none of the files that are read: {', '.join(endings)}")
    return str(path)


def _snapshot(address, repository, repository_type, revision, patterns):
    """The folder of a commit in the cache, with the files of these patterns."""
    from huggingface_hub import constants, errors, snapshot_download

    what = repository_type.removesuffix("s")
    page = f"{constants.ENDPOINT}/{'' if what == 'model' else 'datasets/'}{repository}"
    try:
        with _bounded(address, constants.ENDPOINT):
            return snapshot_download(repository, repo_type=what, revision=revision, allow_patterns=patterns)
    except errors.HFValidationError as error:
        raise DataError(f"{address} is not a Hugging Face Hub address: {_one_line(error)}") from None
    except errors.GatedRepoError:
        raise DataError(
            f"{address}: its owners let in only those who accept their conditions; accept them at {page}, then log in "
            "with 'hf auth login', or set HF_TOKEN"
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(
            f"{address}: there is no revision '{revision}'; its branches and commits are at {page}"
        ) from None
    except errors.RepositoryNotFoundError:
        raise DataError(
            f"{address}: there is no such {what} at {constants.ENDPOINT}, or it is private; check the name, and for a "
            "private one log in with 'hf auth login', or set HF_TOKEN"
        ) from None
    except errors.LocalEntryNotFoundError as error:
        why = (
            "HF_HUB_OFFLINE is set"
            if constants.HF_HUB_OFFLINE
            else f"{constants.ENDPOINT} did not answer: {_one_line(error)}"
        )
        raise DataError(
            f"{address} is not in the cache {constants.HF_HUB_CACHE}, and {why}; connect to fetch it once, or copy the cache "
            "from a machine that has it"
        ) from None
    except (OSError, errors.HTTPError, RuntimeError) as error:
        raise DataError(
            f"{address}: fetching it failed ({_one_line(error)}); the same command continues where it stopped"
        ) from None
    except (TypeError, ValueError, AttributeError, LookupError) as error:  # huggingface_hub expects well-formed answers
        raise DataError(
            f"{address}: {constants.ENDPOINT} answers with something that is not a description of a {what} "
            f"({_one_line(error)}); check HF_ENDPOINT"
        ) from None


@contextlib.contextmanager
def _bounded(address, endpoint):
    """Ends the requests of the block with an error if the hub stalls, or asks to wait for longer than `PATIENCE`."""
    from huggingface_hub import get_session

    client = get_session()
    stream: Any = sys.modules[type(client).__module__.partition(".")[0]].SyncByteStream  # of httpx
    begin, received = time.monotonic(), 0

    def count(received_now):
        nonlocal begin, received
        received += received_now
        if time.monotonic() - begin > PATIENCE:
            if received < _LEAST:
                raise DataError(
                    f"{address}: {endpoint} has sent {received:,} bytes in {PATIENCE:.0f} seconds; check the connection. The "
                    "same command continues where it stopped"
                )
            begin, received = time.monotonic(), 0

    class Counted(stream):
        def __init__(self, inner):
            self.inner = inner

        def __iter__(self):
            for data in self.inner:
                count(len(data))
                yield data

        def close(self):
            self.inner.close()

    def before(request):
        count(0)
        given = request.extensions.get("timeout") or {}
        limits = {name: min(given.get(name) or PATIENCE, PATIENCE) for name in ("connect", "read", "write", "pool")}
        request.extensions["timeout"] = limits

    def after(response):
        asked = re.search(r"t=(\d+)", response.headers.get("ratelimit", "")) or re.search(
            r"^(\d+)$", response.headers.get("retry-after", "")
        )
        if response.status_code in (429, 503) and asked and float(asked[1]) > PATIENCE:
            raise DataError(f"{address}: {endpoint} asks to wait {asked[1]} seconds; run the same command after that")
        is_file = response.request.method == "GET" and not response.request.url.path.startswith("/api/")
        count(0 if is_file else _LEAST)
        response.stream = Counted(response.stream)

    hooks = client.event_hooks
    client.event_hooks = {"request": [*hooks["request"], before], "response": [*hooks["response"], after]}
    try:
        yield
    finally:
        client.event_hooks = hooks


def _one_line(error):
    return " ".join(str(error).split())[:300] or type(error).__name__
