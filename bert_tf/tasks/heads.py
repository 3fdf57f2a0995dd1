"""The models of the tasks: an encoder or a decoder with the head that its family is fine-tuned with, trained together.

Section 4.1 of Devlin et al. 2019 (sentences and pairs: the pooled output) and section 5.3 (tagging:
each token's last hidden state); google-research/bert `run_classifier.py`, `create_model`. A decoder is read at the last
real token, the only one that has seen the whole text (Radford et al. 2018, section 3.2); its auxiliary language
modelling loss is that of equation 5, as openai/finetune-transformer-lm `train.py` computes it.
"""

import keras
import tensorflow as tf
from keras import ops

from bert_tf.backend import TrainableModel, largest
from bert_tf.errors import ConfigError
from bert_tf.layers import ClassificationHead, EndsOfDirections, Pooler, bilstms
from bert_tf.layers.heads import last_positions
from bert_tf.layers.parts import gather_positions
from bert_tf.models.task_heads import BERT_HEADS
from bert_tf.objectives.losses import cross_entropy_sums
from bert_tf.tasks.features import (
    FROZEN_OUTPUTS,
    encode,
    mixes_of,
    penalty,
    token_vectors,
    width_of_mix,
    width_of_tokens,
)
from bert_tf.tasks.texts.pair_order import check_layout, swapped

INPUTS = ("token_ids", "segment_ids", "padding_mask")


class InferringModel(TrainableModel):
    """A model of a task, whose `call` answers on one device or on several."""

    #: Whether `outputs` and `label_sums` are defined, as `bert_tf.distillation` needs.
    can_be_distilled = False

    def __init__(self, name=None):
        super().__init__(name=name)
        self.autocast = False  # the labels and weights among the features stay float32 in any precision

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


