"""Ask a pretrained model tasks that are written as text: zero-, one- and few-shot prompting.

The configuration says how an example becomes a prompt, and how the answer is found: the most probable of several
options, or what the model writes. --show prints prompts. Printed are the accuracy with its standard error, that of
chance (options), and that of the most frequent right answer.

example:
  bert-tf prompt gpt --config prompts/translation --show 1
  bert-tf prompt gpt --config prompts/word_scrambling --set shots=10 --set synthetic.name=reversed_words
  bert-tf prompt gpt --config prompts/sentiment --set test=reviews.tsv --output answers.jsonl

in Python:
  import bert_tf
  from bert_tf import config
  from bert_tf.prompting import PromptingConfig, run_prompts
  model = bert_tf.load("gpt")
  settings = config.load(PromptingConfig, "prompts/translation")
  run_prompts(model.backbone, model.tokenizer, settings, frame=model.frame).accuracy
"""

import dataclasses
import json
import math

import bert_tf
from bert_tf.cli import settings
from bert_tf.errors import ConfigError
from bert_tf.files import atomic_write, check_output
from bert_tf.progress import reporter
from bert_tf.prompting.prompting_config import PromptingConfig


def add_arguments(parser):
    add = parser.add_argument
    add("run", help="the run of a decoder or encoder-decoder, or a published checkpoint")
    settings.add_config(parser, "prompts/translation", PromptingConfig)
    settings.add_number(parser, "--show", "print the first N prompts with their answers", least=0, default=0)
    add("--output", help="write a line of JSON for each prompt here")
    add("--json", action="store_true", help="print the result as one line of JSON")
    settings.add_batch_size(parser, 8, "texts")


def run(arguments):
    config = settings.load(PromptingConfig, arguments)
    if arguments.show and arguments.json:
        raise ConfigError("--json prints one line; remove --show")
    if arguments.output:
        check_output(arguments.output)

    from bert_tf.prompting import run_prompts

    model = bert_tf.load(arguments.run)
    # A published model is held to its positions only; T5 has no last one.
    longest, writer, progress = model.source.sequence_length, model.generator, reporter("prompts", "prompts")
    frame = writer.prompts.frame
    result = run_prompts(writer.model, writer.tokenizer, config, arguments.batch_size, progress, frame, longest)
    for answer in result.answers[: arguments.show]:
        print(f"{answer['prompt']}\n  [answer {answer['answer']!r}, expected {answer['expected']!r}]\n")
    if arguments.output:
        with atomic_write(arguments.output) as file:
            file.writelines(json.dumps(answer) + "\n" for answer in result.answers)
    print_result(result, arguments.json)


def print_result(result, as_json):
    if as_json:
        values = {k: v for k, v in dataclasses.asdict(result).items() if k != "answers"}
        print(json.dumps({k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}))
        return
    error = f"standard error {result.standard_error:.4f}, {result.count} prompts" if result.count > 1 else "one prompt"
    print(f"  accuracy  {result.accuracy:.4f}  ({error})")
    if result.chance is not None:
        print(f"  chance    {result.chance:.4f}")
    print(f"  majority  {result.majority:.4f}")
