"""Train a small model, the student, to imitate a large one, the teacher; or write other versions of its texts first.

With a fine-tuned teacher and labelled or unlabelled texts the student learns the teacher's task; the run is one of
fine-tuning, which evaluate, predict and export take. With --shards it is pretrained by masked LM beside a
pretrained teacher; the run is one of pretraining. Run the same command again to resume.

The student is a published size (--student bert_mini), a pretrained model (--student RUN), or layers of the
teacher (--set student.layers=[0,2,4]). It reads the teacher's tokens. `terms` in the configuration is the loss.

With --augment the file --output holds the texts of --train, or of --unlabelled, each with versions in which some words
are replaced by what that model finds probable there, as TinyBERT does; --set copies=30 or vectors=glove.6B.50d.txt.

example:
  bert-tf distill --teacher sentiment --student bert_mini --train train.tsv --dev dev.tsv --output small
  bert-tf distill --config distill/distilbert --teacher bert --shards shards --output distilbert
  bert-tf distill --augment run --train train.tsv --output augmented.jsonl

in Python:
  import bert_tf
  model = bert_tf.distill("sentiment", student="bert_mini", train="train.tsv", dev="dev.tsv", output="small")
  model.predict("a film")
"""

from bert_tf.cli import settings
from bert_tf.cli.finetune import print_summary
from bert_tf.cli.pretrain import advice, print_metrics
from bert_tf.cli.settings import Setting
from bert_tf.config import build
from bert_tf.distillation import distill_config
from bert_tf.distillation.augment_config import AugmentConfig
from bert_tf.distillation.distill_config import DistillConfig, DistillPretrainConfig
from bert_tf.errors import ConfigError
from bert_tf.models.families import PRESETS

_FILES = ("train", "unlabelled", "dev", "test")


def add_arguments(parser):
    add = parser.add_argument
    settings.add_config(parser, None, DistillConfig, "distill/soft_labels, with --shards distill/distilbert")
    teacher = "a fine-tuned run, or with --shards a pretrained one; or a published model"
    add("--teacher", action=Setting, key="teacher.path", help=teacher)
    add("--student", help="a published size such as bert_mini, or a pretrained model to start from")
    add("--train", action=Setting, key="data.train", help="labelled training file")
    add("--unlabelled", action=Setting, key="data.unlabelled", help="texts without labels, for the teacher to label")
    add("--dev", action=Setting, key="data.dev", help="labelled file that chooses the best epoch")
    add("--test", action=Setting, key="data.test", help="labelled file to evaluate the best epoch on")
    add("--shards", action=Setting, key="data.shards", help="folder of 'bert-tf shards', to distil in pretraining")
    add("--augment", metavar="MODEL", help="write other versions of texts by this model with masked LM; trains nothing")
    add("--output", required=True, help="run directory: a new one, or one to resume; with --augment a .jsonl file")


def run(arguments):
    if arguments.augment:
        return _augment(arguments)
    if arguments.config is None:
        arguments.config = "distill/soft_labels" if arguments.shards is None else "distill/distilbert"
    data = settings.mapping(arguments).get("data")
    pretrains = isinstance(data, dict) and bool(data.get("shards"))
    for name in _FILES if pretrains else ():
        if getattr(arguments, name) is not None:
            raise ConfigError(f"--{name} is for a teacher of a task, and --shards for pretraining; remove one")
    if arguments.student in PRESETS:
        # Its sizes stand in place of the recipe's, below those of --set.
        model = "model" if pretrains else "student.model"
        arguments.set = [f"{model}={{preset: {arguments.student}}}", *arguments.set]
    elif arguments.student is not None:
        arguments.settings |= {"train.init_from" if pretrains else "init_from": arguments.student}
    if pretrains:
        config = settings.load(DistillPretrainConfig, arguments)
        distill_config.check_distilled_pretraining(config)  # before TensorFlow is imported, which takes seconds
        return _pretrain(config, arguments.output)
    config = settings.load(DistillConfig, arguments)
    distill_config.check_distillation(config)
    return _distill(config, arguments.output)


def _augment(arguments):
    others = ("config", "teacher", "student", "dev", "test", "shards")
    for name in (name for name in others if getattr(arguments, name) is not None):
        raise ConfigError(f"--augment trains nothing; remove --{name}")
    if (arguments.train is None) == (arguments.unlabelled is None):
        raise ConfigError("--augment reads one file; give --train or --unlabelled")
    labelled = {"labelled": arguments.train is not None}
    config = build(AugmentConfig, settings.apply_overrides(labelled, arguments.set))
    from bert_tf.distillation import augment

    file = arguments.train or arguments.unlabelled
    count, before = augment(arguments.augment, file, arguments.output, config)
    print(f"{count:,} examples in {arguments.output}, of {before:,}")
    recipe = "bert-tf distill --config distill/tinybert --teacher TEACHER --student RUN"
    settings.print_next(f"{recipe} --train {arguments.output} --dev DEV --output small")


def _distill(config, output):
    from bert_tf.distillation import distill
    from bert_tf.distillation.comparison import table_of

    summary = distill(config, output)
    print_summary(summary)
    print("\n".join(["", table_of(summary["comparison"], summary["metric"]).text(), ""]))
    print(f"report: {output}/report.html")
    settings.print_next(f'bert-tf predict {output} "Some text."', f"bert-tf export {output}")


def _pretrain(config, output):
    from bert_tf.distillation import distill_pretraining

    directory, metrics = distill_pretraining(config, output)
    print_metrics(directory, metrics)
    settings.print_next(f"tensorboard --logdir {output}/tensorboard", *advice(config, output))
