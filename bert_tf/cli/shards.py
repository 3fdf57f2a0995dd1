"""Write shards of training examples from a corpus. Examples are masked later, when they are read.

The corpus is .txt (an empty line between documents), .jsonl (a "text" field), .tsv or .csv (a column), each also gzipped,
or .parquet; or folders and globs of them. With --format text_pairs it is .tsv (source<TAB>target) or .jsonl (fields source
and target). Run the same command again to resume. The shards do not depend on the number of workers.

With --runner the work runs on Apache Beam (pip install -e '.[beam]' in the clone of this library), with the same shards, byte
for byte. Everything after --beam-options is passed to Beam, so put it last. Every Beam worker needs bert_tf installed;
corpus and output are addresses, or paths that all see. On a single machine, --workers is faster.

example:
  bert-tf shards corpus/ --tokenizer tokenizer --output shards
  bert-tf shards reviews.csv --text-field comment --tokenizer tokenizer --output shards
  bert-tf shards 'src/**/*.py' --keep-text --tokenizer tokenizer --output code --format token_blocks
  bert-tf shards train.en-de.tsv --format text_pairs --tokenizer tokenizer --output pairs --target-length 128
  bert-tf shards s3://b/corpus --tokenizer tokenizer --output s3://b/shards --runner FlinkRunner \\
      --beam-options --flink_master=host:8081 --environment_type=EXTERNAL --environment_config=localhost:50000

in Python:
  from tfrecords import ShardsConfig, write_shards
  write_shards(["corpus/"], "shards", "tokenizer", ShardsConfig(sequence_length=128))
"""

import argparse

from bert_tf.cli.settings import add_set, at_least, overrides
from bert_tf.errors import ConfigError


def add_arguments(parser):
    add = parser.add_argument
    add("corpus", nargs="+", help="files, folders or globs of text")
    add("--tokenizer", required=True, help="tokenizer folder or vocab.txt")
    add("--output", required=True, help="folder for the shards")
    add(
        "--sequence-length",
        type=at_least(1),
        metavar="N",
        help="tokens of an example, special tokens included (default 128)",
    )
    add(
        "--format",
        help="segment_pair (default), sentence_pair, electra, xlnet, full_sentences, doc_sentences, token_blocks or "
        "text_pairs",
    )
    add(
        "--target-length",
        type=at_least(1),
        metavar="N",
        help="text_pairs: tokens of a target (default: --sequence-length)",
    )
    add("--pair-task", help="the task that pairs get labels for: nsp (default), sop or none")
    add(
        "--text-field",
        metavar="NAME",
        help="the field or column that holds the text (default text, or the one of a usual name); a number from 0 for a "
        ".tsv or .csv without a header",
    )
    add("--one-document-a-line", action="store_true", help="in .txt files every line is a document")
    add("--keep-text", action="store_true", help="for causal LM: keep all white space; a .txt is one document")
    add(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="how many shards to write at a time (default: one for each core)",
    )
    add("--overwrite", action="store_true", help="replace existing shards")
    add_set(parser, "any other setting, e.g. duplicates=5")
    add("--runner", help="DirectRunner, DataflowRunner, FlinkRunner, SparkRunner, ...: of Apache Beam")
    add("--beam-options", nargs=argparse.REMAINDER, default=[], metavar="...", help="the runner's own options, last")


def run(arguments):
    from bert_tf.config import apply_overrides, build
    from tfrecords.config import ShardsConfig

    if arguments.beam_options and not arguments.runner:
        raise ConfigError("--beam-options needs --runner; name the Beam runner with --runner")
    names = ("sequence_length", "format", "pair_task", "target_length", "text_field")
    flags = {name: getattr(arguments, name) for name in names}
    flags |= {name: getattr(arguments, name) or None for name in ("one_document_a_line", "keep_text")}
    config = build(ShardsConfig, apply_overrides({}, overrides(arguments, **flags)))
    from tfrecords.shards.statistics import report
    from tfrecords.shards.writer import write_shards

    manifest = write_shards(
        arguments.corpus,
        arguments.output,
        arguments.tokenizer,
        config,
        workers=arguments.workers,
        overwrite=arguments.overwrite,
        beam=[f"--runner={arguments.runner}", *arguments.beam_options] if arguments.runner else None,
    )
    print("\n".join(report(manifest.counts, manifest.sequence_length, manifest.target_length)))
    print("next: " + "\n      ".join(advice(manifest, arguments.output)))


def advice(manifest, output):
    """The commands to run next. Without a mask token, running text is for denoising (with sentinels) or a causal LM."""
    from tfrecords.config import SINGLE_FORMATS
    from tfrecords.reading.reader import shards_tokenizer

    tokenizer, packing = shards_tokenizer(output), manifest.packing["format"]
    objective, recipe = "", ""
    if packing == "text_pairs":
        recipe = "transformer_base"
    elif packing == "xlnet":
        recipe = "xlnet_base"
    elif tokenizer.mask_id is None and packing not in SINGLE_FORMATS:
        return [f"write them again with --format token_blocks: no objective learns from {packing} without a mask token"]
    elif tokenizer.mask_id is None and tokenizer.sentinel_ids:
        objective, recipe = "denoising", "t5_laptop"
    elif tokenizer.mask_id is None:
        objective, recipe = "causal_lm", "gpt_laptop" if manifest.sequence_length <= 128 else "gpt2_small"
    return [
        f"bert-tf inspect {output}" + (f" --objective {objective}" if objective else ""),
        "bert-tf pretrain " + (f"--config pretrain/{recipe} " if recipe else "") + f"--shards {output} --output run",
    ]
