"""Pretrain a model on shards.

Run the same command again to resume an interrupted run; the result is the same bit for bit.

example:
  bert-tf pretrain --config pretrain/bert_laptop --shards shards --output run
  bert-tf pretrain --config my.yaml --shards shards --output run --set train.steps=20000

in Python:
  from bert_tf.training.pretraining import PretrainConfig, pretrain
  from bert_tf import config
  run, metrics = pretrain(config.load(PretrainConfig, "my.yaml"), "run")
"""

from bert_tf.cli import settings
from bert_tf.files import display_path
from bert_tf.training.pretrain_config import PretrainConfig


def add_arguments(parser):
    settings.add_config(parser, "pretrain/bert_laptop", PretrainConfig)
    parser.add_argument("--shards", help="folder written by 'bert-tf shards'; sets data.shards")
    parser.add_argument("--eval-shards", help="held-out shards to evaluate on during training; sets data.eval_shards")
    parser.add_argument("--output", required=True, help="run directory: a new one, or one to resume")


def run(arguments):
    from bert_tf.training.pretrain_config import check_pretraining

    config = settings.load(
        PretrainConfig, arguments, data__shards=arguments.shards, data__eval_shards=arguments.eval_shards
    )
    check_pretraining(config)  # before TensorFlow is imported, which takes seconds
    from bert_tf.training.pretraining import pretrain

    directory, metrics = pretrain(config, arguments.output)
    print_metrics(directory, metrics)
    print(
        "next: "
        + "\n      ".join([f"tensorboard --logdir {arguments.output}/tensorboard", *advice(config, arguments.output)])
    )


def print_metrics(directory, metrics):
    """What `pretrain` returned: the last losses and accuracies."""
    print(f"\n{display_path(directory.path)} at step {metrics['step']:,}")
    found = {name: value for name, value in metrics.items() if name.endswith(("loss", "accuracy"))}
    width = max(map(len, found), default=0) + 2
    for name, value in found.items():
        print(f"  {name:<{width}}" + ("not a finite number" if value is None else f"{value:.4f}"))
    print(f"report: {display_path(directory.path)}/report.html")


def advice(config, output):
    """The commands to run next. predict needs masked LM, generate a causal LM; masks as the tokenizer writes them."""
    from tfrecords.reading.reader import shards_tokenizer

    finetune = f"bert-tf finetune --init-from {output} --train train.tsv --dev dev.tsv --output task"
    if config.objective.name == "causal_lm":
        return [f'bert-tf generate {output} "The United States"', finetune]
    if config.objective.name != "masked_lm":
        return [finetune]
    tokenizer = shards_tokenizer(config.data.shards)
    mask = tokenizer.id_to_token(tokenizer.mask_id)
    return [f'bert-tf predict {output} "The {mask} of the United States."', finetune]
