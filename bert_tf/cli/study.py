"""Compare pretrainings that differ in a few settings: shards, pretraining, fine-tuning, one table.

A study file (configs/ablations/) names the rows and what differs between them. Running the same
command again continues an interrupted study; --rows shares one out over several processes. How the
text is read is set in corpus, e.g. --set corpus.text_field=body.

example:
  bert-tf study --config ablations/masked_lm --corpus corpus.jsonl --held-out last.jsonl \\
      --tokenizer tokenizer --output study --set finetune.parts_of_speech.data.train=train.conll \\
      --set finetune.parts_of_speech.data.dev=dev.conll
  bert-tf study --config my_study.yaml --corpus corpus/ --tokenizer tokenizer --output study --rows spans

in Python:
  from bert_tf import config
  from bert_tf.training.study import StudyConfig, run_study
  run_study(config.load(StudyConfig, "my_study.yaml"), "corpus/", "tokenizer", "study")
"""

from pathlib import Path

from bert_tf.cli import settings


def add_arguments(parser):
    settings.add_config(parser, "ablations/masked_lm", _config_class)
    parser.add_argument("--corpus", nargs="+", required=True, help="files, folders or globs of text")
    parser.add_argument("--held-out", nargs="+", help="text to measure the pretraining with")
    parser.add_argument("--tokenizer", required=True, help="tokenizer folder or vocab.txt")
    parser.add_argument("--output", required=True, help="folder for shards, runs and results.json")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="do these alone")


def _config_class():
    from bert_tf.training.study_config import StudyConfig

    return StudyConfig


def run(arguments):
    from bert_tf.training.study_config import StudyConfig
    from bert_tf.training.study_plan import plan

    config = settings.load(StudyConfig, arguments)
    plan(config, Path(arguments.output))  # before TensorFlow is imported, which takes seconds
    from bert_tf.training.study import markdown, run_study

    table = run_study(
        config, arguments.corpus, arguments.tokenizer, arguments.output, arguments.held_out, arguments.rows
    )
    print(f"\n{markdown(table)}")
