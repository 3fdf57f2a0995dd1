"""From a run of fine-tuning to a compressed model that answers as the float model does."""

import dataclasses
import importlib
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.backend import check_exports
from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.compression.fixed_length import fixed_length, specs_of
from bert_tf.compression.gate import Comparison, check_tolerance, compare
from bert_tf.compression.litert import LITERT
from bert_tf.compression.measuring import latencies, size_of, size_of_weights
from bert_tf.compression.onnx_file import ONNX
from bert_tf.compression.stored_weights import STORES, store_weights
from bert_tf.config import nearest
from bert_tf.errors import Advice, ConfigError
from bert_tf.export.run import served_module
from bert_tf.export.saved_model import check_version, write_saved_model
from bert_tf.export.storage import check_finite, reading
from bert_tf.files import atomic_folder, is_address, is_there, writes_to
from bert_tf.table import Table
from bert_tf.tasks.inference import batches

FILES = {"litert": LITERT, "onnx": ONNX}
#: The values of `format`.
FORMATS = ("saved_model", *FILES)
#: The default of `tolerance`: a hundredth of the answers, or of the metric.
TOLERANCE = 0.01
GIVE = "give one: ", Advice("dev", "FILE"), ", or texts: ", Advice("texts", "FILE")


@dataclasses.dataclass(frozen=True)
class Measured:
    """A model's size in bytes, and the median and 95th percentile of its latency for one text on one core, in ms."""

    size: int
    p50: float
    p95: float


@dataclasses.dataclass(frozen=True)
class Compressed:
    """What `export_compressed` wrote.

    Attributes:
        path: the folder.
        comparison: with the float model.
        before: the float model: the size of its weights, and its latency as a TensorFlow graph.
        after: the compressed one: the size of the weights of a SavedModel, or of the file, and its latency.
        tokens: of the text that was timed.
    """

    path: Path
    comparison: Comparison
    before: Measured
    after: Measured
    tokens: int

    def lines(self):
        """Yields what it says, as lines of text."""
        yield from self.comparison.lines()
        rows = []
        for name in ("size", "p50", "p95"):
            unit, scale = ("MB", 1e6) if name == "size" else ("ms", 1)
            rows.append([name, *(f"{getattr(side, name) / scale:,.2f} {unit}" for side in (self.before, self.after))])
        yield from Table(["", "before", "after"], rows).text().split("\n")
        yield f"latency: one text of {self.tokens} tokens on one core of this machine, without the tokenizer"


@writes_to("output")
def export_compressed(
    run_directory,
    format="saved_model",
    quantize=None,
    tolerance=TOLERANCE,
    dev=None,
    texts=None,
    output=None,
    version=None,
    sequence_length=None,
    **options,
):
    """Writes the model of a fine-tuned run in fewer bytes, if it answers as the float model does.

    Args:
        run_directory: of `finetune`; or a published checkpoint of a fine-tuned class.
        format: "saved_model", with text in; "litert" or "onnx", with ids in, of one length.
        quantize: None, "float16" or "dynamic_int8".
        tolerance: the largest fraction of examples that may have another answer, and the largest loss of the dev
            metric.
        dev: a labelled file to compare on. None: that of the run, where there are no `texts`.
        texts: a file without labels to compare on.
        output: a SavedModel: the folder of the versions, `export/` in the run directory. A file: a folder that does not
            exist yet or is empty; None is `<format>/<quantize or float32>/` in the run directory.
        version, options: of `export_run`, for a SavedModel.
        sequence_length: of `export_run`; in a file every text, option or window is padded to it.

    Returns:
        A `Compressed`.

    Raises:
        ConfigError: no run of fine-tuning, an unknown format or quantization, a package that is not installed, or a
            compressed model that differs by more than the tolerance.
        RunDirectoryError, DataError, ExportError: as `export_run`.

    Example:
        export_compressed("bert-base-NER", "litert", "float16", dev="train.conll", output="ner").comparison.agreement
    """
    check_exports("a compressed export")
    if format not in FORMATS:
        raise ConfigError(f"there is no format '{format}'{nearest(str(format), FORMATS)}")
    file = FILES.get(format)  # None for a SavedModel
    if file is None and quantize is None:
        raise ConfigError("a SavedModel is quantized; choose ", Advice("quantize", "float16"), " or dynamic_int8")
    stores = file.quantize if file else tuple(STORES)
    if quantize not in (None, *stores):
        raise ConfigError(f"the format {format} cannot be quantized by '{quantize}'; choose one of {', '.join(stores)}")
    if file:
        _check_file(format, version, options)
    check_tolerance(tolerance)
    opened = open_finetuned(run_directory)
    source, task = opened.source, opened.task
    if output is None and (source.format != "run" or is_address(run_directory)):
        raise ConfigError(
            f"{run_directory} is not a run directory of this machine; say where the export is written: ",
            Advice("output", "FOLDER"),
        )
    if sequence_length is not None:
        task = task.with_config(sequence_length=sequence_length)
    if output is None:
        output = Path(run_directory) / (f"{format}/{quantize or 'float32'}" if file else "export")
    if file is None:
        check_version(output, version)
    trial = Trial(task, opened.model, reference_examples(task, source, dev, texts), tolerance)
    module = served_module(opened, None, sequence_length, options | ({"static": True} if file else {}))
    module.quantized = quantize
    if file:
        return _write_file(trial, module, file, Path(output))
    return _write_saved_model(trial, module, output, version)


