"""Print examples of shards, decoded, with the masked tokens.

example:
  bert-tf inspect shards --examples 2
  bert-tf inspect shards --example-index 17 --epoch 3 --set strategy=whole_word
  bert-tf inspect shards --objective permutation_lm --set segments=1 --set bidirectional=false
  bert-tf inspect pairs --objective text_to_text
  bert-tf inspect shards --verify

in Python:
  from tfrecords import inspect_shards
  print("\\n".join(inspect_shards("shards", examples=2)))
"""

from bert_tf.cli.settings import add_set, mapping


def add_arguments(parser):
    add = parser.add_argument
    add("shards", help="folder written by 'bert-tf shards'")
    add("--examples", type=int, default=3, help="number of examples to print (default %(default)s)")
    add("--example-index", type=int, help="print only this example")
    add("--epoch", type=int, default=0, help="masks differ from epoch to epoch (default %(default)s)")
    add("--seed", type=int, default=0, help="the seed of the masks: train.seed of a run (default %(default)s)")
    others = "or replaced_token_detection, permutation_lm, causal_lm, denoising, text_to_text (default %(default)s)"
    add("--objective", default="masked_lm", help=others)
    add("--verify", action="store_true", help="read every shard first, and compare it with its checksum")
    add_set(parser, "a setting of the masks, e.g. strategy=whole_word; of denoising, e.g. method=drop")


def run(arguments):
    from bert_tf.config import build
    from bert_tf.objectives import OBJECTIVES

    objective = OBJECTIVES[arguments.objective]
    section, changes = objective.corruption_section, mapping(arguments, {})
    settings = build(objective.config, {"name": objective.name, **({section: changes} if section else changes)})
    from tfrecords import inspect_shards

    lines = inspect_shards(
        arguments.shards,
        getattr(settings, section) if section else None,
        corruption=objective.corruption_class,
        **{name: getattr(arguments, name) for name in ("seed", "epoch", "examples", "example_index", "verify")},
    )
    for line in lines:
        print(line)
