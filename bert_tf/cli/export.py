"""Write a SavedModel for TensorFlow Serving that contains the tokenizer and takes plain text.

A fine-tuned model is exported as its task; a pretrained one fills masks or generates text, or with --kind embedding gives
vectors. The export is loaded and compared with the model in memory before it gets its version number.

--quantize and --format litert or onnx write a smaller model of a fine-tuned task, unless it answers too many examples of
the dev file differently (--tolerance). See docs/guides/serving/smaller.md.

example:
  bert-tf export bert-base-NER --output models/ner      # a run, a Hugging Face directory, or hf://owner/name
  bert-tf export sentiment --format litert --quantize dynamic_int8 --tolerance 0.02
  bert-tf export gpt --set method=beam_search --set n_best=3 --set max_new_tokens=64

in Python:
  bert_tf.load("sentiment").export()
  from bert_tf.compression import export_compressed
  export_compressed("sentiment", format="litert", quantize="dynamic_int8")
"""

from bert_tf.cli.settings import Setting, add_number, add_set, mapping
from bert_tf.errors import ConfigError
from bert_tf.files import display_path
from bert_tf.parsing import read_json_object
from bert_tf.tasks import TASKS


def add_arguments(parser):
    add, compressed = parser.add_argument, parser.add_argument_group("compression, of fine-tuned runs")
    kinds = (*TASKS, "masked_lm", "generation", "embedding")
    add("run", help="the run directory, or a published checkpoint")
    text = "masked_lm, generation, embedding or a kind of task (default: the task or objective of the run)"
    add("--kind", choices=kinds, metavar="KIND", help=text)
    add("--output", help="the folder that holds the versions (default RUN/export)")
    add_number(parser, "--version", "version number (default: the newest version plus one)")
    add_number(parser, "--sequence-length", "truncate texts to so many tokens (default: as in training)")
    text = "pad to the sequence length, for GPU and TPU (default: to the longest of a batch)"
    add("--static", action="store_true", help=text)
    precisions = {"choices": ("auto", "float32", "mixed_bfloat16"), "default": "auto", "metavar": "NAME"}
    add("--precision", **precisions, help="float32, mixed_bfloat16, or auto (default): the faster one on this machine")
    add_number(parser, "--top-k", "masked_lm: answers for each mask (default 5); generation: top_k", action=Setting)
    words = {"action": Setting, "choices": ("punctuation", "whitespace"), "metavar": "NAME"}
    add("--words", **words, help="tagging: what ends a word, punctuation (default) or whitespace")
    add_set(parser, "generation: of GenerationConfig, stop_tokens, allowed_tokens; question_answering: n_best")
    add, formats = compressed.add_argument, ("saved_model", "litert", "onnx")
    text = "litert, onnx: a file with ids in, whose texts all have one length (default %(default)s)"
    add("--format", default="saved_model", choices=formats, metavar="NAME", help=text)
    text = "store weights as float16 or dynamic_int8, with which LiteRT and ONNX also multiply"
    add("--quantize", choices=("float16", "dynamic_int8"), metavar="NAME", help=text)
    text = "refuse if more answers differ than this, or the dev metric is worse by more (default 0.01)"
    add("--tolerance", type=float, metavar="PART", help=text)
    add("--dev", help="a labelled file to compare on (default: the dev file of the run)")
    add("--texts", help="a file without labels to compare on")


def run(arguments):
    options = mapping(arguments, {})
    for name in options.keys() & vars(arguments).keys() - {"top_k", "words"}:
        raise ConfigError(f"--set {name}: it has a flag of its own, --{name.replace('_', '-')}; use that")
    compared = {name: getattr(arguments, name) for name in ("tolerance", "dev", "texts")}
    compared = {name: value for name, value in compared.items() if value is not None}
    if arguments.quantize or arguments.format != "saved_model":
        return _compress(arguments, compared | options)
    if compared:
        raise ConfigError(
            f"--{next(iter(compared))} needs --quantize, or --format litert or onnx; add one or remove it"
        )

    from bert_tf.export import export_run
    from bert_tf.export.signatures import SETTINGS

    same = ("output", "kind", "version", "sequence_length", "static", "precision")
    path = export_run(arguments.run, **{name: getattr(arguments, name) for name in same}, **options)
    written = read_json_object(path / "assets" / SETTINGS)
    how = "read in windows of" if "stride" in written else "truncated after"
    print(f"texts are {how} {written['sequence_length']:,} tokens with special tokens; --sequence-length sets that")
    print(f"{display_path(path)}\nto see its inputs and outputs: saved_model_cli show --dir {display_path(path)} --all")


def _compress(arguments, options):
    if arguments.kind or arguments.precision == "mixed_bfloat16":
        raise ConfigError("--quantize and --format are for tasks in float32; remove --kind and --precision")

    from bert_tf.compression import export_compressed

    same = ("format", "quantize", "output", "version", "sequence_length")
    static = {"static": True} if arguments.static else {}
    written = export_compressed(arguments.run, **{name: getattr(arguments, name) for name in same}, **options, **static)
    print("\n".join([*written.lines(), display_path(written.path)]))
