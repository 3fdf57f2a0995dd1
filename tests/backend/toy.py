"""A small masked model and its data, shared by the tests of this room."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.backend import Dropout, TrainableModel

VOCABULARY, LENGTH, WIDTH = 61, 16, 32


class Toy(TrainableModel):
    """Embedding, dropout, dense; predicts each id with the given weights."""

    def __init__(self, rate=0.0, seed=1):
        super().__init__()
        uniform = keras.initializers.RandomUniform(-0.3, 0.3, seed=seed)
        self.embedding = keras.layers.Embedding(VOCABULARY, WIDTH, embeddings_initializer=uniform)
        self.dropout = Dropout(rate)
        self.dense = keras.layers.Dense(VOCABULARY, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 1))
        self.embedding.build((None, LENGTH))
        self.dense.build((None, LENGTH, WIDTH))
        self.built = True

    def call(self, features, training=False):
        return self.dense(self.dropout(self.embedding(features["token_ids"]), training=training))

    def loss_weights(self, features):
        return {"token": ops.sum(features["weights"]), "sum": ops.sum(features["weights"][:, 0])}

    def loss_sums(self, features, training):
        logits = ops.cast(self(features, training=training), "float32")
        terms = keras.losses.sparse_categorical_crossentropy(features["labels"], logits, from_logits=True)
        weights = features["weights"]
        right = ops.cast(ops.equal(ops.argmax(logits, -1), features["labels"]), "float32")
        losses = {"token": ops.sum(terms * weights), "sum": ops.sum(terms[:, 0] * weights[:, 0])}
        return losses, {"accuracy": (ops.sum(right * weights), ops.sum(weights))}


def arrays(count, seed=0):
    random = np.random.RandomState(seed)
    lengths = random.randint(1, LENGTH + 1, (count, 1))
    ids, labels = (random.randint(0, VOCABULARY, (count, LENGTH)) for _ in range(2))
    weights = (np.arange(LENGTH)[None] < lengths).astype("float32")
    return {"token_ids": ids.astype("int32"), "labels": labels.astype("int64"), "weights": weights}


def dataset(count, batch, seed=0):
    return tf.data.Dataset.from_tensor_slices(arrays(count, seed)).batch(batch)
