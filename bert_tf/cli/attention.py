"""Write a page on which the attention of every head for a text can be looked at.

One HTML file without outside references, for any browser. Arrow keys or clicks choose the layer and the head; pointing
at a token shows what it looks at, and what looks at it; W exchanges tokens and words.

example:
  bert-tf attention run "The keys to the cabinet are on the table." --output attention.html
  bert-tf attention run "He went to the bank." --pair "It was closed."

in Python:
  import bert_tf
  from bert_tf.probing import text_attention, write_attention_page
  model = bert_tf.load("run")
  attention = text_attention(model.encoder, model.tokenizer, "The keys to the cabinet are on the table.")
  write_attention_page(attention, "attention.html")
"""

import bert_tf


def add_arguments(parser):
    add = parser.add_argument
    add("run", help="a run, or a published checkpoint")
    add("text", help="at most 128 tokens")
    add("--pair", metavar="TEXT", help="a second text, read with the first as a pair")
    add("--output", default="attention.html", help="the file to write (default %(default)s)")


def run(arguments):
    from pathlib import Path

    from bert_tf.files import check_output

    check_output(arguments.output)

    from bert_tf.probing import text_attention, write_attention_page

    model = bert_tf.load(arguments.run)
    attention = text_attention(model.encoder, model.tokenizer, arguments.text, arguments.pair)
    write_attention_page(attention, arguments.output, f"Attention of {Path(arguments.run).name}")
    layers, heads, size = attention.weights.shape[:3]
    print(f"{arguments.output} shows {layers} layers of {heads} heads for {size} tokens; open it in a browser")
