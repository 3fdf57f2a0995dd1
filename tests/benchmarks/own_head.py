"""The two ways of docs/guides/own_head.md: updates of a classifier on `TrainableModel` and of the same as a plain `keras.Model`.

    TF_ENABLE_ONEDNN_OPTS=1 python tests/benchmarks/own_head.py [--hidden-size 768 --layers 12 --heads 12 --batch 16]

The class is that of the page; the plain model has the same layers. float32, dropout 0.1, Adam.
"""

import argparse
import re
from pathlib import Path

from side_by_side import main, model_arguments, paced

PAGE = Path(__file__).parents[2] / "docs" / "own_head.md"
NAMES = ("token_ids", "segment_ids", "padding_mask")


def made(a):
    """(an encoder, a batch of random ids and labels)."""
    import numpy as np

    from bert_tf.models.bert.config import BertConfig
    from bert_tf.models.bert.model import BertEncoder

    encoder = BertEncoder(BertConfig(30522, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size), pooler=False)
    ids = np.random.default_rng(0).integers(1000, 30000, (a.batch, a.length), "int32")
    batch = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    return encoder, batch, np.arange(a.batch, dtype="int32") % 2


def trainable(a):
    import keras
    import tensorflow as tf
    from keras import ops

    encoder, batch, labels = made(a)
    page = PAGE.read_text(encoding="utf-8")
    code = re.search(r"(from bert_tf.backend.*?)\n\n\nmodel = ", page, re.DOTALL)[1]
    names = {"keras": keras, "ops": ops, "names": NAMES}
    exec(code, names)
    model = names["MeanClassifier"](encoder, 2)
    model.compile("adam")
    batch["padding_mask"] = batch["padding_mask"].astype(bool)
    data = tf.data.Dataset.from_tensors(batch | {"labels": labels}).repeat()
    return "texts", lambda turn=paced(model, data, a.steps): turn() or a.steps * a.batch


def plain(a):
    import keras
    import tensorflow as tf

    encoder, batch, labels = made(a)
    inputs = {name: keras.Input([None], dtype="int32", name=name) for name in NAMES}
    tokens = encoder(inputs)["sequence_output"]
    mean = keras.layers.GlobalAveragePooling1D()(tokens, mask=inputs["padding_mask"])
    hidden = keras.layers.Dropout(0.1)(keras.layers.Dense(64, activation="relu")(mean))
    model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensors((batch, labels)).repeat()
    return "texts", lambda turn=paced(model, data, a.steps): turn() or a.steps * a.batch


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_arguments(parser, batch=8)
    parser.add_argument("--steps", type=int, default=3)
    main({"TrainableModel": trainable, "keras.Model": plain}, parser, ["keras.Model"])