def open_finetuned(run_directory):
    """The `OpenedModel` of a run whose answers can be compared, in float32.

    Raises:
        ConfigError: no run of fine-tuning, or one whose task writes texts.
        RunDirectoryError, DataError: as `bert_tf.load`; also weights that are not finite.
    """
    opened = OpenedModel(open_source(run_directory), "float32")
    if opened.source.task is None:
        raise ConfigError(f"{run_directory} is not fine-tuned, and only answers of a task are compared; fine-tune it")
    if opened.task.frame is not None:
        raise ConfigError(f"{run_directory} writes texts ({opened.task.kind}); compression is for other tasks")
    check_finite(opened.model)
    return opened


def reference_examples(task, source, dev=None, texts=None):
    """The `Examples` on which two models of a task are compared.

    Args:
        task: a `Task`.
        source: of `open_source`.
        dev, texts: of `export_compressed`.

    Raises:
        ConfigError: none are given, and the run names no dev file, or one that is gone.
        DataError: a file that cannot be used.
    """
    if dev is not None and texts is not None:
        raise ConfigError("one file is compared on; give ", Advice("dev"), " or ", Advice("texts"), ", not both")
    if texts is not None:
        return task.read(texts, labelled=False)
    if dev is None:
        dev = (source.settings.get("data") or {}).get("dev")
        if not dev:
            raise ConfigError(f"{source.path} names no dev file to compare on; ", *GIVE)
        if "://" not in str(dev) and not is_there(Path(dev)):
            raise ConfigError(f"the dev file of {source.path}, {dev}, is gone; ", *GIVE)
    return task.read(dev)


class Trial:
    """The float model, and what a compressed one is compared on."""

    def __init__(self, task, model, examples, tolerance):
        self.task, self.model, self.examples, self.tolerance = task, model, examples, tolerance
        lengths = task.sequences(examples).lengths
        self.middle = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
        self.tokens = int(lengths[self.middle])
        [self.text] = batches(task, task.sequences(examples), [(np.array([self.middle]), self.tokens)])
        self.before = self.graph()

    def graph(self, stored=()):
        """The model as a graph function of any features; it reads the weights `stored`, () for its own."""
        spec = {name: tf.TensorSpec([None] * x.shape.rank, x.dtype) for name, x in self.text.items()}
        with reading(stored):
            function = tf.function(lambda features: self.model(features, training=False), autograph=False)
            return function.get_concrete_function(spec)

    def measure(self, after, advice):
        """(the comparison with the function `after`, the latency of both); raises ConfigError where it is refused."""

        def turn(function):
            return lambda: [np.asarray(value) for value in function(self.text).values()]

        comparison = compare(self.task, self.examples, self.before, after)
        comparison.check(self.tolerance, advice)
        return comparison, latencies(turn(self.before), turn(after))

    def result(self, path, size, comparison, times):
        before, after = times
        before = Measured(size_of_weights(self.model), *before)
        return Compressed(path, comparison, before, Measured(size, *after), self.tokens)


def _write_saved_model(trial, module, folder, version):
    stored = store_weights(trial.model, module.quantized)
    measured = trial.measure(trial.graph(stored), "quantize with float16, which keeps more digits")
    module.storage = lambda model: stored
    path = write_saved_model(module, folder, version)
    return trial.result(path, size_of(path / "variables"), *measured)


def _write_file(trial, module, format, folder):
    with atomic_folder(folder) as temporary:
        path = temporary / format.file
        specs = specs_of(trial.task, trial.examples, format.rows)
        format.write(trial.model, specs, path, module.quantized)
        answer = fixed_length(format.open(path), specs)
        measured = trial.measure(answer, "quantize in another way, or not")
        module.write_files(temporary)
    return trial.result(folder, size_of(folder / format.file), *measured)


def _check_file(format, version, options):
    needless = [name for name, value in ({"version": version} | options).items() if value]
    if needless:
        raise ConfigError(f"the format {format} has no {', '.join(needless)}: it is one file, of ids and of one length")
    for module, package in FILES[format].packages.items():
        try:
            importlib.import_module(module)
        except ImportError:
            raise ConfigError(
                f"the format {format} needs the package {package}, and it is not installed; install it with "
                "pip install 'bert_tf[compress]'"
            ) from None
