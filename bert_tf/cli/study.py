"""Pretrain and fine-tune configurations that differ in a few settings, and compare them in one table.

A study file (configs/ablations/) has one row for each configuration, with the settings in which it
differs. Run the same command again to resume an interrupted study. --rows runs only some rows, so
that several processes can work on one study. The section corpus sets how the text is read, e.g.
--set corpus.text_field=body. A study without shards, such as ablations/bert_features, pretrains
nothing: its rows fine-tune the model --init-from with different settings.
A study with the section halving is a search: all rows get a short training, the better ones a longer one.

example:
  bert-tf study --config ablations/masked_lm --corpus corpus.jsonl --held-out last.jsonl \\
      --tokenizer tokenizer --output study --set finetune.parts_of_speech.data.train=train.conll \\
      --set finetune.parts_of_speech.data.dev=dev.conll
  bert-tf study --config ablations/bert_features --init-from bert-base-cased --output features \\
      --set finetune.entities.data.train=eng.train --set finetune.entities.data.dev=eng.testa
  bert-tf study --config my_study.yaml --corpus corpus/ --tokenizer tokenizer --output study --rows spans

in Python:
  from bert_tf import config
  from bert_tf.runs.study import StudyConfig, run_study
  run_study(config.load(StudyConfig, "my_study.yaml"), "corpus/", "tokenizer", "study")
"""

from pathlib import Path

from bert_tf.cli import settings
from bert_tf.errors import ConfigError
from bert_tf.runs.study_config import StudyConfig
from bert_tf.runs.study_plan import plan


def add_arguments(parser):
    add = parser.add_argument
    settings.add_config(parser, "ablations/masked_lm", StudyConfig)
    add("--corpus", nargs="+", help="files, folders or globs of text to pretrain on")
    add("--held-out", nargs="+", help="held-out text to evaluate the pretraining on")
    add("--tokenizer", help="tokenizer folder or vocab.txt, of the text to pretrain on")
    add("--init-from", action=settings.Setting, help="the model that a study without shards fine-tunes")
    add("--output", required=True, help="folder for shards, runs and results.json")
    add("--rows", nargs="+", metavar="ROW", help="run only these rows")


def run(arguments):
    config = settings.load(StudyConfig, arguments)
    for name in ("corpus", "tokenizer"):
        if config.pretrains and not getattr(arguments, name):
            raise ConfigError(f"--{name} must be given: the study pretrains its rows")
    for name in ("corpus", "tokenizer", "held_out"):
        if not config.pretrains and getattr(arguments, name):
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} does not apply: the study has no shards, and pretrains nothing; remove it")
    plan(config, Path(arguments.output))  # before TensorFlow is imported, which takes seconds
    from bert_tf.runs.halving import run_halving
    from bert_tf.runs.study import run_study

    data = arguments.corpus, arguments.tokenizer, arguments.output, arguments.held_out
    if config.halving and arguments.rows:
        raise ConfigError("--rows chooses rows, and so does the section halving; remove one of them")
    table = run_halving(config, *data) if config.halving else run_study(config, *data, arguments.rows)
    print(f"\n{table.markdown()}\n\nreport: {arguments.output}/report.html")
