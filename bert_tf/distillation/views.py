"""What distillation asks of a model: the predictions that are compared, and its own loss of the labels.

A view is of a task's model or of a masked LM; the student and the teacher have the same kind.
"""

from keras import ops

from bert_tf.errors import ConfigError
from bert_tf.layers.parts import gather_positions
from bert_tf.tasks.heads import row_weights


class TaskView:
    """The view of a `TaskModel`: everything that its output layer computes.

    Args:
        model: a `TaskModel` with `can_be_distilled`.

    Raises:
        ConfigError: a model that cannot be distilled.

    Example:
        features = {"label_weights": np.array([1.0, 0.0], "float32")}
        TaskView(Classifier(encoder, units=2)).rows(features)  # 0 for the row that fills the batch up
    """

    def __init__(self, model):
        name = type(model).__name__
        if not model.can_be_distilled:
            raise ConfigError(f"{name} cannot be distilled; classification, regression, pairs and tagging can be")
        self.model = model

    def forward(self, features, training):
        """(float32 [..., C] that is compared with the teacher's, what `label_sums` reads)."""
        outputs = self.model.outputs(features, training=training)
        return outputs, outputs

    def predictions(self, features):
        """float32 [...]: 1 where a prediction counts."""
        return ops.cast(features["label_weights"], "float32")

    def rows(self, features):
        """float32 [B]: 0 for a row that fills a batch up."""
        return row_weights(features)

    def labelled(self, features):
        """The features for the loss of the labels, in which unlabelled examples have no weight."""
        if "labelled" not in features:
            return features
        counts = features["labelled"]
        weights = features["label_weights"]
        return features | {"label_weights": weights * (counts if len(weights.shape) == 1 else counts[:, None])}


class MaskedLMView:
    """The view of a `MaskedLM`: the logits at the masked tokens, or at all tokens.

    Args:
        model: a `MaskedLM`.
        everywhere: whether all tokens without padding are compared (DistilBERT), or the masked ones.

    Example:
        logits, _ = MaskedLMView(MaskedLM(encoder), everywhere=True).forward(next(iter(dataset)), training=False)
    """

    def __init__(self, model, everywhere=False):
        self.model, self.everywhere = model, everywhere

    def forward(self, features, training):
        """As of `TaskView`: float32 [B, P, V], or [B, S, V] of all tokens."""
        if not self.everywhere:
            outputs = self.model(features, training=training)
            return outputs["masked_lm_logits"], outputs
        every = ops.zeros_like(features["token_ids"]) + ops.arange(ops.shape(features["token_ids"])[1], dtype="int32")
        outputs = self.model(features | {"mask_positions": every}, training=training)
        logits = outputs["masked_lm_logits"]
        return logits, outputs | {"masked_lm_logits": gather_positions(logits, features["mask_positions"])}

    def predictions(self, features):
        """As of `TaskView`."""
        return ops.cast(features["padding_mask" if self.everywhere else "mask_weights"], "float32")

    def rows(self, features):
        """As of `TaskView`; a row that fills a batch up is empty."""
        return ops.cast(ops.any(features["padding_mask"], axis=1), "float32")

    def labelled(self, features):
        """As of `TaskView`: all rows have their own tokens as labels."""
        return features
