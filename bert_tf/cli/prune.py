"""Remove attention heads of a fine-tuned model that matter least for its task.

Heads are masked step by step, those of the least importance first, until the dev metric falls by
more than --tolerance; the last ones that passed are removed from the weights. The result is a run
directory, which the other commands take as any other run. Size and latency before and after are
printed. See bert_tf/compression/README.md.

example:
  bert-tf prune sentiment --output sentiment-pruned
  bert-tf prune sentiment --output sentiment-pruned --tolerance 0.005 --most 0.4

in Python:
  from bert_tf.compression import prune_heads
  prune_heads("sentiment", "sentiment-pruned")
"""


def add_arguments(parser):
    parser.add_argument("run", help="the fine-tuned run directory, or a Hugging Face directory of a fine-tuned class")
    parser.add_argument("--output", required=True, help="a folder that does not exist yet, or is empty")
    parser.add_argument(
        "--tolerance", type=float, default=0.01, help="how much the dev metric may fall (default %(default)s)"
    )
    parser.add_argument(
        "--step", type=float, default=0.1, help="the fraction of all heads masked at a time (default %(default)s)"
    )
    parser.add_argument("--most", type=float, help="remove at most this fraction of all heads (default: no limit)")
    parser.add_argument("--dev", help="a labelled file (default: the dev file of the run)")
    parser.add_argument(
        "--examples", type=int, default=256, help="examples that the importance is computed on (default %(default)s)"
    )


def run(arguments):
    from bert_tf.compression import prune_heads

    pruned = prune_heads(
        arguments.run,
        arguments.output,
        tolerance=arguments.tolerance,
        step=arguments.step,
        most=arguments.most,
        dev=arguments.dev,
        examples=arguments.examples,
    )
    print("\n".join([*pruned.lines(), str(pruned.path)]))
