"""Fine-tuning on short texts: batches of similar length beside rows that are all padded to one length.

    python tests/benchmarks/length_buckets.py [--init-from RUN] [--length 128] [--rounds 3] [--seed 0]

The bundled review sentences; the model of a pretraining run, or a fresh BERT of 4 layers of 256. A turn is one
epoch of `--examples` of them; the accuracies on the dev file and on the test file are those after all rounds,
from the same weights and the same number of updates.
"""

import argparse
import dataclasses
import itertools
from pathlib import Path

from side_by_side import main

SAMPLES = Path(__file__).parent.parent.parent / "bert_tf" / "samples"
ROWS = 32


def encoder_and_tokenizer(a):
    import keras

    from bert_tf.checkpoints import OpenedModel, open_source
    from bert_tf.models.bert.config import BertConfig
    from bert_tf.models.bert.model import BertEncoder
    from bert_tf.tokenizers import train_wordpiece
    from bert_tf.training.starting import with_dropout

    keras.config.set_dtype_policy("mixed_bfloat16")
    if a.init_from:
        source = open_source(a.init_from)
        return OpenedModel(
            dataclasses.replace(source, config=with_dropout(source.config, 0.1))
        ).backbone, source.tokenizer
    lines = (SAMPLES / "reviews_train.tsv").read_text(encoding="utf-8").splitlines()
    return BertEncoder(BertConfig(8000, 256, 4, 4, 1024)), train_wordpiece(lines, 8000, lowercase=True)


def bert_tf(padded):
    def setup(a):
        import keras

        from bert_tf.backend import AdamW, WarmupDecay
        from bert_tf.tasks import build_task

        keras.utils.set_random_seed(a.seed)
        encoder, tokenizer = encoder_and_tokenizer(a)
        task = build_task({"kind": "classification", "sequence_length": a.length}, tokenizer)
        train = task.read(SAMPLES / "reviews_train.tsv")
        task = task.learn(train)
        files = {name: task.read(SAMPLES / f"reviews_{name}.tsv") for name in ("dev", "test")}
        model = task.model(encoder)
        updates = a.examples // ROWS
        schedule = WarmupDecay(a.learning_rate, updates * (a.rounds + 1), updates * (a.rounds + 1) // 10)
        model.compile(AdamW(schedule), seed=a.seed)
        epochs = itertools.count()

        def turn():
            data = task.dataset(train, ROWS, training=True, seed=a.seed, epoch=next(epochs), static_shapes=padded)
            model.fit(data.take(updates), verbose=0)
            return updates * ROWS

        def accuracies():
            return {name: f"{task.evaluate(model, examples)['accuracy']:.4f}" for name, examples in files.items()}

        return "examples", turn, accuracies

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--init-from", help="a directory that `bert-tf pretrain` has written")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--examples", type=int, default=2048, help="of a turn")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    main({"length buckets": bert_tf(False), "padded": bert_tf(True)}, parser, reference=["padded"])