class TaskModel(InferringModel):
    """Base class of the models of tasks: an encoder or a decoder with an output layer.

    A subclass defines `call` and `label_sums` from what `outputs` computes, as `Classifier` does.

    Args:
        encoder: of a model family. An encoder without a pooler gets a new one (dense, tanh) where the head reads it.
        units: the number of outputs.
        dropout: rate before the output layer; None for the head's own.
        pooled: whether the outputs are computed for each text, or for each token; where there is no `head`.
        both_orders: None, or the `Layout` of pairs that are read in both orders: the two pooled outputs are added.
        lm_weight: the weight of the auxiliary language modelling loss of a decoder; 0 for none.
        head: a `TaskHead`; None for BERT's. `task_head` returns that of a family.
        width: of the vectors that the output layer reads; None for the width of the encoder.
        name: of the Keras model.

    Raises:
        ConfigError: an encoder-decoder; `lm_weight` with an encoder or a prefix; a layout that does not show the second
            text.

    Example:
        model = TaskModel(encoder, units=3)
        model.outputs(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8)).shape  # [1, 3]
    """

    def __init__(
        self,
        encoder,
        units,
        dropout=None,
        pooled=True,
        both_orders=None,
        lm_weight=0.0,
        head=None,
        width=None,
        name="task",
    ):
        super().__init__(name=name)
        if encoder.structure == "encoder_decoder":
            raise ConfigError(
                f"the tasks fine-tune encoders and decoders, and {type(encoder).__name__} is an encoder-decoder; "
                "set task.kind=text_to_text, or use a model of another family"
            )
        if lm_weight and encoder.structure != "decoder":
            raise ConfigError(
                f"task.decoder.lm_weight={lm_weight} is for decoders (GPT), and {type(encoder).__name__} is an encoder; "
                "remove task.decoder.lm_weight"
            )
        if lm_weight and encoder.prefix:
            raise ConfigError(
                f"task.decoder.lm_weight={lm_weight} would predict tokens that model.prefix lets the model see; remove task.decoder.lm_weight"
            )
        if both_orders is not None:
            check_layout(both_orders)
        head = head or BERT_HEADS["classification" if pooled else "tagging"]
        config = encoder.config
        hidden, initializer_range = config.hidden_size, config.initializer_range
        self.lstms, self.mixes, self.ends, read = [], [], None, hidden
        if head.features:
            encoder, self.mixes = mixes_of(encoder, head.features)
            read, width = width_of_mix(head.features, hidden), width or width_of_tokens(head.features, hidden)
        self.both_orders, self.lm_weight, self.task_head = both_orders, lm_weight, head
        self.backbone, self.pooled = encoder, head.reads != "tokens"
        if head.lstm_layers:
            each = head.lstm_units or max(1, hidden // 2)
            self.lstms, width = bilstms(head.lstm_layers, each, read), width or 2 * each
            self.ends = EndsOfDirections(dtype="float32", name="ends")
        self.pooler = None
        if head.reads == "pooled" and "pooled_output" not in encoder.output:
            self.pooler = Pooler(hidden, "tanh", initializer_range, name="pooler")
            self.pooler.build((None, None, hidden))
        # float32 also under mixed precision: bfloat16 logits would tie.
        self.head = ClassificationHead(
            units,
            head.dropout if dropout is None else dropout,
            initializer_range,
            activation=head.activation,
            hidden_bias=head.hidden_bias,
            norm_epsilon=head.norm_epsilon,
            input_dropout=head.input_dropout,
            use_bias=head.bias,
            initializer=head.initializer,
            hidden_size=head.width,
            dtype="float32",
            name="head",
        )
        width = width or hidden
        self.head.build((None, width) if self.pooled else (None, None, width))
        self.built = True

    def pretrained_head(self):
        """The variables of the head that pretraining has trained: their path in the pretraining model -> variable."""
        own = {variable.path: variable for variable in self.head.weights}
        return {theirs: own[f"head/{ours}"] for ours, theirs in self.task_head.pretrained.items()}

    def outputs(self, features, training=False):
        """float32 [B, units] if pooled, else [B, S, units]."""
        parts = [self._hidden(inputs, training) for inputs in self._orders(features)]
        return self.head(sum(parts[1:], parts[0]), training=training)

    def outputs_and_losses(self, features, training):
        """What `outputs` returns, and the losses beside the task's own: {} or {"language_model": float32 scalar}."""
        if not self.lm_weight:
            return self.outputs(features, training=training), self._penalties(features)
        orders, parts, losses = self._orders(features), [], []
        rows = _row_weights(features)
        for inputs in orders:
            encoded = self.backbone(inputs, training=training)
            if self.lstms:
                parts.append(self._above_bilstm(encoded, inputs, training))
            else:
                parts.append(encoded["pooled_output" if self.pooled else "sequence_output"])
            losses.append(self._language_model_loss(inputs, encoded["sequence_output"], rows))
        outputs = self.head(sum(parts[1:], parts[0]), training=training)
        return outputs, {"language_model": self.lm_weight * sum(losses) / len(losses)}

    def loss_sums(self, features, training):
        outputs, others = self.outputs_and_losses(features, training)
        losses, metrics = self.label_sums(outputs, features)
        return losses | others, metrics

    def label_sums(self, outputs, features):
        """The loss of the labels and the metrics of a batch, undivided, as `loss_sums`.

        Args:
            outputs: what `outputs` returns.
            features: with `labels` and `label_weights`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define label_sums, or loss_sums")

    def _orders(self, features):
        """The inputs of the backbone: as they are, and where asked for in the other order."""
        orders = [features] if self.both_orders is None else [features, swapped(features, self.both_orders)]
        return [backbone_inputs(self.backbone, each) for each in orders]

    def _hidden(self, inputs, training):
        """What the head reads: float [B, H] if pooled, else [B, S, H]."""
        reads = self.task_head.reads
        if self.lstms:
            encoded = encode(self.backbone, self.mixes, inputs, training)
            return self._above_bilstm(encoded, inputs, training)
        if reads in ("tokens", "mean"):
            x = self.backbone(inputs, training=training)["sequence_output"]
            return x if reads == "tokens" else mean_of_tokens(x, inputs["padding_mask"])
        # `outputs_at` always computes the position that an encoder's own pooler reads.
        own_pooler = reads == "pooled" and self.pooler is None
        first = ops.zeros_like(inputs["padding_mask"][:, : 0 if own_pooler else 1], dtype="int32")
        encoded = self.backbone.outputs_at(inputs, first, training=training)
        return encoded["pooled_output"] if own_pooler else self._first(encoded["sequence_output"])

    def _first(self, x):
        """What the head reads of a text's first vector: float [B, S, H] -> [B, H]."""
        return self.pooler(x) if self.pooler else x[:, 0]

    def _above_bilstm(self, encoded, inputs, training):
        """What the head reads: float32 [B, W] if pooled, else [B, S, W]; W is 2 units, and the width of a second mix."""
        mask = ops.cast(inputs["padding_mask"], "bool")
        vectors = token_vectors(encoded, self.mixes, self.lstms, mask, training)
        return ops.concatenate(self._ends_of(vectors, mask) if self.pooled else vectors, axis=-1)

    def _ends_of(self, vectors, mask):
        """Of `token_vectors` what stands for a text: [B, 2 units], and the means of the other mixes, [B, W]."""
        x, *others = vectors
        return [self.ends(x, padding_mask=mask), *(mean_of_tokens(other, mask) for other in others)]

    def _penalties(self, features):
        """The loss {"mix": float32 scalar} of a batch with `task.frozen_layers.mix_l2`, else {}."""
        head = self.task_head.features
        if not head or not head.mix_l2:
            return {}
        return {"mix": penalty(self.mixes, head) * ops.sum(features["label_weights"])}

    def _language_model_loss(self, inputs, hidden, rows):
        """The sum over examples of the mean cross-entropy of each one's tokens but the first, times `rows` [B]."""
        counted = ops.cast(inputs["padding_mask"], "float32")[:, 1:]
        each = rows[:, None] * counted / ops.maximum(ops.sum(counted, axis=1, keepdims=True), 1.0)
        logits = self.backbone.output_logits(hidden[:, :-1])
        return cross_entropy_sums(logits, inputs["token_ids"][:, 1:], each)[0]

    def loss_weights(self, features):
        weights = {"label": ops.sum(features["label_weights"])}
        if self.lm_weight:
            weights["language_model"] = ops.sum(_row_weights(features))
        if self.task_head.features and self.task_head.features.mix_l2:
            weights["mix"] = weights["label"]
        return weights


class Classifier(TaskModel):
    """Classifies texts (`pooled=True`, labels [B]) or every token (`pooled=False`, labels [B, S]).

    Args:
        encoder, units, dropout, options: as in `TaskModel`.
        class_weights: None, or a float for each label: the weight of its examples (tokens) in the training loss.
        label_smoothing: e in the loss of an example, (1 - e) CE(label) + e mean(CE of all labels).
        linear_gain: whether a decoder predicts the label at each token in training, where the losses of a text of n
            tokens
            have the weights 1, 2, ..., n: Dai and Le 2015. Otherwise the last token predicts alone.

    Call arguments:
        features: `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S]; for training
            also `labels` int32 and `label_weights` float32, [B] or [B, S].

    Returns:
        {"logits", "probabilities"}: float32 [B, C] or [B, S, C].

    Example:
        model = Classifier(encoder, units=2)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["logits"].shape  # [1, 2]
    """

    can_be_distilled = True

    def __init__(
        self,
        encoder,
        units,
        dropout=None,
        class_weights=None,
        label_smoothing=0.0,
        linear_gain=False,
        name="task",
        **options,
    ):
        super().__init__(encoder, units, dropout, name=name, **options)
        others = self.lm_weight or self.both_orders is not None or self.lstms
        if linear_gain and (encoder.structure != "decoder" or others):
            raise ConfigError(
                "task.decoder.linear_gain is for decoders (LSTM, GPT), without task.decoder.lm_weight and task.head.name=bilstm and with "
                "task.decoder.pair_order=given; remove one of them"
            )
        self.linear_gain = linear_gain
        self.class_weights = None if class_weights is None else tuple(class_weights)
        self.label_smoothing = label_smoothing

    def call(self, features, training=False):
        logits = self.outputs(features, training=training)
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def loss_sums(self, features, training):
        if self.linear_gain and training:
            return self._sums(*self._rising_losses(features), features)
        return super().loss_sums(features, training)

    def label_sums(self, logits, features):
        return self._sums(logits, self._losses_of(logits, features["labels"]), features)

    def _sums(self, logits, losses, features):
        labels, weights = features["labels"], features["label_weights"]
        losses = losses * self._weights_of_labels(features)
        hits = ops.cast(ops.equal(largest(logits), labels), "float32")
        return {"label": ops.sum(losses * weights)}, {"accuracy": (ops.sum(hits * weights), ops.sum(weights))}

    def _losses_of(self, logits, labels):
        """The loss of each example or token: float32 of the shape of `labels`."""
        # Weighted by the mask rather than gathered: one fused kernel, and exact zeros for filler.
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        if self.label_smoothing:
            every = -ops.mean(ops.log_softmax(logits), axis=-1)
            losses = (1 - self.label_smoothing) * losses + self.label_smoothing * every
        return losses

    def _rising_losses(self, features):
        """(logits of the last token [B, C], the mean of the losses of all tokens with rising weights [B])."""
        mask, labels = features["padding_mask"], features["labels"]
        x = self.backbone(backbone_inputs(self.backbone, features), training=True)["sequence_output"]
        logits = self.head(x, training=True)
        real = ops.cast(mask, "float32")
        gains = ops.cumsum(real, axis=1) * real
        everywhere = ops.broadcast_to(labels[:, None], ops.shape(mask))
        losses = ops.sum(self._losses_of(logits, everywhere) * gains, axis=1) / ops.maximum(ops.sum(gains, axis=1), 1.0)
        return gather_positions(logits, last_positions(mask))[:, 0], losses

    def loss_weights(self, features):
        found = super().loss_weights(features)
        return found | {"label": ops.sum(features["label_weights"] * self._weights_of_labels(features))}

    def _weights_of_labels(self, features):
        """The class weight of each example or token: float32 of the shape of `labels`; 1 where there are none."""
        if self.class_weights is None:
            return 1.0
        return ops.take(ops.convert_to_tensor(self.class_weights, "float32"), features["labels"])


class Regressor(TaskModel):
    """Predicts one number for a text or a pair, trained on the squared error.

    The labels are standardised inside by `mean` and `scale`, so that learning rates for classification also suit
    labels from 0 to 1000. The outputs are in the labels' own unit; the loss is the squared error over the variance.

    Args:
        encoder, dropout, options: as in `TaskModel`.
        mean, scale: the mean and the standard deviation of the training labels.

    Returns:
        {"score": float32 [B]}.

    Example:
        model = Regressor(encoder, mean=2.5, scale=1.5)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["score"].shape  # [1]
    """

    can_be_distilled = True

    def __init__(self, encoder, dropout=None, mean=0.0, scale=1.0, name="task", **options):
        super().__init__(encoder, 1, dropout, name=name, **options)
        self.mean, self.scale = float(mean), float(scale)

    def call(self, features, training=False):
        outputs = self.outputs(features, training=training)
        return {"score": ops.squeeze(outputs, axis=-1) * self.scale + self.mean}

    def label_sums(self, outputs, features):
        outputs, weights = ops.squeeze(outputs, axis=-1), features["label_weights"]
        errors = ops.square(outputs - (features["labels"] - self.mean) / self.scale)
        absolute = ops.sum(ops.sqrt(errors) * self.scale * weights)
        return {"label": ops.sum(errors * weights)}, {"mean_absolute_error": (absolute, ops.sum(weights))}


def backbone_inputs(backbone, features):
    """What a model reads of a text: `INPUTS`; of one that was trained with a prefix the whole text is the prefix.

    With them stands what a frozen model computed of them, where the features have it.
    """
    inputs = {name: features[name] for name in INPUTS}
    inputs |= {FROZEN_OUTPUTS: features[FROZEN_OUTPUTS]} if FROZEN_OUTPUTS in features else {}
    return inputs | ({"prefix_mask": inputs["padding_mask"]} if backbone.prefix else {})


def mean_of_tokens(x, mask):
    """The mean of [B, S, H] over the positions of `mask`, bool [B, S]; 0 where there is none."""
    weights = ops.cast(mask, "float32")[:, :, None]
    total = ops.sum(ops.cast(x, "float32") * weights, axis=1)
    return total / ops.maximum(ops.sum(weights, axis=1), 1.0)


def _row_weights(features):
    """float32 [B]: 1 for an example, 0 for a row that fills a batch up."""
    weights = features["label_weights"]
    return weights if len(weights.shape) == 1 else ops.max(weights, axis=1)
