"""Fill [MASK] in sentences with a pretrained model.

The model must be pretrained with masked LM. Write the mask as its tokenizer does: RoBERTa's is <mask>.

example:
  bert-tf fill-mask run "The [MASK] of the United States." --top-k 10

in Python:
  import bert_tf
  from bert_tf.export.fill_mask import fill_mask
  model = bert_tf.load("run")
  print(fill_mask(model.objective, model.tokenizer, ["The [MASK] of the United States."]))
"""

import bert_tf


def add_arguments(parser):
    parser.add_argument("run", help="the pretrained run directory")
    parser.add_argument("text", nargs="+", help="sentences with one mask or several")
    parser.add_argument("--top-k", type=int, default=5, help="guesses for each mask (default %(default)s)")


def run(arguments):
    from bert_tf.export.fill_mask import fill_mask

    model = bert_tf.load(arguments.run)
    tokenizer = model.tokenizer
    for text, answers in zip(arguments.text, fill_mask(model.objective, tokenizer, arguments.text, arguments.top_k)):
        print(text)
        for number, guesses in enumerate(answers, 1):
            for token, probability in guesses:
                shown = tokenizer.readable(tokenizer.token_to_id(token))
                print(f"  mask {number}  {probability:.3f}  {shown}")
