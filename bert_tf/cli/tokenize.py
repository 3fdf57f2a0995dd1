"""Tokenize a corpus once, to write shards in several formats from the token ids.

Give the resulting folder to 'bert-tf shards' instead of the corpus: the shards are the same, byte for
byte, and written faster. Run the same command again to resume an interrupted one. With --runner the
work runs on Apache Beam; see 'bert-tf shards --help'.

example:
  bert-tf tokenize corpus/ --tokenizer tokenizer --output tokens
  bert-tf shards tokens --output pairs
  bert-tf shards tokens --output documents --format doc_sentences

in Python:
  from tfrecords import ShardsConfig, tokenize_corpus, write_shards
  tokenize_corpus(["corpus/"], "tokens", "tokenizer")
  write_shards("tokens", "documents", config=ShardsConfig(format="doc_sentences"))
"""

from bert_tf.cli.shards import add_beam_arguments, add_corpus_arguments, beam_options, corpus_flags


def add_arguments(parser):
    parser.add_argument("corpus", nargs="+", help="files, folders or globs of text")
    parser.add_argument("--tokenizer", required=True, help="tokenizer folder or vocab.txt")
    parser.add_argument("--output", required=True, help="folder for the token ids")
    add_corpus_arguments(parser)
    parser.add_argument("--workers", type=int, help="how many files to write at a time (default: one for each core)")
    parser.add_argument("--overwrite", action="store_true", help="replace existing token ids")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting, e.g. sentences=lines"
    )
    add_beam_arguments(parser)


def run(arguments):
    from bert_tf.config import apply_overrides, build
    from tfrecords.shards.config import CorpusConfig

    config = build(CorpusConfig, apply_overrides({}, arguments.set) | corpus_flags(arguments))
    from tfrecords.writing.statistics import report_text
    from tfrecords.writing.writer import tokenize_corpus

    tokens = tokenize_corpus(
        arguments.corpus,
        arguments.output,
        arguments.tokenizer,
        config,
        workers=arguments.workers,
        overwrite=arguments.overwrite,
        beam=beam_options(arguments),
    )
    print("\n".join(report_text(tokens.counts)))
    print(f"next: bert-tf shards {arguments.output} --output shards")
