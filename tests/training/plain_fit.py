"""What a user's own script does with a model under a strategy: compile, fit, evaluate and predict."""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.backend import AdamW

sys.path.append(str(Path(__file__).parents[1] / "backend"))
from toy import Toy, arrays


def plain_fit(strategy):
    """What comes of it, a dict of arrays.

    All weights of a batch are in its first half, on one replica of two; the last of six batches is one
    row, so that the other replicas have none; and the clip bites.
    """
    features = arrays(41)
    features["weights"][np.arange(41) % 8 >= 4] = 0
    data = tf.data.Dataset.from_tensor_slices(features).batch(8)
    with strategy.scope():
        model = Toy()
        model.compile(AdamW(1e-2, global_clipnorm=0.05))
    losses = model.fit(data, epochs=4, verbose=0).history["loss"]
    measured = model.evaluate(data, verbose=0, return_dict=True)
    weights = np.concatenate([w.ravel() for w in model.get_weights()])
    losses = np.array([*losses, measured["loss"], measured["accuracy"]])
    return {"losses": losses, "predictions": model.predict(data, verbose=0), "weights": weights}
