"""Write a SavedModel that TF Serving loads, with the tokenizer inside: text in, answer out.

A fine-tuned run becomes its task's model; a pretrained one fills masks, or gives embeddings with
--kind embedding. The export goes to RUN/export/<version> and is checked there before it is kept.

example:
  bert-tf export sentiment
  bert-tf export run --kind embedding --output models/encoder --version 3

in Python:
  from bert_tf.export import export_run
  export_run("sentiment")
"""


def add_arguments(parser):
    from bert_tf.tasks import TASKS

    kinds = (*TASKS, "masked_lm", "embedding")
    parser.add_argument("run", help="the run directory")
    parser.add_argument("--kind", choices=kinds, help="default: what the run was trained for")
    parser.add_argument("--output", help="folder of versions (default RUN/export)")
    parser.add_argument("--version", type=int, help="default: one more than the newest there")
    parser.add_argument("--sequence-length", type=int, help="longer texts are truncated (default: as trained)")
    parser.add_argument(
        "--static",
        action="store_true",
        help="pad every text to the sequence length, for GPU and TPU (default: to the longest)",
    )
    parser.add_argument(
        "--precision",
        default="auto",
        choices=("auto", "float32", "mixed_bfloat16"),
        help="what it computes in; auto: what is faster on this machine (default %(default)s)",
    )
    parser.add_argument("--top-k", type=int, help="masked_lm: answers for each mask (default 5)")
    parser.add_argument(
        "--words", choices=("punctuation", "whitespace"), help="tagging: what ends a word (default punctuation)"
    )


def run(arguments):
    from bert_tf.export import export_run
    from bert_tf.export.saved_model import SETTINGS
    from bert_tf.parsing import read_json_object

    options = {"top_k": arguments.top_k, "words": arguments.words}
    path = export_run(
        arguments.run,
        output=arguments.output,
        kind=arguments.kind,
        version=arguments.version,
        sequence_length=arguments.sequence_length,
        static=arguments.static,
        precision=arguments.precision,
        **{name: value for name, value in options.items() if value is not None},
    )
    length = read_json_object(path / "assets" / SETTINGS)["sequence_length"]
    print(f"texts are truncated after {length:,} tokens, special tokens included; --sequence-length sets that")
    print(f"{path}\nsee what it takes and gives: saved_model_cli show --dir {path} --all")
