"""The probes of `bert-tf probe`: what each asks of a model, and the table of what it finds."""

import dataclasses
import functools
from collections.abc import Callable

from bert_tf.errors import ConfigError


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
        from bert_tf.probing import text_scorer
        from bert_tf.training.loading import load_pretrained

        loaded = load_pretrained(self.arguments.run, trained=self.trained)
        scorer = text_scorer(*loaded, self.arguments.batch_size, self.arguments.hide)
        self.measure = f": by {scorer.measure}"
        return scorer

    @functools.cached_property
    def encoder(self):
        """(encoder, tokenizer)"""
        from bert_tf.training.loading import load_encoder

        return load_encoder(self.arguments.run, self.trained, pooler=False)

    def progress(self, unit, total=None):
        """(function(done, total), function that ends it) for the lines of progress of a probe."""
        from bert_tf.progress import Progress

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
    from bert_tf.probing import cloze_table, read_lama, run_cloze

    questions = read_lama(path, arguments.relations, arguments.most)
    return AskedProbe(_scored(run_cloze, questions, "questions"), (cloze_table,))


def _cloze(name, arguments):
    from bert_tf.probing import CLOZE_SETS, cloze_table, read_cloze, run_cloze

    questions = read_cloze(CLOZE_SETS.get(name, name), arguments.most)
    ask = _scored(run_cloze, questions, "questions")

    def ask_and_warn(model):
        if model.trained:  # once, not again for random weights
            _warn_of_unknown(
                model.scorer.tokenizer, sorted({word for q in questions for word in (*q.options, *q.answers)})
            )
        return ask(model)

    return AskedProbe(ask_and_warn, (cloze_table,))


def _warn_of_unknown(tokenizer, words):
    from absl import logging

    unknown = [word for word in words if tokenizer.unk_id in tokenizer.encode(word)]
    if unknown:
        logging.warning(
            "%d of the %d options and answers, such as '%s', hold a token that is unknown to the model's tokenizer, so their "
            "scores say nothing; choose questions in the language of the model with --cloze", len(unknown), len(words), unknown[0]
        )  # fmt: skip


def _pairs(path, arguments):
    from bert_tf.probing import pairs_table, read_pairs, run_pairs

    return AskedProbe(_scored(run_pairs, read_pairs(path, arguments.most), "pairs"), (pairs_table,))


def _crows_pairs(path, arguments):
    from bert_tf.probing import crows_pairs_table, read_crows_pairs, run_crows_pairs

    return AskedProbe(_scored(run_crows_pairs, read_crows_pairs(path, arguments.most), "pairs"), (crows_pairs_table,))


def _stereoset(path, arguments):
    from bert_tf.probing import read_stereoset, run_stereoset, stereoset_table

    return AskedProbe(_scored(run_stereoset, read_stereoset(path, arguments.most), "examples"), (stereoset_table,))


def _winobias(paths, arguments):
    from bert_tf.probing import read_winobias, run_winobias, winobias_table

    pairs, skipped = read_winobias(*paths, arguments.most)
    return AskedProbe(_scored(run_winobias, pairs, "pairs", skipped=skipped), (winobias_table,))


def _ettinger(paths, arguments):
    from bert_tf.probing import diagnostics_table, read_diagnostic, run_diagnostics

    diagnostics = [read_diagnostic(path, arguments.most) for path in paths]
    return AskedProbe(_scored(run_diagnostics, diagnostics, "words"), (diagnostics_table,))


def _layers(paths, arguments):
    from bert_tf.probing import layers_table, probe_layers
    from bert_tf.tasks.config import ColumnsConfig
    from bert_tf.tasks.tagging.files import read_tagged

    files, most = [read_tagged(path, ColumnsConfig(), True) for path in paths], arguments.most
    parts = [(found.words[:most], found.labels[:most]) for found in files]
    return AskedProbe(_encoded(probe_layers, "classifiers", *parts, batch_size=arguments.batch_size), (layers_table,))


def _word(word, arguments):
    from bert_tf.probing import read_uses, run_uses, uses_table

    uses = read_uses(arguments.corpus, word, arguments.most)
    layer = -1 if arguments.layer is None else arguments.layer
    return AskedProbe(_encoded(run_uses, "texts", uses, layer=layer, batch_size=arguments.batch_size), (uses_table,))


def _wic(paths, arguments):
    from bert_tf.probing import read_wic, run_wic, wic_table

    parts = [read_wic(path, arguments.most) for path in paths]
    return AskedProbe(_encoded(run_wic, "texts", *parts, batch_size=arguments.batch_size), (wic_table,))


def _heads(path, arguments):
    from bert_tf.probing import patterns_table, read_trees, relations_table, run_heads

    trees = read_trees(path, arguments.most)
    return AskedProbe(
        _encoded(run_heads, "sentences", trees, batch_size=arguments.batch_size), (relations_table, patterns_table)
    )


def _head_importance(path, arguments):
    from bert_tf.probing import head_importance_table, run_head_importance
    from bert_tf.training.loading import load_finetuned

    def ask(model):
        if not model.trained:
            return None
        task, task_model, _ = load_finetuned(arguments.run)
        show, finish = model.progress("examples")
        result = run_head_importance(task, task_model, task.read(path), arguments.most, progress=show)
        finish()
        return result

    return AskedProbe(ask, (head_importance_table,))


def _trees(paths, arguments):
    from bert_tf.probing import read_trees, run_structural, structural_table

    parts = [read_trees(path, arguments.most) for path in paths]
    return AskedProbe(_encoded(run_structural, "epochs", *parts, batch_size=arguments.batch_size), (structural_table,))


def _edges(paths, arguments):
    from bert_tf.probing import edges_table, read_spans, run_edges

    parts = [read_spans(path, arguments.most) for path in paths]
    return AskedProbe(_encoded(run_edges, "texts", *parts, batch_size=arguments.batch_size), (edges_table,))


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
    "pairs": _pairs,
    "crows_pairs": _crows_pairs,
    "stereoset": _stereoset,
    "winobias": _winobias,
    "ettinger": _ettinger,
    "layers": _layers,
    "word": _word,
    "wic": _wic,
    "heads": _heads,
    "head_importance": _head_importance,
    "trees": _trees,
    "edges": _edges,
}
