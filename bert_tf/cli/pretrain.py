"""Pretrain a model on shards; or on text, in so many minutes.

With --text and --minutes vocabulary, sizes and schedule are chosen for the text and this machine, and said. Run the same
command again to resume an interrupted run; on shards the result is the same bit for bit.

example:
  bert-tf pretrain --text books/ --minutes 30 --output run
  bert-tf pretrain --config pretrain/bert_laptop --shards shards --output run
  bert-tf pretrain --config my.yaml --shards shards --output run --set train.steps=20000

in Python:
  import bert_tf
  model = bert_tf.pretrain("books/", minutes=30, output="run")
  from bert_tf.training.pretraining import PretrainConfig, pretrain
  run, metrics = pretrain(bert_tf.config.load(PretrainConfig, "my.yaml"), "run")
"""

from bert_tf.cli import settings
from bert_tf.errors import ConfigError
from bert_tf.files import display_path
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining

CONFIG = "pretrain/bert_laptop"
FINETUNE = "bert-tf finetune --init-from {} --train train.tsv --dev dev.tsv --output task"


def add_arguments(parser):
    settings.add_config(parser, CONFIG, PretrainConfig)
    shards, held_out = "folder written by 'bert-tf shards'", "held-out shards to evaluate on during training"
    parser.add_argument("--shards", action=settings.Setting, key="data.shards", help=shards)
    parser.add_argument("--eval-shards", action=settings.Setting, key="data.eval_shards", help=held_out)
    parser.add_argument("--text", nargs="+", metavar="PATH", help="files, folders or globs of text, instead of shards")
    parser.add_argument("--minutes", type=float, help="with --text: the time for all of it")
    parser.add_argument("--init-from", help="with --text: the model that is trained on, instead of a new one")
    parser.add_argument("--output", required=True, help="run directory: a new one, or one to resume")


def run(arguments):
    if arguments.text is not None:
        return _on_text(arguments)
    for flag in ("minutes", "init_from"):
        if getattr(arguments, flag) is not None:
            instead = {"minutes": "set train.steps", "init_from": "set train.init_from"}[flag]
            raise ConfigError(f"--{flag.replace('_', '-')} is for --text; with shards {instead}")
    config = settings.load(PretrainConfig, arguments)
    check_pretraining(config)  # before TensorFlow is imported, which takes seconds
    from bert_tf.training.pretraining import pretrain

    directory, metrics = pretrain(config, arguments.output)
    print_metrics(directory, metrics)
    settings.print_next(f"tensorboard --logdir {arguments.output}/tensorboard", *advice(config, arguments.output))


def _on_text(arguments):
    chosen = {"config": arguments.config != CONFIG, "set": arguments.set}
    for flag, is_given in (chosen | {"shards": arguments.shards, "eval-shards": arguments.eval_shards}).items():
        if is_given:
            raise ConfigError(f"--{flag} is for pretraining on shards, and --text chooses them; remove one of the two")
    if arguments.minutes is None:
        raise ConfigError("--text needs --minutes, the time for all of it, e.g. --minutes 30")
    from bert_tf.training.budget import pretrain_within

    files, start = arguments.text, arguments.init_from
    directory, metrics = pretrain_within(arguments.minutes, arguments.output, files=files, init_from=start)
    print_metrics(directory, metrics)
    settings.print_next(FINETUNE.format(arguments.output))


def print_metrics(directory, metrics):
    """What `pretrain` returned: the last losses and accuracies."""
    print(f"\n{display_path(directory.path)} at step {metrics['step']:,}")
    shown = {name: value for name, value in metrics.items() if name.endswith(("loss", "accuracy"))}
    width = max(map(len, shown), default=0) + 2
    for name, value in shown.items():
        print(f"  {name:<{width}}" + ("not a finite number" if value is None else f"{value:.4f}"))
    print(f"report: {display_path(directory.path)}/report.html")


def advice(config, output):
    """The commands to run next. predict needs masked LM, generate a causal LM; masks as the tokenizer writes them."""
    from tfrecords.reading.reader import shards_tokenizer

    finetune = FINETUNE.format(output)
    if config.objective.name == "causal_lm":
        return [f'bert-tf generate {output} "The United States"', finetune]
    if config.objective.name != "masked_lm":
        return [finetune]
    tokenizer = shards_tokenizer(config.data.shards)
    mask = tokenizer.id_to_token(tokenizer.mask_id)
    return [f'bert-tf predict {output} "The {mask} of the United States."', finetune]
