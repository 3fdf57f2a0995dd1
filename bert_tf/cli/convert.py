"""Convert a published checkpoint to a run directory, or any model to another library's format; average checkpoints.

The format of the source is recognized. Heads are converted too. The formats of word vectors hold the token table of any
model. A weight or a setting that is not understood is an error. --average N needs train.keep_checkpoints=N.

example:
  bert-tf convert bert-base-uncased run                  # then: bert-tf finetune --init-from run ...
  bert-tf convert bert-base-NER tagger                   # then: bert-tf predict tagger "Anna met Paul."
  bert-tf convert sentiment published --to hf            # a fine-tuned run, for the transformers library
  bert-tf convert sentiment my-name/sentiment --to hub --license apache-2.0
  bert-tf convert run preset --to keras_hub              # for keras_hub.models.BertMaskedLM.from_preset("preset")
  bert-tf convert glove.6B.100d.txt vectors              # word vectors, as a run
  bert-tf convert run averaged --average 5
  bert-tf convert bert grown --add-tokens covid "<e1>"   # vocabulary and tables grow

in Python:
  import bert_tf
  bert_tf.load("run").save("published", format="hf", license="apache-2.0")
  bert_tf.load("bert").add_tokens(["covid", "<e1>"]).save("grown", format="run")
  bert_tf.training.averaging.average_checkpoints("run", "averaged", last=5)
"""

from bert_tf.checkpoints.formats import written
from bert_tf.cli.pretrain import FINETUNE
from bert_tf.cli.settings import add_number, predict_command, print_next
from bert_tf.errors import ConfigError


def add_arguments(parser):
    add = parser.add_argument
    add("source", help="a checkpoint, a run directory, or hf://owner/name")
    add(
        "output",
        help="a folder that does not exist yet, or is empty; for word vectors a file; with --to hub owner/name",
    )
    add("--to", choices=["run", *written(), "hub"], default="run", help="what to write (default %(default)s)")
    add("--family", help="the family, if the files do not name it or name another (SpanBERT is published as bert)")
    alone = "write the encoder without pretraining heads and without the head of a fine-tuned run"
    add("--encoder-only", action="store_true", help=alone)
    add("--add-tokens", nargs="+", metavar="TOKEN", help="add these tokens to the vocabulary and the tables")
    add("--license", metavar="ID", help="for the model card of hf and hub")
    add("--public", action="store_true", help="whether everybody sees what --to hub makes")
    fixed = (
        "write a preset although KerasHub's code fixes what the model has otherwise, and say how far outputs are apart"
    )
    add("--approximate", action="store_true", help=fixed)
    average = "write the mean of the newest N checkpoints of a pretraining run"
    add_number(parser, "--average", average, least=2)


def run(arguments):
    if arguments.average:
        return _average(arguments)
    import bert_tf
    from bert_tf.tasks import TASKS
    from bert_tf.training.converting import convert, push

    loaded = bert_tf.load(arguments.source, arguments.family)
    if arguments.add_tokens:
        loaded = loaded.add_tokens(arguments.add_tokens)
    if arguments.to == "hub":
        address = f"hf://{arguments.output}"
        model, page = push(loaded, address, arguments.license, not arguments.public, arguments.encoder_only)
        print(f"published: {page}")
    else:
        options = {name: getattr(arguments, name) for name in ("encoder_only", "approximate", "license")}
        model = convert(loaded, arguments.output, arguments.to, **options)
    print(f"{arguments.output}: {loaded.family}, {model.count_params():,} parameters, as {arguments.to}")
    for what, names in (("held no weight", loaded.report.ignored), ("not used", loaded.report.unused)):
        if names:
            print(f"  {what}: {', '.join(names)}")
    task = None if arguments.encoder_only or loaded.source.task is None else loaded.task
    if task is not None:
        print(f"  task: {task.kind}" + (f" with the labels {', '.join(task.labels)}" if task.labels else ""))
    if arguments.to == "run" and task is not None:
        predict = predict_command(arguments.output, TASKS[task.kind].example)
        print_next(predict, f"bert-tf export {arguments.output}")
    elif arguments.to == "run":
        print_next(FINETUNE.format(arguments.output))


def _average(arguments):
    if arguments.to != "run" or arguments.family or arguments.encoder_only or arguments.add_tokens:
        raise ConfigError("--average writes a run; remove the other options, and convert the result")
    from bert_tf.training.averaging import average_checkpoints

    steps = average_checkpoints(arguments.source, arguments.output, arguments.average)
    print(f"{arguments.output}: the mean of the checkpoints of steps {', '.join(map(str, steps))}")
