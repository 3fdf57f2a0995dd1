"""Apply a fine-tuned model to sentences or to a file; one line of JSON an input.

example:
  bert-tf predict sentiment "A quiet triumph." "Two hours I will not get back."
  bert-tf predict paraphrase --pair "He left." "He went away."
  bert-tf predict sentiment --file reviews.txt --output answers.jsonl

in Python:
  from bert_tf.export.loading import load_finetuned
  task, model, tokenizer = load_finetuned("sentiment")
  print(task.predict(model, ["A quiet triumph."]))
"""


def add_arguments(parser):
    parser.add_argument("run", help="the fine-tuned run directory")
    parser.add_argument("text", nargs="*", help="sentences")
    parser.add_argument(
        "--pair", nargs=2, action="append", default=[], metavar=("FIRST", "SECOND"), help="a pair; may be repeated"
    )
    parser.add_argument("--file", help="TSV, CSV, JSONL, CoNLL, or .txt with one text a line; labels are not needed")
    parser.add_argument("--output", help="write the answers here instead of printing them")
    parser.add_argument("--batch-size", type=int, default=32)


def run(arguments):
    import json

    from bert_tf.errors import ConfigError
    from bert_tf.export.loading import load_finetuned
    from bert_tf.files import atomic_write

    inputs = arguments.text + [tuple(pair) for pair in arguments.pair]
    if bool(inputs) == bool(arguments.file):
        raise ConfigError("give sentences, --pair, or --file")
    task, model, _ = load_finetuned(arguments.run)
    if arguments.file:
        inputs = task.read(arguments.file, labelled=False)
    answers = task.predict(model, inputs, arguments.batch_size)
    lines = [json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers]
    if arguments.output:
        with atomic_write(arguments.output) as file:
            file.writelines(lines)
        print(f"{len(lines)} answers in {arguments.output}")
    else:
        print("".join(lines), end="")
