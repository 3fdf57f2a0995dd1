"""The model of the task multi_label: one output for each label, each by itself."""

import keras
from keras import ops

from bert_tf.tasks.heads import TaskModel


@keras.saving.register_keras_serializable("bert_tf")
class MultiLabelClassifier(TaskModel):
    """Says of each label whether it is right, for a text or a pair.

    The loss of an example is the mean over the labels of the binary cross-entropy, as that of Hugging Face's classes
    with problem_type "multi_label_classification" (torch.nn.BCEWithLogitsLoss).

    Args:
        encoder, units, dropout, options: as in `TaskModel`.

    Call arguments:
        features: `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S]; for training also `labels`
            float32 [B, L], 1 for a right label and 0 for another, and `label_weights` float32 [B].

    Returns:
        {"logits", "probabilities"}: float32 [B, L].

    Example:
        model = MultiLabelClassifier(encoder, units=3)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["probabilities"].shape  # [1, 3]
    """

    def call(self, features, training=False):
        logits = self.outputs(features, training=training)
        return {"logits": logits, "probabilities": ops.sigmoid(logits)}

    def label_sums(self, logits, features):
        labels, weights = features["labels"], features["label_weights"]
        losses = keras.losses.binary_crossentropy(labels, logits, from_logits=True)
        hits = ops.mean(ops.cast(ops.equal(logits > 0, labels > 0.5), "float32"), axis=-1)
        return {"label": ops.sum(losses * weights)}, {"accuracy": (ops.sum(hits * weights), ops.sum(weights))}
