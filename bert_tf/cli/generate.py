"""Continue prompts with a decoder, or answer them with an encoder-decoder.

A decoder (GPT) prints the prompt and what comes after it. An encoder-decoder (T5) reads the prompt and prints the text
that it writes. The default is greedy. A seed gives the same text again. Several prompts, and beam search, print a line
for each text: its score, then the text.

example:
  bert-tf generate run "The state of the Union is" --max-new-tokens 40
  bert-tf generate run "My fellow citizens," --set method=sample --set top_p=0.9 --set seed=7
  bert-tf generate run "The state of the Union is" --set method=beam_search --set n_best=3
  bert-tf generate t5-small "translate English to German: The house is wonderful."

in Python:
  from bert_tf.generation import GenerationConfig, TextGenerator
  from bert_tf.training.loading import load_pretrained
  model, tokenizer = load_pretrained("run")
  generate = TextGenerator(model.backbone, tokenizer)
  generate(["The state of the Union is"], GenerationConfig(max_new_tokens=40))[0][0].text
"""


def add_arguments(parser):
    parser.add_argument("run", help="the run of a decoder or encoder-decoder, or a published checkpoint")
    parser.add_argument("prompt", nargs="+", help="texts to continue or to answer")
    parser.add_argument("--max-new-tokens", type=int, default=64, help="the most tokens (default %(default)s)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of GenerationConfig: method, temperature, top_k, top_p, seed, beams, n_best, ...",
    )


def run(arguments):
    from bert_tf.config import apply_overrides, build
    from bert_tf.generation.generation_config import GenerationConfig

    config = build(GenerationConfig, apply_overrides({"max_new_tokens": arguments.max_new_tokens}, arguments.set))

    from bert_tf.generation import TextGenerator
    from bert_tf.training.loading import load_pretrained

    objective, tokenizer = load_pretrained(arguments.run)
    generate = TextGenerator(objective.backbone, tokenizer)
    begins = [""] * len(arguments.prompt) if generate.prompts.has_source else arguments.prompt
    if len(arguments.prompt) == 1 and config.method != "beam_search":
        pieces = generate.stream(arguments.prompt[0], config)
        print(begins[0] + next(pieces, ""), end="", flush=True)  # after what could be refused
        for piece in pieces:
            print(piece, end="", flush=True)
        print()
        return
    for begin, answers in zip(begins, generate(arguments.prompt, config)):
        for answer in answers:
            print(f"{answer.score:9.3f}  {begin}{answer.text}")
