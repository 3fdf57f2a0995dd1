"""What a probe is: it reads rows, asks a model, and returns a table."""

import dataclasses
import inspect

from bert_tf.errors import ConfigError
from bert_tf.parsing import brief
from bert_tf.probing.page import write_probe_page


@dataclasses.dataclass(frozen=True)
class Probe:
    """Base of all probes. A subclass is a frozen dataclass; its fields are its settings.

    Attributes:
        name: str, by which the command chooses it.
        title: str, of its table.
        asks: what `run` gets: "scorer", a scorer of `text_scorer`; "layers", a `LayerReader`; "task", the pair (`Task`, its
            model); "vectors", a `WordTable`.
        has_control: whether the same with random weights says anything.
        unit: str, what `progress` counts.

    Example:
        class Lengths(Probe):
            name, title, asks = "lengths", "lengths of texts", "layers"

            def read(self, path, most=None):
                return Path(path).read_text().splitlines()[:most]

            def run(self, model, rows, progress=None):
                counts = [len(model.tokenizer.encode(row)) for row in rows]
                return ProbeTable(self.title, ["tokens"], [("mean", [sum(counts) / len(counts)])])

        register_probe(Lengths)
    """

    name = title = ""
    asks = "scorer"
    has_control = True
    unit = "texts"

    def read(self, path, most=None):
        """The rows of files.

        Args:
            path: a file; a probe of several files has an argument for each. Their names are those that the command shows.
            most: the first so many rows of each file; None for all.

        Raises:
            DataError: an unreadable file, or a wrong row; with file and line.
        """
        raise NotImplementedError

    def run(self, model, rows, progress=None):
        """The `ProbeTable` of a model.

        Args:
            model: what `asks` says.
            rows: what `read` returns.
            progress: function(done, all), called now and then, in `unit`; None for nothing.
        """
        raise NotImplementedError

    def warn(self, model, rows):
        """Logs what a user should know of these rows and this model; called once, before `run`."""

    def write_page(self, table, path, title, about=""):
        """Writes the page of a table; the arguments are those of `write_probe_page`."""
        write_probe_page([table], path, title, about)

    def read_files(self, files, most=None):
        """`read` for files whose number a user chose.

        Raises:
            ConfigError: another number than `read` takes.
            DataError: of `read`.
        """
        signature = inspect.signature(self.read)
        try:
            signature.bind(*files, most=most)
        except TypeError:
            names = [name.upper() for name in signature.parameters if name != "most"]
            raise ConfigError(f"{self.name} reads {' and '.join(names)}, not {len(files)}: {brief(files)}") from None
        return self.read(*files, most=most)
