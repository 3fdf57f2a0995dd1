"""Train a small model, the student, to imitate a large one, the teacher.

With a fine-tuned teacher and labelled or unlabelled texts the student learns the teacher's task; the run is one of
fine-tuning, which evaluate, predict and export take. With --shards it is pretrained by masked LM beside a
pretrained teacher; the run is one of pretraining. Run the same command again to resume.

The student is a published size (--student bert_mini), a pretrained model (--student RUN), or layers of the
teacher (--set student.layers=[0,2,4]). It reads the teacher's tokens. `terms` in the configuration is the loss.

example:
  bert-tf distill --teacher sentiment --student bert_mini --train train.tsv --dev dev.tsv --output small
  bert-tf distill --config distill/well_read --teacher sentiment --student run --unlabelled texts.txt \\
      --dev dev.tsv --output small
  bert-tf distill --config distill/distilbert --teacher bert --shards shards --output distilbert

in Python:
  import bert_tf
  model = bert_tf.distill("sentiment", student="bert_mini", train="train.tsv", dev="dev.tsv", output="small")
  model.predict("a film")
"""

from bert_tf.cli import settings
from bert_tf.distillation.distill_config import DistillConfig


def add_arguments(parser):
    add = parser.add_argument
    settings.add_config(parser, None, DistillConfig, "distill/soft_labels, with --shards distill/distilbert")
    help = "a fine-tuned run, or with --shards a pretrained one; or a published model; sets teacher.path"
    add("--teacher", help=help)
    add("--student", help="a published size such as bert_mini, or a pretrained model to start from")
    add("--train", help="labelled training file; sets data.train")
    add("--unlabelled", help="texts without labels, for the teacher to label; sets data.unlabelled")
    add("--dev", help="labelled file that chooses the best epoch; sets data.dev")
    add("--test", help="labelled file to evaluate the best epoch on; sets data.test")
    add("--shards", help="folder of 'bert-tf shards', to distil in pretraining; sets data.shards")
    add("--output", required=True, help="run directory: a new one, or one to resume")


def run(arguments):
    from bert_tf import config as configuration
    from bert_tf.distillation.distill_config import (
        DistillConfig,
        DistillPretrainConfig,
        check_distillation,
        check_distilled_pretraining,
    )
    from bert_tf.errors import ConfigError
    from bert_tf.models.families import PRESETS

    if arguments.config is None:
        arguments.config = "distill/soft_labels" if arguments.shards is None else "distill/distilbert"
    size = arguments.student if arguments.student in PRESETS else None
    run_of_student = arguments.student if size is None else None
    given = {"teacher__path": arguments.teacher}
    splits = {split: getattr(arguments, split) for split in ("train", "unlabelled", "dev", "test")}
    data = settings.section(settings.mapping(arguments, data__shards=arguments.shards), "data")
    # Its sizes stand in place of the recipe's, below those of --set.
    sizes = [] if size is None else ["model={preset: " + size + "}"]
    if data.get("shards"):
        for split, path in splits.items():
            if path is not None:
                raise ConfigError(f"--{split} is for a teacher of a task, and --shards for pretraining; remove one")
        arguments.set = sizes + arguments.set
        mapping = settings.mapping(arguments, **given, data__shards=arguments.shards, train__init_from=run_of_student)
        config = configuration.build(DistillPretrainConfig, mapping)
        check_distilled_pretraining(config)  # before TensorFlow is imported, which takes seconds
        return _pretrain(config, arguments.output)
    arguments.set = [f"student.{setting}" for setting in sizes] + arguments.set
    files = {f"data__{split}": path for split, path in splits.items()}
    mapping = settings.mapping(arguments, **given, **files, init_from=run_of_student)
    config = configuration.build(DistillConfig, mapping)
    check_distillation(config)
    return _distill(config, arguments.output)


def _distill(config, output):
    from bert_tf.cli.finetune import print_summary
    from bert_tf.distillation import distill
    from bert_tf.distillation.comparison import table_of

    summary = distill(config, output)
    print_summary(summary)
    print("\n".join(["", table_of(summary["comparison"], summary["metric"]).text(), ""]))
    print(f"report: {output}/report.html")
    print("next: " + "\n      ".join([f'bert-tf predict {output} "Some text."', f"bert-tf export {output}"]))


def _pretrain(config, output):
    from bert_tf.cli.pretrain import advice, print_metrics
    from bert_tf.distillation import distill_pretraining

    directory, metrics = distill_pretraining(config, output)
    print_metrics(directory, metrics)
    print("next: " + "\n      ".join([f"tensorboard --logdir {output}/tensorboard", *advice(config, output)]))
