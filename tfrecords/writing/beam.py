"""Shards and token files written by the machines of an Apache Beam runner: the same bytes as without Beam.

One machine reads the corpus and cuts it into chunks, in order: where a chunk ends depends on all documents before
it. The chunks with their text are then sent to all machines, which tokenize, pack and write them (`write` of a
job). A finished chunk leaves a sidecar in the output folder, as without Beam, so that an interrupted run can be
resumed on the cluster or on one machine. Runners that keep data in memory, such as DirectRunner, need room for
the text of the whole corpus. (Paths such as gs:// are not read.)
"""

import contextlib
import json
from typing import NamedTuple

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from bert_tf import errors
from bert_tf.files import atomic_write
from bert_tf.parsing import read_json
from tfrecords.writing.results import sidecar_path


class _Cut(NamedTuple):
    """What is kept of a `Chunk` that was cut."""

    index: int
    sha256: str
    position: int


def process(job, folder, options, totals):
    """Works on every chunk that has no result yet, on the machines of a Beam runner; adds all results to `totals`.

    Args:
        job: a `Job` whose paths are absolute.
        folder: the `OutputFolder` of its output.
        options: list of str, those of a Beam pipeline: ["--runner=DirectRunner", ...].
        totals: `Totals`.

    Raises:
        UserError: a worker has raised it.
        RunDirectoryError: the workers' files are not in the output folder that is seen here.
    """
    cut, failure = (sidecar_path(job.output, name) for name in ("beam-cut", "beam-failure"))
    for path in (cut, failure):
        path.unlink(missing_ok=True)
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    _ = (
        pipeline
        | beam.Create([None])
        | "cut the corpus" >> beam.ParDo(_CutCorpus(job, folder, cut, failure))
        | beam.Reshuffle()  # without it, one machine would do everything
        | "write the files" >> beam.ParDo(_WriteFiles(job, failure))
    )
    try:
        pipeline.run().wait_until_finish()
    except Exception:  # each runner has its own errors
        if failure.exists():
            kind, message = read_json(failure)
            raise getattr(errors, kind)(message) from None
        raise
    found = read_json(cut) if cut.exists() else None
    if found is None or any(True for _ in folder.chunks_left((_Cut(*values) for values in found), totals)):
        raise errors.RunDirectoryError(
            f"the Beam workers are done, but not all they wrote is in {job.output}; corpus and output must lie on a file "
            "system that every worker and this machine see under the same path"
        )


class _CutCorpus(beam.DoFn):
    """Yields the chunks that have no result yet; leaves a list of all beside the sidecars."""

    def __init__(self, job, folder, cut, failure):
        self._job, self._folder, self._cut, self._failure = job, folder, cut, failure

    def process(self, _):
        with _noted(self._failure):
            cut = []
            for chunk in self._job.source.chunks():
                cut.append(_Cut(chunk.index, chunk.sha256, chunk.position))
                if self._folder.finished_chunk(chunk) is None:
                    yield chunk
            with atomic_write(self._cut) as file:
                json.dump(cut, file)


class _WriteFiles(beam.DoFn):
    """Leaves file and sidecar of each chunk in the output folder."""

    def __init__(self, job, failure):
        self._job, self._failure = job, failure

    def setup(self):
        with _noted(self._failure):
            self._write = self._job.prepare()

    def process(self, chunk):
        with _noted(self._failure):
            self._write(chunk)


@contextlib.contextmanager
def _noted(path):
    """Keeps errors of the user in a file, because a runner changes the class of an error."""
    try:
        yield
    except errors.UserError as error:
        with atomic_write(path) as file:
            json.dump([type(error).__name__, str(error)], file)
        raise
