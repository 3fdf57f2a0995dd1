"""Turn a corpus into shards of training examples, masked later, when they are read.

The corpus is .txt (a blank line between documents), .jsonl (a "text" field), either with .gz,
folders and globs of them; or the one folder that 'bert-tf tokenize' wrote. Running the same command again continues an interrupted one; the shards
do not depend on the number of workers.

example:
  bert-tf shards corpus/ --tokenizer tokenizer --output shards
  bert-tf shards corpus/*.jsonl.gz --tokenizer tokenizer --output shards512 --sequence-length 512 \\
      --format full_sentences --workers 16
  bert-tf shards tokens --output ordered --pair sentence_order

in Python:
  from tfrecords.writer import ShardsConfig, write_shards
  write_shards(["corpus/"], "shards", "tokenizer", ShardsConfig(sequence_length=128))
"""


def add_arguments(parser):
    parser.add_argument("corpus", nargs="+", help="files, folders or globs of text, or one folder of token ids")
    parser.add_argument("--tokenizer", help="tokenizer folder or vocab.txt; a folder of token ids has its own")
    parser.add_argument("--output", required=True, help="folder for the shards")
    parser.add_argument("--sequence-length", type=int, help="tokens of an example (default 128)")
    parser.add_argument("--format", help="segment_pair (default), sentence_pair, full_sentences or doc_sentences")
    parser.add_argument("--pair", help="next_sentence (default of pairs), sentence_order or none")
    parser.add_argument("--workers", type=int, help="processes (default: one a core)")
    parser.add_argument("--overwrite", action="store_true", help="replace the shards that are there")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting, e.g. duplicates=5"
    )


def run(arguments):
    from bert_tf.config import apply_overrides, build
    from tfrecords.statistics import report
    from tfrecords.writer import ShardsConfig, write_shards

    flags = {"sequence_length": arguments.sequence_length, "format": arguments.format, "pair": arguments.pair}
    flags = {key: value for key, value in flags.items() if value is not None}
    config = build(ShardsConfig, apply_overrides({}, arguments.set) | flags)
    manifest = write_shards(
        arguments.corpus,
        arguments.output,
        arguments.tokenizer,
        config,
        workers=arguments.workers,
        overwrite=arguments.overwrite,
    )
    print("\n".join(report(manifest.counts, manifest.sequence_length)))
    print(f"next: bert-tf inspect {arguments.output}\n      bert-tf pretrain --shards {arguments.output} --output run")
