"""Continue prompts with a language model, or answer them with a model that was trained to answer sources.

A language model (GPT) prints the prompt and what comes after it. An encoder-decoder (T5) and a run of the task or
objective text_to_text read the prompt as a source and print the text that they write. By default prompt and new tokens
together are no longer than the sequences of pretraining, because positions beyond are untrained; --max-new-tokens may
go beyond, up to the model's positions. The default method is greedy, for a
fine-tuned run what its task.generation says. A seed gives the same text again. Several prompts, and beam search, print
a line for each text: its score, then the text.

example:
  bert-tf generate run "The state of the Union is" --max-new-tokens 40
  bert-tf generate run "My fellow citizens," --set method=sample --set top_p=0.9 --set seed=7
  bert-tf generate run "The state of the Union is" --set method=beam_search --set n_best=3
  bert-tf generate t5-small "translate English to German: The house is wonderful."

in Python:
  import bert_tf
  bert_tf.load("run").generate("The state of the Union is", max_new_tokens=40)
"""

from pathlib import Path

import bert_tf
from bert_tf.cli.settings import Setting, add_number, add_set, mapping
from bert_tf.config import read_yaml
from bert_tf.files import is_there
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.tasks.record import check_task


def add_arguments(parser):
    parser.add_argument("run", help="the run of a decoder or encoder-decoder, or a published checkpoint")
    parser.add_argument("prompt", nargs="+", help="texts to continue or to answer")
    longest = "the most tokens (default 64, or that of a fine-tuned run; see above)"
    add_number(parser, "--max-new-tokens", longest, action=Setting)
    add_set(parser, "a setting of GenerationConfig: method, temperature, top_k, top_p, seed, beams, n_best, ...")


def run(arguments):
    changes = mapping(arguments, {})
    file = Path(arguments.run) / "config.yaml"
    task = read_yaml(file).get("task") if is_there(file) else None
    settings_of_task = getattr(check_task(task), "generation", None) if task else None
    (settings_of_task or GenerationConfig()).replace(changes)  # refuses wrong settings before TensorFlow is imported

    from bert_tf.generation.samplers import SAMPLERS

    model = bert_tf.load(arguments.run)
    generate, config = model.generator, model.generation_config(arguments.prompt, changes)
    begins = [""] * len(arguments.prompt) if generate.prompts.frame.is_source else arguments.prompt
    if len(arguments.prompt) == 1 and SAMPLERS[config.method].streams:
        pieces = generate.stream(arguments.prompt[0], config)
        print(begins[0] + next(pieces, ""), end="", flush=True)  # after what could be refused
        for piece in pieces:
            print(piece, end="", flush=True)
        print()
        return
    for begin, answers in zip(begins, generate(arguments.prompt, config)):
        for answer in answers:
            print(f"{answer.score:9.3f}  {begin}{answer.text}")
