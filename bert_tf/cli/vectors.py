"""Train word vectors on a corpus: skip-gram, CBOW or GloVe.

The run holds an encoder without context, whose output is the table of vectors, and a tokenizer of whole words:
finetune, predict and export take it like any other run. Run the same command again to resume an interrupted run; with
--workers 1 the result is then the same bit for bit.

example:
  bert-tf vectors books/ --output vectors
  bert-tf vectors books/ --output glove --config vectors/glove --set algorithm.size=300
  bert-tf vectors books/ --output vectors --similarity wordsim353.tsv
  bert-tf probe neighbours vectors king
  bert-tf convert vectors vectors.bin --to word2vec_binary
  bert-tf finetune --init-from vectors --train train.tsv --dev dev.tsv --output task \\
      --set encoder.family=bilstm --set encoder.hidden_size=256

in Python:
  from bert_tf import config
  from bert_tf.vectors import VectorsConfig, train_vectors
  run, metrics = train_vectors(config.load(VectorsConfig, "vectors/skip_gram"), "books/", "vectors")
"""

from bert_tf.cli import settings
from bert_tf.cli.pretrain import FINETUNE
from bert_tf.files import display_path
from bert_tf.vectors.vectors_config import VectorsConfig


def add_arguments(parser):
    add = parser.add_argument
    add("corpus", nargs="+", help="files, folders or globs of text")
    settings.add_config(parser, "vectors/skip_gram", VectorsConfig)
    add("--output", required=True, help="run directory: a new one, or one to resume")
    settings.add_text_field(parser, default="text")
    invalid = "replace bytes that are not UTF-8 by U+FFFD"
    add("--replace-invalid", dest="errors", action="store_const", const="replace", default="strict", help=invalid)
    workers = "processes that train (default: one on each core)"
    add("--workers", action=settings.Setting, key="train.workers", type=int, help=workers)
    judged = "print how well the vectors agree with judged word pairs (word, word, number); may be repeated"
    add("--similarity", action="append", default=[], metavar="FILE", help=judged)


def run(arguments):
    config = settings.load(VectorsConfig, arguments)
    from bert_tf.vectors.training import train_vectors
    from bert_tf.vectors.word_similarity import WordTable, read_pairs, similarity

    for path in arguments.similarity:  # what is wrong with a file is wrong after hours of training, too
        read_pairs(path)

    directory, metrics = train_vectors(
        config, arguments.corpus, arguments.output, arguments.text_field, arguments.errors
    )
    size = directory.section("model")
    name, sizes = display_path(directory.path), f"{size['vocabulary_size']:,} vectors of {size['hidden_size']} numbers"
    print(f"{name}: {sizes}, loss {metrics['loss']:.4f}")
    if arguments.similarity:
        table = WordTable.load(directory.path)
        for path in arguments.similarity:
            scores = similarity(table, path)
            agreement = f"Spearman {scores['spearman']:.3f} of {scores['pairs']} pairs"
            print(f"  {path}: {agreement}; {scores['unknown']} have a word without a vector")
    settings.print_next(f"bert-tf probe neighbours {arguments.output} WORD", FINETUNE.format(arguments.output))
