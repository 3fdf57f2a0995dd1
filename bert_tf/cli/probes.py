"""The probes of `bert-tf probe`: what each asks of a model, and the table of what it finds."""

import dataclasses
import functools
from collections.abc import Callable

from absl import logging

import bert_tf
from bert_tf import probing
from bert_tf.errors import ConfigError
from bert_tf.progress import Progress
from bert_tf.tasks.config import ColumnsConfig
from bert_tf.tasks.tagging.files import read_tagged


@dataclasses.dataclass(frozen=True)
class AskedProbe:
    """A probe whose files are read.

    Attributes:
        ask: function(`ProbedModel`) -> result.
        tables: functions(result, that of random weights or None) -> `ProbeTable`.
    """

    ask: Callable
    tables: tuple


class ProbedModel:
    """A model as the probes need it, loaded when they do.

    Attributes:
        name: for lines of progress.
        measure: how it scores texts, for the first line of the output; "" where no probe asks that.
    """

    def __init__(self, arguments, name, trained):
        self.arguments, self.name, self.trained, self.measure = arguments, name, trained, ""

    @functools.cached_property
    def scorer(self):
        model = bert_tf.load(self.arguments.run, trained=self.trained)
        scorer = probing.text_scorer(model.objective, model.tokenizer, self.arguments.batch_size, self.arguments.hide)
        self.measure = f": by {scorer.measure}"
        return scorer

    @functools.cached_property
    def encoder(self):
        """(encoder, tokenizer)"""
        model = bert_tf.load(self.arguments.run, trained=self.trained)
        return model.encoder, model.tokenizer

    def progress(self, unit, total=None):
        """(function(done, total), function that ends it) for the lines of progress of a probe."""
        progress = Progress(self.name, total, unit)

        def show(done, of=total):
            progress.total = of
            progress.update(done)

        return show, progress.finish


def wanted_probes(arguments):
    """{name: `AskedProbe`} of the arguments; the cloze questions in English where they ask nothing.

    Raises:
        ConfigError, DataError: options that do not go together, or a file that cannot be read.
    """
    if arguments.relations and not arguments.lama:
        raise ConfigError("--relations is for --lama; give both")
    if bool(arguments.word) != bool(arguments.corpus):
        raise ConfigError("--word and --corpus belong together: the word, and the file in which it is looked for")
    if arguments.layer is not None and not arguments.word:
        raise ConfigError("--layer is for --word, the layer of its map; give both, or leave --layer out")
    found = {
        name: make(getattr(arguments, name), arguments) for name, make in PROBES.items() if getattr(arguments, name)
    }
    return found or {"cloze": _cloze("english", arguments)}


def _lama(path, arguments):
    questions = probing.read_lama(path, arguments.relations, arguments.most)
    return AskedProbe(_scored(probing.run_cloze, questions, "questions"), (probing.cloze_table,))


def _cloze(name, arguments):
    questions = probing.read_cloze(probing.CLOZE_SETS.get(name, name), arguments.most)
    ask = _scored(probing.run_cloze, questions, "questions")

    def ask_and_warn(model):
        if model.trained:  # once, not again for random weights
            _warn_of_unknown(
                model.scorer.tokenizer, sorted({word for q in questions for word in (*q.options, *q.answers)})
            )
        return ask(model)

    return AskedProbe(ask_and_warn, (probing.cloze_table,))


def _warn_of_unknown(tokenizer, words):
    unknown = [word for word in words if tokenizer.unk_id in tokenizer.encode(word)]
    if unknown:
        logging.warning(
            "%d of the %d options and answers, such as '%s', hold a token that is unknown to the model's tokenizer, so their "
            "scores say nothing; choose questions in the language of the model with --cloze", len(unknown), len(words), unknown[0]
        )  # fmt: skip


