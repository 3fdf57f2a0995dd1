"""Write a file of texts with other versions of each, in which some words are replaced by words that fit.

A small student learns more from its teacher's answers to many texts. This is TinyBERT's way to make them: a word of one
token is replaced by what a model with masked LM finds probable in its place, a word of several tokens by one of those
with the nearest vectors. The labels are those of the original; a text of `bert-tf distill --unlabelled` needs none. Run
the same command again to resume.

TinyBERT takes bert_base_cased, the vectors of GloVe, and 10 (MNLI, QQP), 20 (SST-2, QNLI) or 30 versions of a text.

example:
  bert-tf augment train.tsv --model run --output augmented.jsonl
  bert-tf augment train.tsv --model bert-base-uncased --vectors glove.6B.50d.txt --copies 30 --output augmented.jsonl
  bert-tf distill --config distill/tinybert --teacher sentiment --student run --train augmented.jsonl --dev dev.tsv --output small

in Python:
  import bert_tf
  from bert_tf.distillation import Augmenter
  model = bert_tf.load("run")
  print(Augmenter(model.objective, model.tokenizer, copies=5).versions(["A quiet triumph."], [(0,)]))
"""

import dataclasses

import bert_tf
from bert_tf.cli import labelled
from bert_tf.cli.settings import at_least


def add_arguments(parser):
    add = parser.add_argument
    add("file", help="TSV, CSV, JSON or Parquet with texts or pairs, or .txt with a text a line")
    add("--model", required=True, help="a run pretrained with masked LM, or a published checkpoint with that head")
    add(
        "--vectors",
        help="word vectors, of 'bert-tf vectors' or a file of GloVe, word2vec or fastText, for words of several tokens; without them those words stay",
    )
    add("--output", required=True, help="the file to write, .jsonl")
    add("--copies", type=int, default=20, help="versions of each text (default %(default)s)")
    add("--rate", type=float, default=0.4, help="the probability that a word is replaced (default %(default)s)")
    add("--candidates", type=int, default=15, help="how many words are drawn from (default %(default)s)")
    add(
        "--stop-words",
        default="english",
        metavar="FILE",
        help="a file of words that stay, a word a line; or 'none' (default: those of English that scikit-learn lists)",
    )
    add("--unlabelled", action="store_true", help="the file has no labels, or they are not wanted")
    add("--seed", type=at_least(0), default=0, help="of the draws (default %(default)s)")
    labelled.add_arguments(parser)


def run(arguments):
    from bert_tf.errors import ConfigError
    from bert_tf.tasks.rows.columns_config import TextColumns, changed_columns

    columns = changed_columns(TextColumns(), labelled.columns(arguments))
    if not arguments.output.endswith(".jsonl"):
        raise ConfigError(f"--output is {arguments.output}; it must end with .jsonl: the file has JSON lines")
    settings = {name: getattr(arguments, name) for name in ("copies", "rate", "candidates", "seed")}

    from bert_tf.checkpoints import open_source
    from bert_tf.distillation.augmentation import ENGLISH_STOP_WORDS, Augmenter
    from bert_tf.distillation.augmented_file import augment_file
    from bert_tf.tasks.rows.files import read_text
    from bert_tf.tasks.rows.opening import open_table
    from bert_tf.tasks.texts.text_task import label_reader, read_texts
    from bert_tf.vectors import WordTable

    table = open_table(arguments.file, columns)
    has_labels = not arguments.unlabelled and table.format != "lines"
    examples = read_texts(table, columns, label_reader if has_labels else None)
    stop_words = {"english": ENGLISH_STOP_WORDS, "none": frozenset()}.get(arguments.stop_words)
    if stop_words is None:
        stop_words = {word.lower() for word in read_text(arguments.stop_words).split()}
    model = bert_tf.load(arguments.model)
    words = WordTable.load(arguments.vectors) if arguments.vectors else None
    augmenter = Augmenter(
        model.objective, model.tokenizer, words, stop_words=stop_words, batch_size=arguments.batch_size, **settings
    )
    key = settings | {
        "model": model.source.identity(),
        "tokenizer": model.tokenizer.fingerprint,
        "vectors": open_source(arguments.vectors).identity() if arguments.vectors else None,
        "stop_words": sorted(stop_words),
        "labels": has_labels,
        "columns": dataclasses.asdict(columns) | {"format": table.format},
    }
    count = augment_file(augmenter, examples, arguments.output, key)
    print(f"{count:,} examples in {arguments.output}, of {len(examples):,}")
    print(
        f"next: bert-tf distill --config distill/tinybert --teacher TEACHER --student RUN --train {arguments.output} --dev DEV --output small"
    )
