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

from bert_tf.cli.settings import at_least

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
    add = parser.add_argument
    add("--output", default="quickstart", help="folder for all results (default ./%(default)s)")
    add("--pretrain-steps", type=at_least(1), default=1000, help="updates of pretraining (default %(default)s)")
    add("--epochs", type=at_least(1), default=3, help="epochs of fine-tuning (default %(default)s)")
    add("--vocabulary-size", type=at_least(1), default=4000, help="entries of the vocabulary (default %(default)s)")


def run(arguments):
    started = time.monotonic()
    from bert_tf import samples

    folder = Path(arguments.output)
    corpus = [samples.STATE_OF_THE_UNION, folder / "reviews.txt"]
    vocabulary, shards, pretrained = folder / "tokenizer", folder / "shards", folder / "pretrained"

    _title("1  vocabulary: WordPiece, trained on 33 State of the Union addresses and 8,252 review sentences")
    samples.write_review_text(corpus[1])
    _make_vocabulary(corpus, vocabulary, arguments.vocabulary_size)
    _title("2  shards: rows of 64 tokens, filled with whole sentences")
    _write_shards(corpus, vocabulary, shards)
    _title(f"3  pretraining: a ModernBERT of 4 layers, {arguments.pretrain_steps:,} steps of masked LM")
    metrics = _pretrain(shards, pretrained, arguments.pretrain_steps)
    _title("4  filling masks")
    _fill_masks(pretrained)
    _title("5  fine-tuning: sentiment of movie-review sentences, with and without the pretraining")
    with_it, without_it = _finetune(samples.REVIEWS, pretrained, folder, arguments.epochs)
    _title("6  export, queried in a new process that imports only tensorflow and tensorflow_text")
    exported = _export_and_ask(folder / "sentiment")
    _report(folder, metrics, with_it, without_it, exported, time.monotonic() - started)


def _title(text):
    print(f"\n== {text}", flush=True)


def _make_vocabulary(corpus, output, size):
    from bert_tf.tokenizers import train_wordpiece
    from tfrecords.corpus.documents import read_texts

    tokenizer = train_wordpiece(read_texts(corpus), size, lowercase=True)
    tokenizer.save(output)
    text = "Congress of the United States"
    print(
        f"  {tokenizer.vocabulary_size:,} tokens; {text!r} -> {[tokenizer.id_to_token(i) for i in tokenizer.encode(text)]}"
    )


def _write_shards(corpus, vocabulary, output):
    from bert_tf.tokenizers import load_tokenizer
    from tfrecords.shards.statistics import report
    from tfrecords.shards.writer import ShardsConfig, write_shards

    manifest = write_shards(
        corpus, output, load_tokenizer(vocabulary), ShardsConfig(sequence_length=64, format="full_sentences")
    )
    print("\n".join(f"  {line}" for line in report(manifest.counts, manifest.sequence_length)))


def _pretrain(shards, output, steps):
    from bert_tf import config
    from bert_tf.training.pretraining import PretrainConfig, pretrain

    settings = {"data": {"shards": shards}, "train": {"steps": steps}}
    _, metrics = pretrain(config.load(PretrainConfig, "laptop/best", settings), output)
    return metrics


def _fill_masks(pretrained):
    import bert_tf
    from bert_tf.export.fill_mask import fill_mask

    model = bert_tf.load(pretrained)
    for sentence, answers in zip(SENTENCES, fill_mask(model.objective, model.tokenizer, SENTENCES)):
        for guesses in answers:
            print(f"  {sentence}  ->  " + ", ".join(f"{token} {p:.2f}" for token, p in guesses))


def _finetune(labelled, pretrained, folder, epochs):
    from bert_tf import config
    from bert_tf.training.finetuning import FinetuneConfig, finetune

    summaries = []
    for name, use in (("sentiment", True), ("sentiment_without_pretraining", False)):
        settings = {
            "init_from": pretrained,
            "data": labelled,
            "optimizer": {"learning_rate": 1e-3},
            "train": {"epochs": epochs, "pretrained": use},
        }
        experiment = config.load(FinetuneConfig, "finetune/classification", settings)
        summaries.append(finetune(experiment, folder / name))
    return summaries


def _export_and_ask(run_directory):
    from bert_tf.export import export_run

    exported = export_run(run_directory)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", ASK, str(exported), *REVIEWS], check=True, env=environment)
    return exported


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
