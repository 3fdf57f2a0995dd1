"""Run all steps on data that comes with the library, in less than four minutes on two cores.

Pretrains a small ModernBERT on 33 State of the Union addresses and on movie-review sentences for the minutes that are
given (the vocabulary, the shards and the number of updates are chosen for that), fills masks, fine-tunes it on parts
of speech with and without that pretraining, exports the model with its tokenizer, and queries the export in a new
process. Ends with the difference that pretraining made, and the commands for your own data.

example:
  bert-tf quickstart
  bert-tf quickstart --output somewhere --minutes 10
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from bert_tf.cli.settings import add_number

SENTENCES = (
    "The [MASK] of the United States.",
    "We must [MASK] the people of this country.",
    "The two countries signed a [MASK] of peace.",
)
TEXTS = ("Google has bought a small company in Seoul.", "I will book the book about the last run.")

# A minimal client of the export: it imports neither bert_tf nor Keras.
ASK = """\
import sys
import tensorflow as tf
import tensorflow_text  # registers the tokenizer's ops
model = tf.saved_model.load(sys.argv[1])
answer = {name: value.numpy() for name, value in model.signatures["serving_default"](text=tf.constant(sys.argv[2:])).items()}
for text, tags, starts, ends in zip(sys.argv[2:], answer["tags"], answer["starts"], answer["ends"]):
    print("  " + "  ".join(f"{text[s:e]}/{tag.decode()}" for tag, s, e in zip(tags, starts, ends) if tag))
"""


def add_arguments(parser):
    parser.add_argument("--output", default="quickstart", help="folder for all results (default ./%(default)s)")
    help = "the time for vocabulary, shards and pretraining (default %(default)s)"
    parser.add_argument("--minutes", type=float, default=1.5, help=help)
    add_number(parser, "--epochs", "epochs of fine-tuning (default %(default)s)", default=5)


def run(arguments):
    started = time.monotonic()
    import bert_tf
    from bert_tf import samples
    from bert_tf.reporting import write_report

    folder = Path(arguments.output)
    _title(
        f"1  pretraining: 33 State of the Union addresses and 8,252 sentences of reviews, {arguments.minutes:g} minutes"
    )
    reviews = folder / "reviews.txt"
    samples.write_review_text(reviews)
    corpus = [samples.STATE_OF_THE_UNION, reviews]
    pretrained = bert_tf.pretrain(corpus, minutes=arguments.minutes, output=folder / "pretrained")

    _title("2  filling masks")
    for sentence, (guesses,) in zip(SENTENCES, pretrained.fill_mask(SENTENCES)):
        print(f"  {sentence}  ->  " + ", ".join(f"{token} {p:.2f}" for token, p in guesses))

    _title("3  fine-tuning: parts of speech of 1,080 sentences, with and without the pretraining")
    task = {"kind": "tagging", "sequence_length": 64}
    settings = {"task": task, "epochs": arguments.epochs, "optimizer": {"learning_rate": 1e-3}} | samples.TAGS
    tagger = bert_tf.finetune(pretrained.path, output=folder / "tagger", **settings)
    without = bert_tf.finetune(pretrained.path, output=folder / "without_pretraining", pretrained=False, **settings)
    write_report(without.path, tagger.path, output=folder / "report.html")

    _title("4  export, queried in a new process that imports only tensorflow and tensorflow_text")
    exported = tagger.export()
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", ASK, str(exported), *TEXTS], check=True, env=environment)
    _report(folder, pretrained.results, tagger.results["test"], without.results["test"], exported, started)


def _title(text):
    print(f"\n== {text}", flush=True)


def _report(folder, metrics, with_it, without_it, exported, started):
    rows = {name: scores["accuracy"] for name, scores in with_it["baselines"].items()}
    rows |= {"without pretraining": without_it["mean"]["accuracy"], "with pretraining": with_it["mean"]["accuracy"]}
    width = max(map(len, rows))
    chart = "\n".join(f"  {name:<{width}}  {'█' * round(40 * value):<40}  {value:.1%}" for name, value in rows.items())
    print(f"""
== done in {(time.monotonic() - started) / 60:.1f} minutes

  held-out masked LM loss {metrics["eval_masked_lm_loss"]:.2f}; parts of speech of 733 other sentences, accuracy:

{chart}

  everything is in {folder}/: pretrained/ tagger/ without_pretraining/ report.html
  the SavedModel is {exported}

== the same on your own data

  bert-tf pretrain  --text YOUR_TEXT/ --minutes 30 --output run
  bert-tf predict   run "The [MASK] of the United States."
  bert-tf finetune  --init-from run --train train.tsv --dev dev.tsv --output task --set optimizer.learning_rate=1e-3
  bert-tf evaluate  task test.tsv
  bert-tf predict   task "Some text."
  bert-tf export    task""")
