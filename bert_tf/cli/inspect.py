"""Print examples of shards, decoded, with what is masked and why.

example:
  bert-tf inspect shards --examples 2
  bert-tf inspect shards --example-index 17 --epoch 3 --set whole_word=true

in Python:
  from tfrecords.inspection import inspect_shards
  print("\\n".join(inspect_shards("shards", examples=2)))
"""


def add_arguments(parser):
    parser.add_argument("shards", help="folder written by 'bert-tf shards'")
    parser.add_argument("--examples", type=int, default=3, help="how many to print (default %(default)s)")
    parser.add_argument("--example-index", type=int, help="this one example instead")
    parser.add_argument("--epoch", type=int, default=0, help="masks differ from epoch to epoch (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="train.seed of the run whose masks to show")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a masking setting, e.g. whole_word=true"
    )


def run(arguments):
    from bert_tf.config import apply_overrides, build
    from tfrecords.inspection import inspect_shards
    from tfrecords.masking import MaskingConfig

    lines = inspect_shards(
        arguments.shards,
        build(MaskingConfig, apply_overrides({}, arguments.set)),
        seed=arguments.seed,
        epoch=arguments.epoch,
        examples=arguments.examples,
        example_index=arguments.example_index,
    )
    for line in lines:
        print(line)
