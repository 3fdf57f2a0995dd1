"""Apply a model to sentences or to a file; prints one line of JSON for each input.

A fine-tuned model answers for its task. A model that was pretrained with masked LM fills the masks in each sentence: write
them as its tokenizer does, RoBERTa's is <mask>.

Of a fine-tuned model every line of a file is answered, in order, with its number, its text and, if the file has a column
id, idx, index, guid or uid, its id; a line without a text by {"line": 7, "error": "the line is empty"}. A CSV record, an
item of a JSON array and a CoNLL sentence count as one line. The number of unknown tokens is printed on stderr.

example:
  bert-tf predict sentiment "A quiet triumph." "Two hours I will not get back."
  bert-tf predict paraphrase --pair "He left." "He went away."
  bert-tf predict sentiment --file reviews.txt --output answers.jsonl
  bert-tf predict ner --file eng.testb --output eng.testb.conll
  bert-tf predict run "The [MASK] of the United States." --top-k 10
  bert-tf predict squad --pair "Where was Anna born?" "Anna was born in Paris."
  bert-tf predict squad --file dev-v2.0.json --output answers.jsonl --official predictions.json

in Python:
  import bert_tf
  sentiment = bert_tf.load("sentiment")
  sentiment.predict(["A quiet triumph.", "Two hours I will not get back."])
  bert_tf.load("run").fill_mask("The [MASK] of the United States.")
"""

import json
import sys

import bert_tf
from bert_tf.cli.settings import add_labelled, add_number, columns_of
from bert_tf.errors import ConfigError
from bert_tf.files import atomic_write, check_output


def add_arguments(parser):
    add = parser.add_argument
    add("run", help="a run, or a Hugging Face directory")
    add("text", nargs="*", help="sentences")
    add("--pair", nargs=2, action="append", default=[], metavar=("FIRST", "SECOND"), help="a pair; may be repeated")
    add("--file", help="TSV, CSV, JSON, CoNLL, or .txt with one text a line; labels are not needed")
    add("--output", help="write the answers here; of tagging as CoNLL where it ends with .conll, .conllu, .iob or .bio")
    official = "also write the answers as the official scorer of the data set reads them"
    add("--official", metavar="JSON", help=official)
    add_number(parser, "--top-k", "of a pretrained model, the guesses for each mask (default 5)")
    add_labelled(parser)


def run(arguments):
    inputs = arguments.text + [tuple(pair) for pair in arguments.pair]
    if bool(inputs) == bool(arguments.file):
        raise ConfigError("give sentences, --pair, or --file, and not --file together with the others")
    columns = columns_of(arguments)
    if columns and not arguments.file:
        raise ConfigError("--columns describes --file; remove it, or give --file")

    for path in filter(None, (arguments.output, arguments.official)):
        check_output(path)

    opened = bert_tf.load(arguments.run)
    if opened.source.task is None:
        return _fill_masks(opened, arguments)
    if arguments.top_k:
        raise ConfigError(f"--top-k is for masks, and {arguments.run} is fine-tuned; remove it")
    task, model = opened.task, opened.model
    examples = task.read(arguments.file or inputs, labelled=False, columns=columns)
    answers = task.predict(model, examples, arguments.batch_size)
    if arguments.official:
        with atomic_write(arguments.official) as file:
            json.dump(task.official(answers), file)
    text = task.predictions_file(examples, answers, arguments.output) if arguments.output else None
    if inputs:
        answers = [_as_texts(text) | answer for text, answer in zip(inputs, answers)]
    lines = [_line(answer) for answer in answers]
    if arguments.output:
        with atomic_write(arguments.output) as file:
            file.writelines(lines if text is None else [text])
        print(f"{len(lines)} answers in {arguments.output}")
    else:
        print("".join(lines), end="", flush=True)
    if len(examples):
        tokens, unknown = task.unknown_tokens(examples)
        print(f"unknown tokens: {unknown:,} of {tokens:,} ({100 * unknown / max(tokens, 1):.2f} %)", file=sys.stderr)
    if examples.unusable_rows:
        unusable = f"{len(examples.unusable_rows)} of {len(lines)}"
        print(f'lines without a text: {unusable}, answered with "error"', file=sys.stderr)


def _fill_masks(opened, arguments):
    """One line of JSON for each text: "masks" has a dict from token to probability for each mask."""
    if arguments.file or arguments.pair or arguments.output or arguments.official:
        raise ConfigError(f"{arguments.run} is not fine-tuned; remove --file, --pair, --output and --official")
    tokenizer = opened.tokenizer
    spell = lambda token: tokenizer.readable(tokenizer.token_to_id(token))  # noqa: E731
    filled = opened.fill_mask(arguments.text, arguments.top_k or 5)
    for text, masks in zip(arguments.text, filled):
        shown = [{spell(token): round(float(probability), 4) for token, probability in of_mask} for of_mask in masks]
        print(_line({"text": text, "masks": shown}), end="")


def _as_texts(text):
    return {"text": text} if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}


def _line(answer):
    line = json.dumps(answer, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can spell and UTF-8 cannot
        line = json.dumps(answer)
    return line + "\n"
