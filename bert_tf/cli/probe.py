"""What a pretrained model has learned: cloze questions, minimal pairs, stereotypes, and what each layer shows.

Without options the model answers the cloze questions in English that come with the library, by kind of knowledge:
facts, grammar, coreference, lexical meaning, sentiment, reasoning, sequences and sums. Beside each number stand its
chance level and that of the same model with random weights. All of it is printed, and written as one page (probe.html)
beside the numbers (probe.json).

A model that sees both sides is asked for each hidden token (BERT and the like, ELECTRA's generator, XLNet), a decoder
for each token after those before it. --layers trains classifiers on the frozen vectors of each layer: for the tags of
words, for the length of a sentence, and for whether two of its words were exchanged.

example:
  bert-tf probe run
  bert-tf probe run --cloze korean
  bert-tf probe run --pairs BLiMP.zip --most 100
  bert-tf probe run --crows-pairs crows_pairs_anonymized.csv --hide token
  bert-tf probe run --stereoset dev.json
  bert-tf probe run --winobias pro_stereotyped_type1.txt.dev anti_stereotyped_type1.txt.dev
  bert-tf probe run --ettinger CPRAG-102.tsv ROLE-88.tsv NEG-136-SIMP.tsv NEG-136-NAT.tsv
  bert-tf probe run --lama LAMA/ConceptNet/test.jsonl
  bert-tf probe run --lama LAMA/TREx --relations LAMA/relations.jsonl
  bert-tf probe run --layers train.conllu dev.conllu
  bert-tf probe run --word bank --corpus bank.tsv
  bert-tf probe run --wic WiC/train.jsonl WiC/val.jsonl
  bert-tf probe run --heads dev.conllu --most 500
  bert-tf probe task --head-importance dev.tsv --most 256
  bert-tf probe run --trees train.conllu dev.conllu --most 2000
  bert-tf probe run --edges train.jsonl dev.jsonl
  bert-tf probe run --cloze english --pairs BLiMP.zip --output english.html

in Python:
  from bert_tf.probing import CLOZE_SETS, read_cloze, run_cloze, text_scorer
  import bert_tf
  model = bert_tf.load("run")
  scorer = text_scorer(model.objective, model.tokenizer)
  run_cloze(scorer, read_cloze(CLOZE_SETS["english"]))["facts"].accuracy
"""


def add_arguments(parser):
    add = parser.add_argument
    add(
        "run",
        help="a pretraining run, or a published checkpoint with its pretraining head; for --head-importance a fine-tuned one",
    )
    add("--cloze", metavar="SET", help="english, korean, or a file with the columns kind, text, answers, options")
    add("--lama", metavar="PATH", help="a .jsonl file of LAMA, or a folder of them: asked as cloze questions")
    add("--relations", metavar="FILE", help="of --lama: relations.jsonl with the templates of relations")
    add("--pairs", metavar="FILE", help="BLiMP's zip or folder, or a file of sentence_good and sentence_bad")
    add("--crows-pairs", metavar="FILE", help="crows_pairs_anonymized.csv")
    add("--stereoset", metavar="FILE", help="StereoSet's dev.json")
    add("--winobias", nargs=2, metavar=("PRO", "ANTI"), help="two files of WinoBias with the same sentences")
    add("--ettinger", nargs="+", metavar="FILE", help="CPRAG-102.tsv, ROLE-88.tsv, NEG-136-*.tsv")
    add(
        "--layers",
        nargs=2,
        metavar=("TRAIN", "TEST"),
        help="files of tagged words, as `bert-tf finetune` reads them (CoNLL, CoNLL-U)",
    )
    add("--word", help="a word, whose uses in --corpus are compared: a map, neighbours, senses")
    add("--corpus", metavar="FILE", help="of --word: a text a line, or the columns text and perhaps sense")
    add("--layer", type=int, metavar="N", help="of --word: the layer of the map (default: the last)")
    add("--wic", nargs=2, metavar=("TRAIN", "TEST"), help="WiC's train.jsonl and val.jsonl: senses by cosines")
    add("--heads", metavar="FILE", help="CoNLL-U: which attention heads follow relations and positions")
    add("--head-importance", metavar="FILE", help="a labelled file of the task: how much the loss depends on each head")
    add("--trees", nargs=2, metavar=("TRAIN", "TEST"), help="CoNLL-U: are the distances in trees in the vectors?")
    add("--edges", nargs=2, metavar=("TRAIN", "TEST"), help="JSON lines with text or words, spans and label")
    add(
        "--most",
        type=int,
        metavar="N",
        help="the first N questions, pairs, uses, sentences or examples of each file (default: all)",
    )
    add(
        "--hide",
        choices=("word", "token"),
        default="word",
        help="hide the later tokens of a word, too, or each token alone, as Salazar et al. 2020 (default %(default)s)",
    )
    add("--no-control", action="store_true", help="leave out the same model with random weights")
    add("--batch-size", type=int, default=32, help="sequences of a batch (default %(default)s)")
    add(
        "--output",
        default="probe.html",
        metavar="FILE",
        help="the page; its numbers go beside it, as .json (default %(default)s)",
    )


def run(arguments):
    from bert_tf.files import check_output

    for path in _pages(arguments.output):
        check_output(path)

    import keras

    from bert_tf.cli.probes import ProbedModel, wanted_probes
    from bert_tf.errors import ConfigError

    for flag in ("most", "batch_size"):
        value = getattr(arguments, flag)
        if value is not None and value < 1:
            raise ConfigError(f"--{flag.replace('_', '-')} is {value}; it must be at least 1")

    probes = wanted_probes(arguments)
    results = {}
    for name, trained in (("model", True), ("random weights", False))[: 1 if arguments.no_control else 2]:
        keras.utils.set_random_seed(0)
        model = ProbedModel(arguments, name, trained)
        results[name] = {probe: record.ask(model) for probe, record in probes.items()}
    tables = []
    for probe, record in probes.items():
        control = results.get("random weights", {}).get(probe)
        tables += [table(results["model"][probe], control) for table in record.tables]
    print(f"{arguments.run}{model.measure}")
    for table in tables:
        print("\n" + "\n".join(table.lines()))
    _write(results, tables, arguments, model.measure)


def _pages(output):
    """The paths of the page and of the numbers beside it."""
    import os

    name = output.removesuffix(".html").removesuffix(".json")
    if os.path.basename(name) in ("", ".", ".."):
        return output, output  # a folder, which is refused
    return f"{name}.html", f"{name}.json"


def _write(results, tables, arguments, measure):
    import json
    from pathlib import Path

    from bert_tf.files import atomic_write
    from bert_tf.probing import write_probe_page

    page, numbers = _pages(arguments.output)
    with atomic_write(numbers) as file:
        json.dump({"run": str(arguments.run)} | _plain(results), file, indent=2, ensure_ascii=False)
        file.write("\n")
    about = f"What it has learned{measure}" + (
        "" if arguments.no_control else ", beside the same model with random weights"
    )
    write_probe_page(tables, page, Path(arguments.run).name, about)
    print(f"\n{page} shows this; {numbers} has all numbers")


def _plain(value):
    """What JSON can hold: dicts of records, None for nan."""
    import dataclasses
    import math

    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
