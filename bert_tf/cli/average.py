"""Average the last checkpoints of a pretraining run.

The output is a run directory with the mean of the weights, which the other commands take as any other run. The run
must keep as many checkpoints: train it with --set train.keep_checkpoints=5.

example:
  bert-tf average run --last 5 --output averaged

in Python:
  from bert_tf.training.averaging import average_checkpoints
  average_checkpoints("run", "averaged", last=5)
"""


def add_arguments(parser):
    parser.add_argument("run", help="the run directory of a pretraining run")
    parser.add_argument(
        "--last", type=int, default=5, help="how many checkpoints, counted from the newest (default %(default)s)"
    )
    parser.add_argument("--output", required=True, help="a folder that does not exist yet, or is empty")


def run(arguments):
    from bert_tf.training.averaging import average_checkpoints

    steps = average_checkpoints(arguments.run, arguments.output, arguments.last)
    print(f"{arguments.output}: the mean of the checkpoints of steps {', '.join(map(str, steps))}")
