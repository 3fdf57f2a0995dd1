"""The state of an output folder: fresh, interrupted, finished, or not ours."""

import json
import shutil

from bert_tf.errors import RunDirectoryError
from bert_tf.files import atomic_write, explain_disk_errors
from tfrecords.manifest import Manifest
from tfrecords.schema import MANIFEST_NAME, TOKENIZER_FOLDER
from tfrecords.shard import UNFINISHED_FOLDER, ShardResult, sidecar_path

_SETTINGS = "settings.json"
_SHARDS = "shard-*.tfrecord"
_ANOTHER = "choose another folder, or overwrite it on request (overwrite=True)"


class OutputFolder:
    """Decides what of a folder can be kept. The caller holds the folder's lock.

    Args:
        folder: Path.
        settings: dict that JSON can hold: all that decides what shards hold, but for the corpus.
        corpus: list of {"file", "bytes"}.
    """

    def __init__(self, folder, settings, corpus):
        self._folder, self._settings, self._corpus = folder, settings, corpus
        self._unfinished = folder / UNFINISHED_FOLDER

    def prepare(self, overwrite):
        """Makes the folder ready to be written, or to be gone on with.

        Returns:
            The `Manifest` if the folder already holds all that was asked for, else None.

        Raises:
            RunDirectoryError: the folder holds other shards; with `overwrite` they are removed.
        """
        for stray in self._folder.glob(".shard-*.tmp"):  # of a process that was killed
            stray.unlink()
        if overwrite:
            self._clear()
        elif (self._folder / MANIFEST_NAME).exists():
            manifest = Manifest.load(self._folder)
            self._check_finished(manifest)
            self._remove_sidecars()
            return manifest
        elif (self._unfinished / _SETTINGS).exists():
            self._check_unfinished()
        elif any(self._folder.glob(_SHARDS)):
            raise RunDirectoryError(
                f"{self._folder} holds shards of unknown origin, without {MANIFEST_NAME}; {_ANOTHER}"
            )
        with atomic_write(self._unfinished / _SETTINGS) as file:
            json.dump(self._settings, file)
        return None

    def finished_shard(self, chunk):
        """The `ShardResult` of a chunk whose shard an earlier, interrupted run has written; else None."""
        result = ShardResult.load(sidecar_path(self._folder, chunk.index))
        if result is None or result.chunk_sha256 != chunk.sha256:
            return None
        shard = self._folder / result.shard.file
        return result if shard.is_file() and shard.stat().st_size == result.shard.bytes else None

    def finish(self, manifest):
        """Writes the manifest, which makes the folder a finished one, and removes what it replaces."""
        listed = {shard.file for shard in manifest.shards}
        for path in self._folder.glob(_SHARDS):  # empty, or of a corpus that was longer before
            if path.name not in listed:
                path.unlink()
        manifest.save(self._folder)
        self._remove_sidecars()

    def _remove_sidecars(self):
        with explain_disk_errors(self._unfinished):
            if self._unfinished.exists():
                shutil.rmtree(self._unfinished)

    def _clear(self):
        with explain_disk_errors(self._folder):
            # The manifest first: without it the rest is nothing.
            (self._folder / MANIFEST_NAME).unlink(missing_ok=True)
            self._remove_sidecars()
            for path in self._folder.glob(_SHARDS):
                path.unlink()
            if (self._folder / TOKENIZER_FOLDER).is_dir():
                shutil.rmtree(self._folder / TOKENIZER_FOLDER)

    def _check_finished(self, manifest):
        theirs = {"tokenizer": manifest.tokenizer_fingerprint, "schema_version": manifest.schema_version}
        self._refuse_others("finished shards", manifest.packing | theirs)
        if manifest.corpus != self._corpus:
            raise RunDirectoryError(f"{self._folder} holds finished shards of another corpus; {_ANOTHER}")
        for shard in manifest.shards:
            path = self._folder / shard.file
            if not path.is_file() or path.stat().st_size != shard.bytes:
                raise RunDirectoryError(
                    f"{path} is missing or not of the size in {MANIFEST_NAME}; write the folder again (overwrite=True)"
                )

    def _check_unfinished(self):
        path = self._unfinished / _SETTINGS
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise RunDirectoryError(f"{path} is damaged; {_ANOTHER}") from None
        self._refuse_others("the beginning of a run", theirs)

    def _refuse_others(self, what, theirs):
        ours = self._settings
        differing = [
            f"{key}: {_short(theirs.get(key))} there, {_short(ours.get(key))} here"
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key)
        ]
        if differing:
            values = ", ".join(differing)
            raise RunDirectoryError(f"{self._folder} holds {what} with other settings ({values}); {_ANOTHER}")


def _short(value):
    return value[:12] if isinstance(value, str) else value
