"""The base class of everything that is `fit`.

A subclass says what its losses are; this class says how they become an update, the same on one
device and on many. Two rules make the numbers independent of the number of replicas:

* a loss is a pair (weighted sum, weight), divided once by the weight of the whole global batch;
* gradients are summed over micro-batches and replicas first, and clipped after.
"""

from typing import Any

from bert_tf.backend import active
from bert_tf.backend.initial_weights import SeededByName


class TrainableModel(active.Trainer, metaclass=SeededByName):
    """A Keras model with a loss of its own.

    `compile(optimizer)` and `fit(dataset)` work as in any Keras model, except that an element of
    the dataset is one dict of features, labels included, and that no loss is passed to `compile`.

    Subclasses implement `loss_weights`, `loss_sums` and `call(features, training)`.

    Example:
        class Line(TrainableModel):
            def __init__(self):
                super().__init__()
                self.dense = Dense(1)
                self.dense.build((None, 1))

            def loss_weights(self, features):
                return {"square": ops.sum(ops.ones_like(features["y"]))}

            def loss_sums(self, features, training):
                error = self.dense(features["x"]) - features["y"]
                return {"square": ops.sum(error**2)}, {}

        model = Line()
        model.compile(AdamW(1e-3))
        model.fit({"x": np.ones((4, 1), "float32"), "y": np.ones((4, 1), "float32")}, verbose=0)
    """

    #: Factor of each named loss in the total; 1 where absent.
    loss_coefficients: dict[str, float] = {}

    def backbones(self) -> dict[str, Any]:
        """Each backbone inside, by the prefix of the paths of its variables; the one that is wanted in the end has none.

        A method, because Keras would follow an attribute when it saves the model.
        """
        return {"": self.backbone}

    def loss_weights(self, features: dict[str, Any]) -> dict[str, Any]:
        """What each loss is divided by, from the data alone.

        Args:
            features: dict of tensors, one replica's part of the batch.

        Returns:
            dict from loss name to a float32 scalar: the sum of the weights of its terms.
        """
        raise NotImplementedError(f"{type(self).__name__} must define loss_weights")

    def loss_sums(self, features: dict[str, Any], training: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """The losses and metrics of a batch, undivided.

        What layers add while it runs (`add_loss`, activity regularizers) and the regularizers of the trainable
        variables belong to the loss, as in Keras: a further loss `added`, whose weight is the number of rows. So over
        replicas and micro-batches it is the mean of their values.

        Returns:
            A pair: dict from loss name to a float32 scalar, the weighted sum of its terms; dict
            from metric name to a pair of float32 scalars (weighted sum, weight).
        """
        raise NotImplementedError(f"{type(self).__name__} must define loss_sums")
