"""What has a pretrained model learned? Cloze questions, minimal pairs, stereotypes, and what each layer shows.

Without options the model answers the cloze questions in English that come with the library, by kind of knowledge: facts,
grammar, coreference, lexical meaning, sentiment, reasoning, sequences and sums. Beside each number stand its chance level and
that of the same model with random weights.

A model that sees both sides is asked for each hidden token (BERT and the like, ELECTRA's generator, XLNet), a decoder for each
token after those before it. --layers trains classifiers on the frozen vectors of each layer: for the tags of words, for the
length of a sentence, and for whether two of its words were exchanged.

example:
  bert-tf probe run
  bert-tf probe run --cloze korean
  bert-tf probe run --pairs BLiMP.zip --most 100
  bert-tf probe run --crows-pairs crows_pairs_anonymized.csv --hide token
  bert-tf probe run --lama LAMA/ConceptNet/test.jsonl
  bert-tf probe run --lama LAMA/TREx --relations LAMA/relations.jsonl
  bert-tf probe run --layers train.conllu dev.conllu
  bert-tf probe run --cloze english --pairs BLiMP.zip --output probe.json

in Python:
  from bert_tf.probing import CLOZE_SETS, read_cloze, run_cloze, text_scorer
  from bert_tf.training.loading import load_pretrained
  scorer = text_scorer(*load_pretrained("run"))
  run_cloze(scorer, read_cloze(CLOZE_SETS["english"]))["facts"].accuracy
"""


def add_arguments(parser):
    parser.add_argument("run", help="a pretraining run, or a published checkpoint with its pretraining head")
    parser.add_argument("--cloze", metavar="SET", help="english, korean, or a file with the columns kind, text, answers, options")
    parser.add_argument("--lama", metavar="PATH", help="a .jsonl file of LAMA, or a folder of them: asked as cloze questions")
    parser.add_argument("--relations", metavar="FILE", help="of --lama: relations.jsonl with the templates of relations")
    parser.add_argument("--pairs", metavar="FILE", help="BLiMP's zip or folder, or a file of sentence_good and sentence_bad")
    parser.add_argument("--most", type=int, metavar="N", help="the first N pairs of each file (default: all)")
    parser.add_argument("--crows-pairs", metavar="FILE", help="crows_pairs_anonymized.csv")
    parser.add_argument(
        "--layers", nargs=2, metavar=("TRAIN", "TEST"), help="files of tagged words, as `bert-tf finetune` reads them (CoNLL, CoNLL-U)"
    )
    parser.add_argument(
        "--hide",
        choices=("word", "token"),
        default="word",
        help="hide the later tokens of a word, too, or each token alone, as Salazar et al. 2020 (default %(default)s)",
    )
    parser.add_argument("--no-control", action="store_true", help="leave out the same model with random weights")
    parser.add_argument("--batch-size", type=int, default=32, help="sequences of a batch (default %(default)s)")
    parser.add_argument("--output", help="write all numbers here, as JSON")


def run(arguments):
    from bert_tf.errors import ConfigError

    for flag in ("most", "batch_size"):
        value = getattr(arguments, flag)
        if value is not None and value < 1:
            raise ConfigError(f"--{flag.replace('_', '-')} is {value}; it must be at least 1")

    probes = _probes(arguments)

    import keras

    results = {}
    for name, trained in (("model", True), ("random weights", False))[: 1 if arguments.no_control else 2]:
        keras.utils.set_random_seed(0)
        model = _Model(arguments, name, trained)
        results[name] = {probe: ask(model) for probe, (ask, _) in probes.items()}
    print(f"{arguments.run}{model.measure}")
    for probe, (_, show) in probes.items():
        show(results["model"][probe], results.get("random weights", {}).get(probe))
    if arguments.output:
        _write(results, arguments)


class _Model:
    """The model as the probes need it, loaded when they do.

    Attributes:
        name: for lines of progress.
        measure: how it scores texts, for the first line of the output; "" where no probe asks that.
    """

    def __init__(self, arguments, name, trained):
        self.arguments, self.name, self.trained, self.measure = arguments, name, trained, ""
        self._scorer = None

    @property
    def scorer(self):
        from bert_tf.probing import text_scorer
        from bert_tf.training.loading import load_pretrained

        if self._scorer is None:
            loaded = load_pretrained(self.arguments.run, trained=self.trained)
            self._scorer = text_scorer(*loaded, self.arguments.batch_size, self.arguments.hide)
            self.measure = f": by {self._scorer.measure}"
        return self._scorer

    def encoder(self):
        """(encoder, tokenizer)"""
        from bert_tf.training.loading import load_encoder

        return load_encoder(self.arguments.run, self.trained, pooler=False)


