"""Write a SavedModel for TensorFlow Serving that contains the tokenizer and takes plain text.

A fine-tuned run, or a published checkpoint of a fine-tuned class, is exported as its task; a pretrained one fills masks or
generates text, or with --kind embedding gives vectors. The export is written to RUN/export/<version>, loaded, and compared
with the model in memory before it gets its version number.

--quantize and --format litert or onnx write a smaller model of a fine-tuned task. It is compared with the float model on
the dev file of the run (--dev, --texts: on another file), and refused where it answers too many examples differently or
where the dev metric falls (--tolerance). See bert_tf/compression/README.md.

example:
  bert-tf export sentiment
  bert-tf export bert-base-NER --output models/ner      # a Hugging Face directory, or hf://owner/name
  bert-tf export sentiment --format litert --quantize dynamic_int8 --tolerance 0.02
  bert-tf export gpt --set method=beam_search --set n_best=3 --set max_new_tokens=64

in Python:
  import bert_tf
  bert_tf.load("sentiment").export()
  from bert_tf.compression import export_compressed
  export_compressed("sentiment", format="litert", quantize="dynamic_int8")
"""

from bert_tf.cli.settings import add_set, at_least, overrides


def add_arguments(parser):
    add = parser.add_argument
    from bert_tf.tasks import TASKS

    kinds = (*TASKS, "masked_lm", "generation", "embedding")
    add("run", help="the run directory, or a published checkpoint")
    add(
        "--kind",
        choices=kinds,
        metavar="KIND",
        help="masked_lm, generation, embedding or a kind of task (default: the task or objective of the run)",
    )
    add("--output", help="the folder that holds the versions (default RUN/export)")
    add("--version", type=at_least(1), metavar="N", help="version number (default: the newest version plus one)")
    add(
        "--sequence-length",
        type=at_least(1),
        metavar="N",
        help="truncate texts to so many tokens (default: as in training)",
    )
    add(
        "--static",
        action="store_true",
        help="pad to the sequence length, for GPU and TPU (default: to the longest of a batch)",
    )
    add(
        "--precision",
        default="auto",
        choices=("auto", "float32", "mixed_bfloat16"),
        metavar="NAME",
        help="float32, mixed_bfloat16, or auto: the faster one on this machine (default %(default)s)",
    )
    compressed = parser.add_argument_group("compression, of fine-tuned runs")
    compressed.add_argument(
        "--format",
        default="saved_model",
        choices=("saved_model", "litert", "onnx"),
        metavar="NAME",
        help="litert, onnx: a file with ids in, whose texts all have one length (default %(default)s)",
    )
    compressed.add_argument(
        "--quantize",
        choices=("float16", "dynamic_int8"),
        metavar="NAME",
        help="store weights as float16 or dynamic_int8, with which LiteRT and ONNX also multiply",
    )
    compressed.add_argument(
        "--tolerance",
        type=float,
        metavar="PART",
        help="refuse if more answers differ than this, or the dev metric is worse by more (default 0.01)",
    )
    compressed.add_argument("--dev", help="a labelled file to compare on (default: the dev file of the run)")
    compressed.add_argument("--texts", help="a file without labels to compare on")
    add(
        "--top-k",
        type=at_least(1),
        metavar="K",
        help="masked_lm: answers for each mask (default 5); generation: the setting top_k",
    )
    add(
        "--words",
        choices=("punctuation", "whitespace"),
        metavar="NAME",
        help="tagging: what ends a word, punctuation (default) or whitespace",
    )
    add_set(parser, "generation: of GenerationConfig, stop_tokens, allowed_tokens; question_answering: n_best")


def run(arguments):
    from bert_tf.config import apply_overrides
    from bert_tf.errors import ConfigError

    given = {"top_k": arguments.top_k, "words": arguments.words}
    options = apply_overrides({}, overrides(arguments, **given))
    for name in options.keys() & vars(arguments).keys() - given.keys():
        raise ConfigError(f"--set {name}: it has a flag of its own, --{name.replace('_', '-')}; use that")
    compared = {name: getattr(arguments, name) for name in ("tolerance", "dev", "texts")}
    compared = {name: value for name, value in compared.items() if value is not None}
    if arguments.quantize or arguments.format != "saved_model":
        return _compress(arguments, compared | options)
    if compared:
        raise ConfigError(
            f"--{next(iter(compared))} is for exports with --quantize, or --format litert or onnx; remove it, or add one of these"
        )

    from bert_tf.export import export_run
    from bert_tf.export.signatures import SETTINGS
    from bert_tf.files import display_path
    from bert_tf.parsing import read_json_object

    path = export_run(
        arguments.run,
        output=arguments.output,
        kind=arguments.kind,
        version=arguments.version,
        sequence_length=arguments.sequence_length,
        static=arguments.static,
        precision=arguments.precision,
        **options,
    )
    written = read_json_object(path / "assets" / SETTINGS)
    how = "read in windows of" if "stride" in written else "truncated after"
    print(f"texts are {how} {written['sequence_length']:,} tokens with special tokens; --sequence-length sets that")
    print(f"{display_path(path)}\nto see its inputs and outputs: saved_model_cli show --dir {display_path(path)} --all")


def _compress(arguments, options):
    from bert_tf.errors import ConfigError

    if arguments.kind or arguments.precision == "mixed_bfloat16":
        raise ConfigError(
            "--quantize and --format are for the task of a fine-tuned run in float32; remove --kind and --precision"
        )

    from bert_tf.compression import export_compressed
    from bert_tf.files import display_path

    written = export_compressed(
        arguments.run,
        format=arguments.format,
        quantize=arguments.quantize,
        output=arguments.output,
        version=arguments.version,
        sequence_length=arguments.sequence_length,
        **options | ({"static": True} if arguments.static else {}),
    )
    print("\n".join([*written.lines(), display_path(written.path)]))
