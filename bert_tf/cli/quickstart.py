"""Run all steps on data that comes with the library, in a few minutes on two cores.

Trains a WordPiece vocabulary on 33 State of the Union addresses and on the movie-review sentences
of the fine-tuning data (without their labels), writes shards, pretrains a small ModernBERT with
masked LM (configs/laptop/best.yaml), fills masks, fine-tunes on the sentiment of the reviews with
and without that pretraining, exports the model with its tokenizer, and queries the export in a new
process. Ends with the commands for your own data.

example:
  bert-tf quickstart
  bert-tf quickstart --output somewhere --pretrain-steps 3000
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
REVIEWS = ("A warm, funny and deeply moving film.", "A dull and lifeless mess that wastes its cast.")

# A minimal client of the export: it imports neither bert_tf nor Keras.
ASK = """\
import sys
import tensorflow as tf
import tensorflow_text  # registers the tokenizer's ops
model = tf.saved_model.load(sys.argv[1])
answer = model.signatures["serving_default"](text=tf.constant(sys.argv[2:]))
for text, label, p in zip(sys.argv[2:], answer["label"].numpy(), answer["probabilities"].numpy()):
    print(f"  {label.decode()} ({p.max():.2f})  {text}")
"""


def add_arguments(parser):
    parser.add_argument("--output", default="quickstart", help="folder for all results (default ./%(default)s)")
    add_number(parser, "--pretrain-steps", "updates of pretraining (default %(default)s)", default=1000)
    add_number(parser, "--epochs", "epochs of fine-tuning (default %(default)s)", default=3)
    add_number(parser, "--vocabulary-size", "entries of the vocabulary (default %(default)s)", default=4000)


def run(arguments):
    started = time.monotonic()
    import bert_tf
    from bert_tf import config, samples
    from bert_tf.tokenizers import train_wordpiece
    from bert_tf.training.pretraining import PretrainConfig, pretrain
    from tfrecords import ShardsConfig, read_texts, write_shards
    from tfrecords.shards.statistics import report

    folder = Path(arguments.output)
    corpus = [samples.STATE_OF_THE_UNION, folder / "reviews.txt"]
    vocabulary, shards, pretrained = folder / "tokenizer", folder / "shards", folder / "pretrained"

    _title("1  vocabulary: WordPiece, trained on 33 State of the Union addresses and 8,252 review sentences")
    samples.write_review_text(corpus[1])
    tokenizer = train_wordpiece(read_texts(corpus), arguments.vocabulary_size, lowercase=True)
    tokenizer.save(vocabulary)
    text = "Congress of the United States"
    tokens = [tokenizer.id_to_token(i) for i in tokenizer.encode(text)]
    print(f"  {tokenizer.vocabulary_size:,} tokens; {text!r} -> {tokens}")

    _title("2  shards: rows of 64 tokens, filled with whole sentences")
    packing = ShardsConfig(sequence_length=64, format="full_sentences")
    manifest = write_shards(corpus, shards, tokenizer, packing)
    print("\n".join(f"  {line}" for line in report(manifest.counts, manifest.sequence_length)))

    _title(f"3  pretraining: a ModernBERT of 4 layers, {arguments.pretrain_steps:,} steps of masked LM")
    settings = {"data": {"shards": shards}, "train": {"steps": arguments.pretrain_steps}}
    _, metrics = pretrain(config.load(PretrainConfig, "laptop/best", settings), pretrained)

    _title("4  filling masks")
    for sentence, (guesses,) in zip(SENTENCES, bert_tf.load(pretrained).fill_mask(SENTENCES)):
        print(f"  {sentence}  ->  " + ", ".join(f"{token} {p:.2f}" for token, p in guesses))

    _title("5  fine-tuning: sentiment of movie-review sentences, with and without the pretraining")
    settings = {"epochs": arguments.epochs, "optimizer": {"learning_rate": 1e-3}} | samples.REVIEWS
    model = bert_tf.finetune(pretrained, output=folder / "sentiment", **settings)
    without = folder / "sentiment_without_pretraining"
    without = bert_tf.finetune(pretrained, output=without, pretrained=False, **settings).results

    _title("6  export, queried in a new process that imports only tensorflow and tensorflow_text")
    exported = model.export()
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", ASK, str(exported), *REVIEWS], check=True, env=environment)
    _report(folder, metrics, model.results, without, exported, time.monotonic() - started)


def _title(text):
    print(f"\n== {text}", flush=True)


def _report(folder, metrics, with_it, without_it, exported, seconds):
    accuracy = [s["test"]["mean"]["accuracy"] for s in (with_it, without_it)]
    majority = with_it["test"]["baselines"]["majority class"]["accuracy"]
    print(f"""
== done in {seconds / 60:.1f} minutes

  masked LM accuracy    {metrics["masked_lm_accuracy"]:.3f}   unigram guess {metrics["unigram_masked_lm_accuracy"]:.3f}
  masked LM loss        {metrics["masked_lm_loss"]:.3f}   unigram guess {metrics["unigram_masked_lm_loss"]:.3f}
  sentiment, test       {accuracy[0]:.3f}   without pretraining {accuracy[1]:.3f}   majority class {majority:.3f}

  everything is in {folder}/: tokenizer/ shards/ pretrained/ sentiment/
  the SavedModel is {exported}

== the same on your own data

  bert-tf vocab     YOUR_TEXT/ --output tokenizer --size 4096
  bert-tf shards    YOUR_TEXT/ --tokenizer tokenizer --output shards --format full_sentences --sequence-length 64
  bert-tf inspect   shards
  bert-tf pretrain  --shards shards --output run --config laptop/best
  bert-tf predict run "The [MASK] of the United States."
  bert-tf finetune  --init-from run --train train.tsv --dev dev.tsv --output task --set optimizer.learning_rate=1e-3
  bert-tf evaluate  task test.tsv
  bert-tf predict   task "Some text."
  bert-tf export    task""")
