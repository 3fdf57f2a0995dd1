"""What a pretrained model has learned: cloze questions, minimal pairs, stereotypes, and what each layer shows.

Beside each number stand its chance level and that of the same model with random weights. All of it is printed, and
written as a page and as numbers: probe.html, probe.json.

A model that sees both sides is asked for each hidden token (BERT, ELECTRA's generator, XLNet), a decoder for each token
after those before it. `layers`, `word`, `wic`, `heads`, `positions`, `trees` and `edges` read the layers of the frozen model;
`head_importance` a fine-tuned one. `attention` draws every head for a text or a pair; `neighbours` prints nearest words.

example:
  bert-tf probe cloze run
  bert-tf probe pairs run BLiMP.zip --most 100
  bert-tf probe crows_pairs run crows_pairs_anonymized.csv --hide token
  bert-tf probe ettinger run CPRAG-102.tsv ROLE-88.tsv NEG-136-SIMP.tsv NEG-136-NAT.tsv
  bert-tf probe layers run train.conllu dev.conllu
  bert-tf probe head_importance task dev.tsv --most 256
  bert-tf probe edges run train.jsonl dev.jsonl --set epochs=5
  bert-tf probe attention run "The keys to the cabinet are on the table."
  bert-tf probe neighbours vectors king queen

in Python:
  import bert_tf
  from bert_tf.probing import Cloze, text_scorer
  model, probe = bert_tf.load("run"), Cloze()
  probe.run(text_scorer(model.objective, model.tokenizer), probe.read("english"))["facts"]["right"]
"""

import dataclasses
import json
from pathlib import Path

import bert_tf
from bert_tf.cli.settings import add_batch_size, add_number, add_set, mapping
from bert_tf.config import build
from bert_tf.files import atomic_write, check_output
from bert_tf.progress import reporter


def add_arguments(parser):
    add, hide = parser.add_argument, {"choices": ("word", "token"), "default": "word"}
    add("probe", help="its name")
    add("run", help="a pretraining run, or a published checkpoint with its head; for head_importance a fine-tuned run")
    add("files", nargs="*", metavar="FILE", help="what it reads; attention reads texts, neighbours and word words")
    add_number(parser, "--most", "the first N rows of each file (default: all)")
    add("--hide", **hide, help="hide the later tokens of a word, too (default), or each token alone")
    add("--no-control", action="store_true", help="leave out the same model with random weights")
    add_batch_size(parser, 32, "sequences")
    page = "the page; its numbers go beside it, as .json (default %(default)s)"
    add("--output", default="probe.html", metavar="FILE", help=page)
    add_set(parser, "change a setting of the probe, e.g. --set layer=4; may be repeated")


def run(arguments):
    name = arguments.output.removesuffix(".html").removesuffix(".json")
    page, numbers = f"{name}.html", f"{name}.json"
    for path in (arguments.output, page, numbers):
        check_output(path)

    import keras

    from bert_tf.probing import PROBES

    probe = build(PROBES[arguments.probe], mapping(arguments, {}))
    rows = probe.read_files(arguments.files, arguments.most)
    tables = {}
    for name, trained in (("model", True), ("random weights", False)):
        if not trained and (arguments.no_control or not probe.has_control):
            continue
        keras.utils.set_random_seed(0)
        model = _model(probe.asks, arguments, trained)
        if trained:
            probe.warn(model, rows)
            measure = f": by {model.measure}" if probe.asks == "scorer" else ""
        tables[name] = probe.run(model, rows, reporter(name, probe.unit))
    table = tables["model"].beside(tables.get("random weights"))
    print(f"{arguments.run}{measure}\n", table.title, table.table().text(), f"  {table.note}", sep="\n")
    _write(probe, tables, table, page, numbers, arguments, measure)


def _model(asks, arguments, trained):
    """What a probe asks, with its weights or with random ones."""
    from bert_tf.probing import LayerReader, text_scorer
    from bert_tf.vectors import WordTable

    if asks == "vectors":
        return WordTable.load(arguments.run)
    model = bert_tf.load(arguments.run, trained=trained)
    if asks == "scorer":
        return text_scorer(model.objective, model.tokenizer, arguments.batch_size, arguments.hide)
    if asks == "layers":
        return LayerReader(model.encoder, model.tokenizer, arguments.batch_size)
    return model.task, model.model


def _write(probe, tables, table, page, numbers, arguments, measure):
    content = {"run": arguments.run, "probe": arguments.probe} | {name: one.numbers() for name, one in tables.items()}
    with atomic_write(numbers) as file:
        json.dump(content, file, indent=2, ensure_ascii=False, default=dataclasses.asdict)
        file.write("\n")
    beside = ", beside the same model with random weights" if table.control else ""
    probe.write_page(table, page, Path(arguments.run).name, f"What it has learned{measure}{beside}")
    print(f"\n{page} shows this; {numbers} has all numbers")
