"""Shards written by the workers of an Apache Beam pipeline: the same bytes as without Beam.

Each worker reads parts of the corpus, and tokenizes, packs and writes them (`write_unit` of the job); a part that an
interrupted run has written is only read. What passes through the pipeline are counts and errors. Its last step writes
the manifest, from which the launcher knows the result. Corpus and output are addresses, which workers read and write
themselves, or paths on a file system that all workers and the launcher see.
"""

import dataclasses
import json
import re

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from bert_tf import errors
from bert_tf.files import atomic_write, display_path, explain_address, is_address, is_there, open_file, push
from bert_tf.files.addresses import open_file_system
from tfrecords.schema import MANIFEST_NAME
from tfrecords.shards.manifest import Manifest
from tfrecords.shards.results import UNFINISHED_FOLDER, Totals

# A runner passes on the text of an error, not its class, and may quote it.
_ERROR = re.compile("bert_tf error ([0-9a-f]+)")


def process(job, folder, options):
    """Writes every chunk and the manifest, on the workers of a Beam runner; returns the `Manifest`.

    Args:
        job: a `ShardJob` whose paths are absolute.
        folder: the `OutputFolder` of its output.
        options: list of str, those of a Beam pipeline: ["--runner=DirectRunner", ...].

    Raises:
        UserError: a worker has raised it.
        RunDirectoryError: the workers' files are not in the output folder that is seen here.
    """
    output = display_path(job.output)  # of which the launcher has a copy, where it is an address
    if is_address(output):
        push(job.output)  # the tokenizer, which workers load
        job = dataclasses.replace(job, output=output)
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    _ = (
        pipeline
        | beam.Create([None])
        | "cut the corpus" >> beam.FlatMap(_units, job)  # not here: all units would be in the pipeline
        | beam.Reshuffle()  # without it, one worker would do everything
        | "write the shards" >> beam.ParDo(_WriteUnits(job))
        | "add up" >> beam.CombineGlobally(_Sum())
        | "write the manifest" >> beam.Map(_finish, job, folder)
    )
    try:
        pipeline.run().wait_until_finish()
    except Exception as error:  # each runner has its own
        match = _ERROR.search(str(error))
        if not match:
            raise
        name, message = json.loads(bytes.fromhex(match[1]))
        raise getattr(errors, name)(message) from None
    if not is_there(f"{output}/{MANIFEST_NAME}"):
        raise errors.RunDirectoryError(
            f"the Beam workers are done, but what they wrote is not in {output}; name an address that every worker and "
            "this machine can read and write, or a folder on a file system that they share"
        )
    manifest = Manifest.load(output)
    if is_address(output):
        with open_file(f"{output}/{MANIFEST_NAME}") as file, atomic_write(folder.path / MANIFEST_NAME, "wb") as copy:
            copy.write(file.read())
        system, inside = open_file_system(output)
        shard_files = {shard.file for shard in manifest.shards}
        with explain_address(output, errors.RunDirectoryError):
            leftovers = [
                name
                for name in map(str, system.find(inside))
                if f"/{UNFINISHED_FOLDER}/" in name
                or (name.endswith(".tfrecord") and name.rpartition("/")[2] not in shard_files)
            ]
            if leftovers:
                system.rm(leftovers)  # together: one request each would take longer than the shards
    return manifest


def _units(_, job):
    return job.units()


class _WriteUnits(beam.DoFn):
    """Yields the `Done` of the chunks of a unit, or a `UserError`."""

    def __init__(self, job):
        self._job, self._write = job, None

    def process(self, unit):
        try:
            self._write = self._write or self._job.prepare()
            yield from self._write(unit)
        except errors.UserError as error:
            yield unit.number, type(error).__name__, str(error)


class _Sum(beam.CombineFn):
    """The `Totals` of all `Done`, and the errors."""

    def create_accumulator(self):
        return Totals(), []

    def add_input(self, accumulator, value):
        totals, failures = accumulator
        if hasattr(value, "result"):
            totals.add(value)
        else:
            failures.append(value)
        return accumulator

    def merge_accumulators(self, accumulators):
        totals, failures = self.create_accumulator()
        for others, more in accumulators:
            totals.merge(others)
            failures += more
        return totals, failures

    def extract_output(self, accumulator):
        return accumulator


def _finish(result, job, folder):
    """Writes the manifest; raises the first error in the order of the corpus."""
    totals, failures = result
    try:
        for _, name, message in sorted(failures):
            raise getattr(errors, name)(message)
        job.prepare()
        manifest = job.manifest(totals)
        manifest.save(job.output) if is_address(job.output) else folder.finish(manifest)
    except errors.UserError as error:
        text = json.dumps([type(error).__name__, str(error)])
        raise RuntimeError(f"bert_tf error {text.encode().hex()}") from None
