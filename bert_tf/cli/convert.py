"""Convert a published checkpoint to a run directory, or any model to another library's format; average checkpoints.

The format of the source is recognized: a Hugging Face directory, a TensorFlow 1 checkpoint of the
original authors, a BERT of the TensorFlow Model Garden, a preset of KerasHub, a file of word vectors (word2vec's text or binary, GloVe,
fastText's .vec), or a run directory. Pretraining heads are converted too, and so are the heads of fine-tuned models
between runs, Hugging Face's classes for sequence and token classification and multiple choice, and KerasHub's
classifiers. The formats of word
vectors hold the token table of any model. A weight or a setting that is not understood is an error.

With --average N the output is a run with the mean of the weights of the newest N checkpoints of a pretraining run, which
must keep as many: train it with train.keep_checkpoints=N.

example:
  bert-tf convert bert-base-uncased run                  # then: bert-tf finetune --init-from run ...
  bert-tf convert bert-base-NER tagger                   # then: bert-tf predict tagger "Anna met Paul."
  bert-tf convert sentiment published --to hf            # a fine-tuned run, for the transformers library
  bert-tf convert uncased_L-12_H-768_A-12 bert --to hf   # from TensorFlow 1 to Hugging Face
  bert-tf convert hf://google-bert/bert-base-uncased bert
  bert-tf convert run preset --to keras_hub              # for keras_hub.models.BertMaskedLM.from_preset("preset")
  bert-tf convert glove.6B.100d.txt vectors              # word vectors, as a run
  bert-tf convert vectors vectors.bin --to word2vec_binary
  bert-tf convert run averaged --average 5

in Python:
  import bert_tf
  from bert_tf.training.averaging import average_checkpoints
  bert_tf.load("bert-base-uncased").save("run", format="run")
  bert_tf.load("run").save("published", format="hf")
  average_checkpoints("run", "averaged", last=5)
"""

from bert_tf.checkpoints.formats import written
from bert_tf.cli.settings import at_least
from bert_tf.errors import ConfigError


def add_arguments(parser):
    add = parser.add_argument
    add("source", help="a checkpoint, a run directory, or hf://owner/name")
    add("output", help="a folder that does not exist yet, or is empty; for word vectors a file")
    add("--to", choices=["run", *written()], default="run", help="what to write (default %(default)s)")
    add("--family", help="the family, if the files do not name it or name another (SpanBERT is published as bert)")
    add(
        "--encoder-only",
        action="store_true",
        help="write the encoder without pretraining heads and without the head of a fine-tuned run",
    )
    add(
        "--approximate",
        action="store_true",
        help="write a preset of KerasHub although its code fixes what the model has otherwise, and say how far the outputs are apart",
    )
    add(
        "--average",
        type=at_least(2),
        metavar="N",
        help="write the mean of the newest N checkpoints of a pretraining run",
    )


def run(arguments):
    if arguments.average:
        return _average(arguments)
    import bert_tf
    from bert_tf.tasks import TASKS
    from bert_tf.training.converting import convert

    loaded = bert_tf.load(arguments.source, arguments.family)
    model = convert(loaded, arguments.output, arguments.to, arguments.encoder_only, arguments.approximate)
    print(f"{arguments.output}: {loaded.family}, {model.count_params():,} parameters, as {arguments.to}")
    for what, names in (("held no weight", loaded.report.ignored), ("not used", loaded.report.unused)):
        if names:
            print(f"  {what}: {', '.join(names)}")
    task = None if arguments.encoder_only or loaded.source.task is None else loaded.task
    if task is not None:
        print(f"  task: {task.kind}" + (f" with the labels {', '.join(task.labels)}" if task.labels else ""))
    if arguments.to == "run" and task is not None:
        example = TASKS[task.kind].example
        print(f"next: bert-tf predict {arguments.output} {example}\n      bert-tf export {arguments.output}")
    elif arguments.to == "run":
        print(f"next: bert-tf finetune --init-from {arguments.output} --train train.tsv --dev dev.tsv --output tuned")


def _average(arguments):
    if arguments.to != "run" or arguments.family or arguments.encoder_only:
        raise ConfigError("--average writes a run; remove --to, --family and --encoder-only, and convert the result")
    from bert_tf.training.averaging import average_checkpoints

    steps = average_checkpoints(arguments.source, arguments.output, arguments.average)
    print(f"{arguments.output}: the mean of the checkpoints of steps {', '.join(map(str, steps))}")
