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
    parser.add_argument("run", help="the run directory")
    parser.add_argument("--kind", choices=("classification", "regression", "tagging", "masked_lm", "embedding"), help="default: what the run was trained for")
    parser.add_argument("--output", help="folder of versions (default RUN/export)")
    parser.add_argument("--version", type=int, help="default: one more than the newest there")
    parser.add_argument("--sequence-length", type=int, help="longer texts are cut (default: as trained)")
    parser.add_argument(
        "--static", action="store_true", help="pad every row to the sequence length, for GPU and TPU (default: to the longest)"
    )
    parser.add_argument(
        "--precision",
        default="auto",
        choices=("auto", "float32", "mixed_bfloat16"),
        help="what it computes in; auto: what is faster on this machine (default %(default)s)",
    )
    parser.add_argument(
        "--shares",
        type=int,
        default=2,
        help="parts of each large layer computed side by side: the cores a request is to use (default %(default)s)",
    )
    parser.add_argument("--top-k", type=int, default=5, help="masked_lm: answers for each mask (default %(default)s)")
    parser.add_argument(
        "--words", default="punctuation", choices=("punctuation", "whitespace"), help="tagging: what ends a word"
    )


def run(arguments):
    from bert_tf.export import export_run
    from bert_tf.export.saved_model import SETTINGS
    from bert_tf.parsing import read_json_object

    path = export_run(
        arguments.run,
        output=arguments.output,
        kind=arguments.kind,
        version=arguments.version,
        sequence_length=arguments.sequence_length,
        static=arguments.static,
        precision=arguments.precision,
        shares=arguments.shares,
        top_k=arguments.top_k,
        words=arguments.words,
    )
    settings = read_json_object(path / "assets" / SETTINGS)
    print(f"texts are cut after {settings['sequence_length']:,} tokens, special tokens included; --sequence-length sets that")
    print(f"{path}\nsee what it takes and gives: saved_model_cli show --dir {path} --all")
