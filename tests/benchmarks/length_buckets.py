"""Fine-tuning on short texts: batches of similar length beside rows that are all padded to one length.

    python tests/benchmarks/length_buckets.py [--length 128]

The bundled review sentences, a fresh BERT of 4 layers of 256. A turn is one epoch of 2,048 of them; the
accuracy on the dev file is that after all rounds, from the same weights and the same number of updates.
"""

import argparse
import itertools
from pathlib import Path

from side_by_side import main

SAMPLES = Path(__file__).parent.parent.parent / "bert_tf" / "samples"


def bert_tf(padded):
    def setup(a):
        import keras

        from bert_tf.backend import AdamW
        from bert_tf.models.bert import BertConfig, BertEncoder
        from bert_tf.tasks import TaskConfig, build_task
        from bert_tf.tokenizers import train_wordpiece

        lines = (SAMPLES / "reviews_train.tsv").read_text(encoding="utf-8").splitlines()
        tokenizer = train_wordpiece(lines, 8000, lowercase=True)
        task = build_task(TaskConfig(kind="classification", sequence_length=a.length), tokenizer)
        examples = task.read(SAMPLES / "reviews_train.tsv")
        dev = task.read(SAMPLES / "reviews_dev.tsv")
        keras.utils.set_random_seed(0)
        model = task.model(BertEncoder(BertConfig(8000, 256, 4, 4, 1024), dtype="mixed_bfloat16"))
        model.compile(AdamW(2e-4))
        epochs = itertools.count()

        def turn():
            data = task.dataset(examples, 32, training=True, epoch=next(epochs), static_shapes=padded)
            model.fit(data.take(64), verbose=0)
            return 64 * 32

        return "examples", turn, lambda: {"dev accuracy": f"{task.evaluate(model, dev)['accuracy']:.3f}"}

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=128)
    main({"length buckets": bert_tf(False), "padded": bert_tf(True)}, parser, reference=["padded"])
