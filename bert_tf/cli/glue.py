"""Fine-tune on the tasks of GLUE, and print the table beside published numbers.

FOLDER is GLUE as it is distributed: a folder for each task (CoLA, SST-2, MRPC, QQP, STS-B, MNLI, QNLI,
RTE, WNLI, and AX for the diagnostics) with train.tsv, dev.tsv and test.tsv. What is there is run, the
smallest first. The test files are answered in OUTPUT/submission, and OUTPUT/submission.zip is what
gluebenchmark.com takes if all tasks are there. Run the same command again to resume.

example:
  bert-tf glue GLUE --init-from run --output glue
  bert-tf glue GLUE --init-from hf://google-bert/bert-base-uncased --output glue \\
      --set finetune.train.seeds=5 --set tasks.cola.optimizer.learning_rate=1e-5 --set from_mnli=true
  bert-tf glue GLUE --init-from run --output glue --tasks rte mrpc

in Python:
  from bert_tf import config
  from bert_tf.training.glue import GlueConfig, run_glue
  run_glue(config.load(GlueConfig, "benchmarks/glue", ["finetune.init_from=run"]), "GLUE", "glue")
"""

from bert_tf.cli import settings
from bert_tf.console import table


def add_arguments(parser):
    from bert_tf.tasks.glue_files import GLUE_FILES

    parser.add_argument("folder", help="holds a folder for each task")
    settings.add_config(parser, "benchmarks/glue", _config_class)
    parser.add_argument("--init-from", help="a pretrained run, a published checkpoint, or hf://owner/name")
    parser.add_argument("--output", required=True, help="folder for the runs, results.json and the submission")
    parser.add_argument("--tasks", nargs="+", choices=tuple(GLUE_FILES), metavar="TASK", help=f"only {', '.join(GLUE_FILES)}")


def _config_class():
    from bert_tf.training.glue_config import GlueConfig

    return GlueConfig


def run(arguments):
    from bert_tf.tasks.glue_files import find_glue
    from bert_tf.training.glue_config import GlueConfig, plan_glue

    config = settings.load(GlueConfig, arguments, finetune__init_from=arguments.init_from)
    found, _ = find_glue(arguments.folder, arguments.tasks)
    plan_glue(config, found, arguments.output)  # before TensorFlow is imported, which takes seconds
    from bert_tf.training.glue import glue_score, rows, run_glue, write_submission

    results = run_glue(config, arguments.folder, arguments.output, arguments.tasks)
    cells = rows(results)
    print("", *table(cells, right=range(1, len(cells[0]))), sep="\n")
    score = glue_score(results)
    if score is not None:
        print(f"  GLUE score of the dev sets: {score:.1f}")
    missing = write_submission(arguments.output)
    if missing:
        print(f"  {arguments.output}/submission.zip lacks {', '.join(missing)}: the leaderboard takes only all of them")
    else:
        print(f"  ready to be submitted: {arguments.output}/submission.zip")
