"""Write shards of training examples from a corpus. Examples are masked later, when they are read.

The corpus is .txt (an empty line between documents), .jsonl, .tsv, .csv, each also gzipped, or .parquet; or folders and
globs of them; for text_pairs .tsv (source<TAB>target) or .jsonl (source, target). The same command again resumes.

With --runner the work runs on Apache Beam (pip install 'bert_tf[beam]'), with the same shards, byte for byte. Every Beam
worker needs bert_tf installed; corpus and output are addresses, or paths that all see.

example:
  bert-tf shards corpus/ --tokenizer tokenizer --output shards
  bert-tf shards 'src/**/*.py' --keep-text --tokenizer tokenizer --output code --format token_blocks
  bert-tf shards s3://b/corpus --tokenizer tokenizer --output s3://b/shards --runner FlinkRunner \\
      --beam-options --flink_master=host:8081 --environment_type=EXTERNAL --environment_config=localhost:50000

in Python:
  from tfrecords import ShardsConfig, write_shards
  write_shards(["corpus/"], "shards", "tokenizer", ShardsConfig(sequence_length=128))
"""

import argparse

from bert_tf.cli.settings import Setting, add_number, add_set, add_text_field, mapping, print_next
from bert_tf.config import build
from bert_tf.errors import ConfigError
from tfrecords.config import SINGLE_FORMATS, ShardsConfig


def add_arguments(parser):
    add, setting, switch = parser.add_argument, {"action": Setting}, {"action": Setting, "nargs": 0, "const": True}
    add("corpus", nargs="+", help="files, folders or globs of text")
    add("--tokenizer", required=True, help="tokenizer folder or vocab.txt; or a run, whose tokenizer is taken")
    add("--output", required=True, help="folder for the shards")
    add_number(parser, "--sequence-length", "tokens of an example, special tokens included (default 128)", **setting)
    formats = (
        "segment_pair (default), sentence_pair, electra, xlnet, full_sentences, doc_sentences, token_blocks, text_pairs"
    )
    add("--format", **setting, help=formats)
    add_number(parser, "--target-length", "text_pairs: tokens of a target (default: --sequence-length)", **setting)
    add("--pair-task", **setting, help="the task that pairs get labels for: nsp (default), sop or none")
    add_text_field(parser, **setting)
    add("--one-document-a-line", **switch, help="in .txt files every line is a document")
    add("--keep-text", **switch, help="for causal LM: keep all white space; a .txt is one document")
    add_number(parser, "--workers", "how many shards to write at a time (default: one for each core)")
    add("--overwrite", action="store_true", help="replace existing shards")
    add_set(parser, "any other setting, e.g. duplicates=5")
    add("--runner", help="DirectRunner, DataflowRunner, FlinkRunner, SparkRunner, ...: of Apache Beam")
    add("--beam-options", nargs=argparse.REMAINDER, default=[], metavar="...", help="the runner's own options, last")


def run(arguments):
    if arguments.beam_options and not arguments.runner:
        raise ConfigError("--beam-options needs --runner; name the Beam runner with --runner")
    config = build(ShardsConfig, mapping(arguments, {}))
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
    print_next(*advice(manifest, arguments.output))


def advice(manifest, output):
    """The commands to run next. Without a mask token, running text is for denoising (with sentinels) or a causal LM."""
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