def _probes(arguments):
    """What is asked: name -> (function(`_Model`) -> result, function that prints it and the control's)."""
    from bert_tf.errors import ConfigError
    from bert_tf.probing import CLOZE_SETS, read_cloze, read_crows_pairs, read_pairs, run_cloze, run_crows_pairs, run_pairs
    from bert_tf.probing.lama_files import read_lama

    if arguments.relations and not arguments.lama:
        raise ConfigError("--relations is for --lama; give both")
    probes = {}
    if arguments.lama:
        probes["lama"] = (_asking(run_cloze, read_lama(arguments.lama, arguments.relations), "questions"), show_cloze)
    if arguments.cloze or not (arguments.lama or arguments.pairs or arguments.crows_pairs or arguments.layers):
        path = CLOZE_SETS.get(arguments.cloze or "english", arguments.cloze)
        probes["cloze"] = (_asking(run_cloze, read_cloze(path), "questions"), show_cloze)
    if arguments.pairs:
        probes["pairs"] = (_asking(run_pairs, read_pairs(arguments.pairs, arguments.most), "pairs"), show_pairs)
    if arguments.crows_pairs:
        probes["crows_pairs"] = (_asking(run_crows_pairs, read_crows_pairs(arguments.crows_pairs), "pairs"), show_crows_pairs)
    if arguments.layers:
        probes["layers"] = (_layers(*arguments.layers, arguments.batch_size), show_layers)
    return probes


def _layers(train, test, batch_size):
    from bert_tf.tasks.config import ColumnsConfig
    from bert_tf.tasks.tagged_files import read_tagged

    parts = [(found.words, found.labels) for found in (read_tagged(path, ColumnsConfig(), True) for path in (train, test))]

    def ask(model):
        from bert_tf.probing import probe_layers
        from bert_tf.progress import Progress

        progress = Progress(model.name, unit="classifiers")

        def show(done, total):
            progress.total = total
            progress.update(done)

        result = probe_layers(*model.encoder(), *parts, batch_size=batch_size, progress=show)
        progress.finish()
        return result

    return ask


def _asking(function, examples, unit):
    from bert_tf.progress import Progress

    def ask(model):
        progress = Progress(model.name, len(examples), unit)
        result = function(model.scorer, examples, progress.update)
        progress.finish()
        return result

    return ask


def show_cloze(result, control):
    rows = dict(result)
    if len(result) > 1:
        rows["mean of kinds"] = None
    print(f"\n  {'cloze questions':<20} right  chance  no context  random    P@1    P@5  median rank  questions")
    for kind in rows:
        numbers = [_mean_of(result, kind, name) for name in ("accuracy", "chance", "without_context")]
        numbers.append(_mean_of(control, kind, "accuracy") if control else None)
        numbers += [_mean_of(result, kind, name) for name in ("p_at_1", "p_at_5", "median_rank")]
        texts = ("-" if n is None or n != n else f"{n:,.0f}" if i == 6 else f"{n:.3f}" for i, n in enumerate(numbers))
        count = sum(found.count for name, found in result.items() if rows[kind] is None or name == kind)
        print("  {:<20}{:>6}  {:>6}  {:>10}  {:>6}  {:>5}  {:>5}  {:>11}  {:>9,}".format(kind[:20], *texts, count))
    print("  right: the answer is the most probable option; P@1, P@5, rank: among the whole vocabulary")


def _mean_of(result, kind, name):
    """A number of a kind, or the mean over the kinds that have it."""
    import math

    found = [getattr(one, name) for one in ([result[kind]] if kind in result else result.values())]
    known = [number for number in found if not math.isnan(number)]
    return sum(known) / len(known) if known else None


def show_pairs(result, control):
    print(f"\n  {'minimal pairs':<30} accuracy  chance  random  pairs")
    rows = {"all": (result.accuracy, result.count)} | result.by_kind
    others = {"all": (control.accuracy, 0)} | control.by_kind if control else {}
    for kind, (accuracy, count) in rows.items():
        random = f"{others[kind][0]:6.3f}" if others else "     -"
        print(f"  {kind:<30} {accuracy:8.3f}   0.500  {random}  {count:5,}")


def show_crows_pairs(result, control):
    from bert_tf.probing.stereotypes import CAVEAT

    print(f"\n  {'CrowS-Pairs':<30}  score  random  pairs")
    rows = {"all": (result.score, result.count)} | result.by_kind
    others = {"all": (control.score, 0)} | control.by_kind if control else {}
    for kind, (score, count) in rows.items():
        random = f"{others[kind][0]:6.3f}" if others else "     -"
        print(f"  {kind:<30} {score:6.3f}  {random}  {count:5,}")
    print(f"  0.5 is no preference; {result.ties} ties. {CAVEAT}")


def show_layers(result, control):
    print("\n  accuracy by layer, 0 is the output of the embeddings")
    for name, found in result.items():
        lines = {name: found.layers, "  selectivity": found.selectivity}
        lines["  random weights"] = control[name].layers if control else None
        for label, values in lines.items():
            if values is not None:
                print(f"  {label:<18}" + " ".join(f"{value:6.3f}" for value in values))
        print(f"  {'  guess':<18}{found.baseline:6.3f}")
    print("  selectivity: accuracy minus that on random tags of words; guess: the most frequent tag of a word, or class")


def _write(results, arguments):
    import dataclasses
    import json
    import math

    from bert_tf.files import atomic_write

    def plain(value):
        if dataclasses.is_dataclass(value):
            value = dataclasses.asdict(value)
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return None if isinstance(value, float) and math.isnan(value) else value

    with atomic_write(arguments.output) as file:
        json.dump({"run": str(arguments.run)} | plain(results), file, indent=2, ensure_ascii=False)
        file.write("\n")
    print(f"\n{arguments.output} has all numbers")