def _winobias(paths, arguments):
    pairs, skipped = probing.read_winobias(*paths, arguments.most)
    return AskedProbe(_scored(probing.run_winobias, pairs, "pairs", skipped=skipped), (probing.winobias_table,))


def _ettinger(paths, arguments):
    diagnostics = [probing.read_diagnostic(path, arguments.most) for path in paths]
    return AskedProbe(_scored(probing.run_diagnostics, diagnostics, "words"), (probing.diagnostics_table,))


def _layers(paths, arguments):
    files, most = [read_tagged(path, ColumnsConfig(), True) for path in paths], arguments.most
    parts = [(found.words[:most], found.labels[:most]) for found in files]
    ask = _encoded(probing.probe_layers, "classifiers", *parts, batch_size=arguments.batch_size)
    return AskedProbe(ask, (probing.layers_table,))


def _word(word, arguments):
    uses = probing.read_uses(arguments.corpus, word, arguments.most)
    layer = -1 if arguments.layer is None else arguments.layer
    ask = _encoded(probing.run_uses, "texts", uses, layer=layer, batch_size=arguments.batch_size)
    return AskedProbe(ask, (probing.uses_table,))


def _heads(path, arguments):
    trees = probing.read_trees(path, arguments.most)
    ask = _encoded(probing.run_heads, "sentences", trees, batch_size=arguments.batch_size)
    return AskedProbe(ask, (probing.relations_table, probing.patterns_table))


def _head_importance(path, arguments):
    def ask(model):
        if not model.trained:
            return None
        tuned = bert_tf.load(arguments.run)
        show, finish = model.progress("examples")
        result = probing.run_head_importance(
            tuned.task, tuned.model, tuned.task.read(path), arguments.most, progress=show
        )
        finish()
        return result

    return AskedProbe(ask, (probing.head_importance_table,))


def _of_file(read, run, table, unit):
    """A probe that scores the examples of one file."""
    return lambda path, arguments: AskedProbe(_scored(run, read(path, arguments.most), unit), (table,))


def _of_two_files(read, run, table, unit):
    """A probe that reads the layers of an encoder for a file to learn from and one to test on."""

    def make(paths, arguments):
        parts = [read(path, arguments.most) for path in paths]
        return AskedProbe(_encoded(run, unit, *parts, batch_size=arguments.batch_size), (table,))

    return make


def _scored(function, examples, unit, **options):
    """`function(scorer, examples, progress=..., **options)` as something to ask a model."""

    def ask(model):
        show, finish = model.progress(unit, len(examples))
        result = function(model.scorer, examples, progress=show, **options)
        finish()
        return result

    return ask


def _encoded(function, unit, *inputs, **options):
    """`function(encoder, tokenizer, *inputs, progress=..., **options)` as something to ask a model."""

    def ask(model):
        show, finish = model.progress(unit)
        result = function(*model.encoder, *inputs, progress=show, **options)
        finish()
        return result

    return ask


#: Argument of the command -> function(its value, arguments) -> `AskedProbe`; asked and shown in this order.
PROBES = {
    "lama": _lama,
    "cloze": _cloze,
    "pairs": _of_file(probing.read_pairs, probing.run_pairs, probing.pairs_table, "pairs"),
    "crows_pairs": _of_file(probing.read_crows_pairs, probing.run_crows_pairs, probing.crows_pairs_table, "pairs"),
    "stereoset": _of_file(probing.read_stereoset, probing.run_stereoset, probing.stereoset_table, "examples"),
    "winobias": _winobias,
    "ettinger": _ettinger,
    "layers": _layers,
    "word": _word,
    "wic": _of_two_files(probing.read_wic, probing.run_wic, probing.wic_table, "texts"),
    "heads": _heads,
    "head_importance": _head_importance,
    "trees": _of_two_files(probing.read_trees, probing.run_structural, probing.structural_table, "epochs"),
    "edges": _of_two_files(probing.read_spans, probing.run_edges, probing.edges_table, "texts"),
}
