"""The models of the tasks: an encoder with dropout and one dense layer, trained together.

Section 4.1 of Devlin et al. 2019 (sentences and pairs: the pooled output) and section 5.3 (tagging:
each token's last hidden state); google-research/bert `run_classifier.py`, `create_model`.
"""

import keras
import tensorflow as tf
from keras import ops

from bert_tf.backend import TrainableModel, largest
from bert_tf.errors import ConfigError
from bert_tf.layers import ClassificationHead, Pooler

INPUTS = ("token_ids", "segment_ids", "padding_mask")


class TaskModel(TrainableModel):
    """Base class of the models of tasks: an encoder with an output layer.

    A subclass defines `call` and `loss_sums` from what `outputs` computes, as `Classifier` does.

    Args:
        encoder: of a model family. An encoder without a pooler gets a new one (dense, tanh) here.
        units: the number of outputs.
        dropout: rate before the output layer.
        pooled: whether the outputs are computed from the pooled output, or from each token.
        name: of the Keras model.

    Raises:
        ConfigError: an encoder-decoder.

    Example:
        model = TaskModel(encoder, units=3)
        model.outputs(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8)).shape  # [1, 3]
    """

    def __init__(self, encoder, units, dropout=0.1, pooled=True, name="task"):
        super().__init__(name=name)
        if encoder.kind == "encoder_decoder":
            raise ConfigError(
                f"the tasks fine-tune encoders and decoders, and {type(encoder).__name__} is an encoder-decoder; "
                "use a model of another family"
            )
        self.backbone = encoder
        config = encoder.config
        hidden, self.pooled = config.hidden_size, pooled
        initializer_range = config.initializer_range
        self.pooler = None
        if pooled and "pooled_output" not in encoder.output:
            self.pooler = Pooler(hidden, "tanh", initializer_range, name="pooler")
            self.pooler.build((None, None, hidden))
        # float32 also under mixed precision: bfloat16 logits would tie.
        self.head = ClassificationHead(units, dropout, initializer_range, dtype="float32", name="head")
        self.head.build((None, hidden) if pooled else (None, None, hidden))
        self.built = True

    def outputs(self, features, training=False):
        """float32 [B, units] if pooled, else [B, S, units]."""
        inputs = {name: features[name] for name in INPUTS}
        if not self.pooled:
            hidden = self.backbone(inputs, training=training)["sequence_output"]
        else:
            # `outputs_at` always computes the position that an encoder's own pooler reads.
            first = ops.zeros_like(inputs["token_ids"][:, : 1 if self.pooler else 0])
            encoded = self.backbone.outputs_at(inputs, first, training=training)
            hidden = self.pooler(encoded["sequence_output"]) if self.pooler else encoded["pooled_output"]
        return self.head(hidden, training=training)

    def loss_weights(self, features):
        return {"label": ops.sum(features["label_weights"])}

    # Not Keras's predict_on_batch, which under a strategy answers once per replica and without
    # compile() runs through XLA.
    @tf.function(autograph=False)
    def infer(self, features):
        """`call` without dropout, for evaluation and prediction."""
        if not self.static_shapes:
            return self(features, training=False)
        parts = self.distribute_strategy.run(self._infer_part, args=(features,))
        local = self.distribute_strategy.experimental_local_results
        return {name: tf.concat(local(values), axis=0) for name, values in parts.items()}

    def _infer_part(self, features):
        """What `infer` answers for the examples of this replica."""
        replica = tf.distribute.get_replica_context()

        def part(tensor):
            size = tensor.shape[0] // replica.num_replicas_in_sync
            begin = [replica.replica_id_in_sync_group * size] + [0] * (tensor.shape.rank - 1)
            return tf.slice(tensor, begin, [size, *tensor.shape[1:]])

        return self({name: part(tensor) for name, tensor in features.items()}, training=False)


class Classifier(TaskModel):
    """Classifies texts (`pooled=True`, labels [B]) or every token (`pooled=False`, labels [B, S]).

    Call arguments:
        features: `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S]; for training
            also `labels` int32 and `label_weights` float32, [B] or [B, S].

    Returns:
        {"logits", "probabilities"}: float32 [B, C] or [B, S, C].

    Example:
        model = Classifier(encoder, units=2)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["logits"].shape  # [1, 2]
    """

    def call(self, features, training=False):
        logits = self.outputs(features, training=training)
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def loss_sums(self, features, training):
        logits = self.outputs(features, training=training)
        labels, weights = features["labels"], features["label_weights"]
        # Weighted by the mask rather than gathered: one fused kernel, and exact zeros for filler.
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        hits = ops.cast(ops.equal(largest(logits), labels), "float32")
        return {"label": ops.sum(losses * weights)}, {"accuracy": (ops.sum(hits * weights), ops.sum(weights))}


class Regressor(TaskModel):
    """Predicts one number for a text or a pair, trained on the squared error.

    The labels are standardised inside by `mean` and `scale`, so that learning rates for classification also suit
    labels from 0 to 1000. The outputs are in the labels' own unit; the loss is the squared error over the variance.

    Args:
        encoder, dropout: as in `TaskModel`.
        mean, scale: the mean and the standard deviation of the training labels.

    Returns:
        {"score": float32 [B]}.

    Example:
        model = Regressor(encoder, mean=2.5, scale=1.5)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["score"].shape  # [1]
    """

    def __init__(self, encoder, dropout=0.1, mean=0.0, scale=1.0, name="task"):
        super().__init__(encoder, 1, dropout, name=name)
        self.mean, self.scale = float(mean), float(scale)

    def call(self, features, training=False):
        outputs = self.outputs(features, training=training)
        return {"score": ops.squeeze(outputs, axis=-1) * self.scale + self.mean}

    def loss_sums(self, features, training):
        outputs = ops.squeeze(self.outputs(features, training=training), axis=-1)
        weights = features["label_weights"]
        errors = ops.square(outputs - (features["labels"] - self.mean) / self.scale)
        absolute = ops.sum(ops.sqrt(errors) * self.scale * weights)
        return {"label": ops.sum(errors * weights)}, {"mean_absolute_error": (absolute, ops.sum(weights))}
