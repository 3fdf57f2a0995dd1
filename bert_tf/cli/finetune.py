"""Fine-tune a pretrained model on labelled data.

The files are TSV, CSV or JSON with named columns (text or sentence; sentence1 and sentence2 for
pairs; label), or CoNLL for tagging; for text_to_text the columns source and target. Set
data.columns if your columns have other names, task.preset for a GLUE task, or task.format for a
data set that T5 was trained on. Run the same command again to resume an interrupted run.

A setting with a list of values is a grid: every combination is fine-tuned in a folder of its own, and the
one with the best dev metric is what evaluate, predict and export use.

example:
  bert-tf finetune --init-from run --train train.tsv --dev dev.tsv --output sentiment
  bert-tf finetune --config finetune/tagging --init-from run --train train.conll --dev dev.conll \\
      --output tagger --set train.seeds=3
  bert-tf finetune --config finetune/models/t5 --init-from t5 --train rte/train.tsv --dev rte/dev.tsv \\
      --output rte --set task.format=rte
  bert-tf finetune --init-from run --train train.tsv --dev dev.tsv --output grid \\
      --set optimizer.learning_rate=[2e-5,3e-5,5e-5] --set train.batch_size=[16,32] --set train.epochs=[2,3,4]

in Python:
  import bert_tf
  model = bert_tf.finetune("run", train="train.tsv", dev="dev.tsv", output="sentiment", epochs=3)
  model.predict("a film")
"""

from bert_tf.cli import settings
from bert_tf.reporting.tables import metrics_table
from bert_tf.runs.grid_config import read_grid
from bert_tf.tasks import TASKS, check_task
from bert_tf.training.finetune_config import FinetuneConfig


def add_arguments(parser):
    add = parser.add_argument
    settings.add_config(parser, "finetune/classification", FinetuneConfig)
    start = "the pretrained run directory, a published checkpoint, or hf://owner/name"
    add("--init-from", action=settings.Setting, help=start)
    add("--train", action=settings.Setting, key="data.train", help="labelled training file")
    add("--dev", action=settings.Setting, key="data.dev", help="labelled file that chooses the best epoch")
    add("--test", action=settings.Setting, key="data.test", help="labelled file to evaluate the best epoch on")
    add("--output", required=True, help="run directory: a new one, or one to resume")


def run(arguments):
    grid = read_grid(settings.mapping(arguments))  # before TensorFlow is imported, which takes seconds
    from bert_tf.export.served import SERVED
    from bert_tf.runs.grid import finetune_grid

    summary, table = finetune_grid(grid, arguments.output)
    measured = arguments.output
    if table is not None:
        measured = f"{arguments.output}/{summary['best']}"
        print(f"\n{table.text()}\n\nbest: {summary['best']}")
    print_summary(summary)
    print(f"report: {measured}/report.html")
    record = TASKS[check_task(grid.configs[0].task).kind]
    commands = [f"tensorboard --logdir {arguments.output}", settings.predict_command(arguments.output, record.example)]
    if record.name in SERVED:
        commands.append(f"bert-tf export {arguments.output}")
    settings.print_next(*commands)


def print_summary(summary):
    """The metrics with their spread over seeds and the baselines beside them, and the warnings."""
    print(f"\n{metrics_table({split: summary[split] for split in ('dev', 'test') if split in summary}).text()}")
    for warning in summary["warnings"]:
        print(f"  warning: {warning}")
