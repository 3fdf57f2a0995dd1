"""The state of an output folder: empty, interrupted, finished, or not written by this library."""

import json
import shutil

from bert_tf.errors import Advice, ConfigError, DataError, RunDirectoryError
from bert_tf.files import atomic_write, display_path, explain_disk_errors
from bert_tf.parsing import brief, read_json_object
from bert_tf.tokenizers import load_tokenizer
from tfrecords.schema import MANIFEST_NAME, TOKENIZER_FOLDER
from tfrecords.shards.manifest import Manifest
from tfrecords.shards.results import UNFINISHED_FOLDER
from tfrecords.shards.verification import check_sizes

_SETTINGS = "settings.json"
_FILES = "shard-*.tfrecord"
_OVERWRITE = Advice("overwrite", True)
_ANOTHER = "; choose another folder, or replace it with ", _OVERWRITE


class OutputFolder:
    """Decides what of a folder can be kept. The caller holds the folder's lock.

    Args:
        job: gives `output`, `corpus` and `settings`.
    """

    def __init__(self, job):
        self.path = job.output
        self._settings, self._corpus = job.settings, job.corpus
        self._unfinished = self.path / UNFINISHED_FOLDER

    def prepare(self, overwrite):
        """Makes the folder ready to be written, or to be resumed.

        Returns:
            The manifest if the folder already holds everything that was asked for, else None.

        Raises:
            RunDirectoryError: the folder holds other shards. With `overwrite` they are removed, except a tokenizer
                that is not that of these shards.
        """
        if overwrite:
            self._clear(tokenizer=self._check_tokenizer(overwrite))
        elif (self.path / MANIFEST_NAME).exists():
            manifest = Manifest.load(self.path)
            self._check_finished(manifest)
            self._remove_sidecars()
            return manifest
        elif (self._unfinished / _SETTINGS).exists():
            try:
                recorded = read_json_object(self._unfinished / _SETTINGS)
            except DataError as error:
                raise RunDirectoryError(*error.args, *_ANOTHER) from None
            self._check_settings("the beginning of a run", recorded)
        elif any(self.path.glob(_FILES)):
            raise RunDirectoryError(f"{self.path} holds shards of unknown origin, without {MANIFEST_NAME}", *_ANOTHER)
        self._check_tokenizer()
        with atomic_write(self._unfinished / _SETTINGS) as file:
            json.dump(self._settings, file)
        return None

    def finish(self, manifest):
        """Writes the manifest, which marks the folder as finished, and removes what is not listed in it."""
        listed = {entry.file for entry in manifest.shards}
        for path in self.path.glob(_FILES):  # empty, or of a corpus that was longer before
            if path.name not in listed:
                path.unlink()
        manifest.save(self.path)
        self._remove_sidecars()

    def _remove_sidecars(self):
        with explain_disk_errors(self._unfinished):
            if self._unfinished.exists():
                shutil.rmtree(self._unfinished)

    def _clear(self, tokenizer):
        with explain_disk_errors(self.path):
            # The manifest first: without it, the rest counts as unfinished.
            (self.path / MANIFEST_NAME).unlink(missing_ok=True)
            if tokenizer:
                shutil.rmtree(self.path / TOKENIZER_FOLDER)
            self._remove_sidecars()
            for path in self.path.glob(_FILES):
                path.unlink()

    def _check_finished(self, manifest):
        self._check_settings("finished shards", manifest.settings)
        if manifest.corpus != self._corpus:
            raise RunDirectoryError(f"{self.path} holds finished shards of another corpus", *_ANOTHER)
        folder = display_path(self.path)  # the workers of Beam write to an address, not to the copy of it
        try:
            check_sizes(folder, manifest.shards)
        except DataError as error:
            raise RunDirectoryError(*error.args) from None

    def _check_settings(self, what, recorded):
        current = self._settings
        differing = ", ".join(
            f"{key}: {_shown(key, recorded.get(key))} there, {_shown(key, current.get(key))} here"
            for key in sorted(current.keys() | recorded.keys())
            if current.get(key) != recorded.get(key)
        )
        if differing:
            raise RunDirectoryError(f"{self.path} holds {what} with other settings ({differing})", *_ANOTHER)

    def _check_tokenizer(self, overwrite=False):
        """Whether to remove the tokenizer in the folder; refuses another one that is not of files to overwrite."""
        folder = self.path / TOKENIZER_FOLDER
        if folder.exists() and not folder.is_dir():
            raise RunDirectoryError(
                f"{folder} is a file, where the folder of the tokenizer must be; choose another folder"
            )
        if not folder.exists() or not any(folder.iterdir()):
            return False
        try:
            fingerprint, what = load_tokenizer(folder).fingerprint, "another tokenizer than the one given"
        except (DataError, ConfigError) as error:
            fingerprint, what = None, f"files that are not a tokenizer ({error})"
        if fingerprint == self._settings["tokenizer"]:
            return False
        if overwrite and fingerprint == self._recorded_tokenizer():
            return True
        raise RunDirectoryError(f"{folder} holds {what}, which is not replaced; remove it or choose another folder")

    def _recorded_tokenizer(self):
        """The fingerprint of the tokenizer that made the files in the folder; "" where it is not recorded."""
        try:
            if (self.path / MANIFEST_NAME).exists():
                return Manifest.load(self.path).tokenizer_fingerprint
            return read_json_object(self._unfinished / _SETTINGS).get("tokenizer", "")
        except DataError:
            return ""


def _shown(key, value):
    if isinstance(value, str):
        return value[:12] if key == "tokenizer" else value[:100]
    return brief(value)
