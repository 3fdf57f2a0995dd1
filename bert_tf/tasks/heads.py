"""The models of the tasks: an encoder or a decoder with the head that its family is fine-tuned with, trained together.

Section 4.1 of Devlin et al. 2019 (sentences and pairs: the pooled output) and section 5.3 (tagging:
each token's last hidden state); google-research/bert `run_classifier.py`, `create_model`. A decoder is read at the last
real token, the only one that has seen the whole text (Radford et al. 2018, section 3.2); its auxiliary language
modelling loss is that of equation 5, as openai/finetune-transformer-lm `train.py` computes it.
"""

import dataclasses

import keras
from keras import ops

from bert_tf.backend import TrainableModel, largest
from bert_tf.config import build, to_dict
from bert_tf.errors import Advice, ConfigError
from bert_tf.layers import ClassificationHead, EndsOfDirections, Pooler, bilstms
from bert_tf.layers.heads import last_positions
from bert_tf.layers.parts import gather_positions
from bert_tf.models.task_heads import BERT_HEADS, TaskHead
from bert_tf.objectives.losses import cross_entropy_sums
from bert_tf.tasks.features import FROZEN_OUTPUTS, encode, mixes_of, token_vectors, width_of_mix
from bert_tf.tasks.texts.pair_order import check_layout, swap_texts
from bert_tf.tokenizers.layout import Layout

INPUTS = ("token_ids", "segment_ids", "padding_mask")


class InferringModel(TrainableModel):
    """A model of a task, whose `call` answers on one device or on several.

    A subclass with further arguments of its constructor names them in `get_config`, as any Keras model.

    Args:
        backbone: of a model family. Its dtype policy is that of the layers above it.
        name: of the Keras model.
        kwargs: of `keras.Model`.
    """

    #: Whether `outputs` and `label_sums` are defined, as `bert_tf.distillation` needs.
    can_be_distilled = False
    #: Arguments of the constructor that are dataclasses: name -> class. `get_config` has them as dicts.
    argument_classes = {}

    def __init__(self, backbone, name=None, **kwargs):
        super().__init__(name=name, dtype=backbone.dtype_policy, **kwargs)
        self.autocast = False  # the labels and weights among the features stay float32 in any precision
        self.backbone = backbone
        self.built = True

    def get_config(self):
        backbone = keras.saving.serialize_keras_object(self.backbone)
        return {"backbone": backbone, "name": self.name, "trainable": self.trainable}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        values = {
            name: build(cls.argument_classes[name], value, name)
            if value is not None and name in cls.argument_classes
            else keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)
            for name, value in config.items()
        }
        return cls(values.pop("backbone"), **values)


class VectorModel(InferringModel):
    """The base of task models whose head reads the vectors of an encoder or a decoder; its subclasses make the head.

    Args:
        encoder: of a model family.
        head: a `TaskHead`, of which what stands below the head is made: `mixes` of a frozen model, and `lstms`.
        name, kwargs: of `InferringModel`.

    Attributes:
        task_head: the `TaskHead`.
        token_width: of the vector of a token.

    Raises:
        ConfigError: an encoder-decoder.
    """

    #: The losses of the labels, which `label_weights` weigh.
    loss_names = ("label",)

    def __init__(self, encoder, head, name=None, **kwargs):
        if encoder.structure == "encoder_decoder":
            raise ConfigError(
                f"this task fine-tunes encoders and decoders, and {type(encoder).__name__} is an encoder-decoder; set ",
                Advice("task.kind", "text_to_text"),
                ", or use a model of another family",
            )
        width, beside, mixes = encoder.config.hidden_size, 0, []
        units = head.lstm_units or max(1, width // 2)
        if head.features:
            encoder, mixes = mixes_of(encoder, head.features)
            width = width_of_mix(head.features, width)
            beside = width if head.features.mix_at == "both" else 0
        super().__init__(encoder, name=name, **kwargs)
        self.task_head, self.mixes, self.lstms = head, mixes, bilstms(head.lstm_layers, units, width)
        self.token_width = 2 * units + beside if self.lstms else width
        self.mix_l2 = head.features.mix_l2 if head.features else 0.0

    def pretrained_head(self):
        """The variables of the head that pretraining has trained: their path in the pretraining model -> variable."""
        by_path = {variable.path: variable for variable in self.head.weights}
        return {source: by_path[f"head/{target}"] for target, source in self.task_head.pretrained.items()}

    def penalty(self):
        """The term of the loss of an example: `mix_l2` times the sum of squares of the mixes' weights."""
        return self.mix_l2 * sum(ops.sum(ops.square(mix.weight)) for mix in self.mixes)

    def loss_weights(self, features):
        names = (*self.loss_names, "mix") if self.mix_l2 else self.loss_names
        return dict.fromkeys(names, ops.sum(features["label_weights"]))


class TaskModel(VectorModel):
    """Base class of the models of tasks: an encoder or a decoder with an output layer.

    A subclass defines `call` and `label_sums` from what `outputs` computes, as `Classifier` does.

    Args:
        encoder: of a model family. An encoder without a pooler gets a new one (dense, tanh) where the head reads it.
        units: the number of outputs.
        dropout: rate before the output layer; None for the head's own.
        head: a `TaskHead`, of texts or of tokens; None for BERT's of texts. `task_head` returns that of a family.
        both_orders: None, or the `Layout` of pairs that are read in both orders: the two pooled outputs are added.
        lm_weight: the weight of the auxiliary language modelling loss of a decoder; 0 for none.
        name, kwargs: of `InferringModel`.

    Raises:
        ConfigError: an encoder-decoder; `lm_weight` with an encoder or a prefix; a layout that does not show the second
            text.

    Example:
        model = TaskModel(encoder, units=3)
        model.outputs(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8)).shape  # [1, 3]
    """

    argument_classes = {"head": TaskHead, "both_orders": Layout}

    def __init__(
        self, encoder, units=1, dropout=None, head=None, both_orders=None, lm_weight=0.0, name="task", **kwargs
    ):
        head = head or BERT_HEADS["classification"]
        if dropout is not None:
            head = dataclasses.replace(head, dropout=dropout)
        super().__init__(encoder, head, name=name, **kwargs)
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
        self.units, self.both_orders, self.lm_weight = units, both_orders, lm_weight
        hidden, initializer_range = encoder.config.hidden_size, encoder.config.initializer_range
        self.ends, self.pooler = EndsOfDirections(dtype="float32", name="ends"), None
        if head.reads == "pooled" and "pooled_output" not in encoder.output:
            self.pooler = Pooler(hidden, "tanh", initializer_range, dtype=self.dtype_policy, name="pooler")
            self.pooler.build((None, None, hidden))
        # float32 also under mixed precision: bfloat16 logits would tie.
        self.head = ClassificationHead(
            units,
            head.dropout,
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
        self.head.build((None, None, self.head_width()) if head.reads == "tokens" else (None, self.head_width()))

    def get_config(self):
        names = ("units", "both_orders", "lm_weight")
        return super().get_config() | to_dict({"head": self.task_head} | {name: getattr(self, name) for name in names})

    def head_width(self):
        """The width of the vectors that the head reads."""
        return self.token_width

    def outputs(self, features, training=False):
        """float32 [B, units]; of a head that reads tokens [B, S, units]."""
        return self.outputs_and_losses(features, training, with_losses=False)[0]

    def outputs_and_losses(self, features, training, with_losses=True):
        """What `outputs` returns, and the losses beside the task's own: "language_model", "mix" -> float32 scalar."""
        with_lm = with_losses and self.lm_weight
        orders = [features] if self.both_orders is None else [features, swap_texts(features, self.both_orders)]
        summaries, lm_losses = [], []
        for order in orders:
            inputs = backbone_inputs(self.backbone, order)
            encoded = self._encode(inputs, training, all_positions=with_lm)
            summaries.append(self._read(encoded, order, training))
            if with_lm:
                lm_losses.append(self._language_model_loss(inputs, encoded["sequence_output"], row_weights(features)))
        outputs, losses = self.head(sum(summaries[1:], summaries[0]), training=training), {}
        if with_lm:
            losses["language_model"] = self.lm_weight * sum(lm_losses) / len(orders)
        if with_losses and self.mix_l2:
            losses["mix"] = self.penalty() * ops.sum(features["label_weights"])
        return outputs, losses

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

    def _encode(self, inputs, training, all_positions):
        """What the backbone computes of a text; unless `all_positions`, of the position alone that the head reads."""
        reads = self.task_head.reads
        if all_positions or self.lstms or reads in ("tokens", "mean"):
            return encode(self.backbone, self.mixes, inputs, training)
        # `outputs_at` always computes the position that an encoder's own pooler reads.
        count = 0 if reads == "pooled" and self.pooler is None else 1
        first = ops.zeros_like(inputs["padding_mask"][:, :count], dtype="int32")
        return self.backbone.outputs_at(inputs, first, training=training)

    def _read(self, encoded, features, training):
        """What the head reads of the backbone's outputs: float [B, W], of tokens [B, S, W]."""
        mask = ops.cast(features["padding_mask"], "bool")
        return self._summary(encoded, token_vectors(encoded, self.mixes, self.lstms, mask, training), mask)

    def _summary(self, encoded, vectors, mask):
        """What the head reads of the `token_vectors`, or of the pooler."""
        reads, (x, *others) = self.task_head.reads, vectors
        if reads == "pooled":
            return self.pooler(encoded["sequence_output"]) if self.pooler else encoded["pooled_output"]
        if reads == "first":
            return x[:, 0]
        if reads == "mean":
            return mean_of_tokens(x, mask)
        if reads == "ends":
            x, others = self.ends(x, padding_mask=mask), [mean_of_tokens(other, mask) for other in others]
        return ops.concatenate([x, *others], axis=-1)

    def _language_model_loss(self, inputs, hidden, rows):
        """The sum over examples of the mean cross-entropy of each one's tokens but the first, times `rows` [B]."""
        counted = ops.cast(inputs["padding_mask"], "float32")[:, 1:]
        each = rows[:, None] * counted / ops.maximum(ops.sum(counted, axis=1, keepdims=True), 1.0)
        logits = self.backbone.output_logits(hidden[:, :-1])
        return cross_entropy_sums(logits, inputs["token_ids"][:, 1:], each)[0]

    def loss_weights(self, features):
        weights = super().loss_weights(features)
        return weights | ({"language_model": ops.sum(row_weights(features))} if self.lm_weight else {})


@keras.saving.register_keras_serializable("bert_tf")
class Classifier(TaskModel):
    """Classifies texts (labels [B]), or with a head that reads tokens every token (labels [B, S]).

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
        self, encoder, units, dropout=None, class_weights=None, label_smoothing=0.0, linear_gain=False, **options
    ):
        super().__init__(encoder, units, dropout, **options)
        others = self.lm_weight or self.both_orders is not None or self.lstms
        if linear_gain and (encoder.structure != "decoder" or others):
            raise ConfigError(
                "task.decoder.linear_gain is for decoders (LSTM, GPT), without task.decoder.lm_weight and task.head.name=bilstm and with "
                "task.decoder.pair_order=given; remove one of them"
            )
        self.linear_gain = linear_gain
        self.class_weights = None if class_weights is None else tuple(class_weights)
        self.label_smoothing = label_smoothing

    def get_config(self):
        names = ("class_weights", "label_smoothing", "linear_gain")
        return super().get_config() | to_dict({name: getattr(self, name) for name in names})

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
        losses = losses * self._weights_of_labels(features)
        return {"label": ops.sum(losses * features["label_weights"])}, accuracy_sums(logits, features)

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
        weights = super().loss_weights(features)
        return weights | {"label": ops.sum(features["label_weights"] * self._weights_of_labels(features))}

    def _weights_of_labels(self, features):
        """The class weight of each example or token: float32 of the shape of `labels`; 1 where there are none."""
        if self.class_weights is None:
            return 1.0
        return ops.take(ops.convert_to_tensor(self.class_weights, "float32"), features["labels"])


@keras.saving.register_keras_serializable("bert_tf")
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

    def __init__(self, encoder, dropout=None, mean=0.0, scale=1.0, **options):
        super().__init__(encoder, dropout=dropout, **options)
        self.mean, self.scale = float(mean), float(scale)

    def get_config(self):
        return super().get_config() | {"mean": self.mean, "scale": self.scale}

    def call(self, features, training=False):
        outputs = self.outputs(features, training=training)
        return {"score": ops.squeeze(outputs, axis=-1) * self.scale + self.mean}

    def label_sums(self, outputs, features):
        outputs, weights = ops.squeeze(outputs, axis=-1), features["label_weights"]
        errors = ops.square(outputs - (features["labels"] - self.mean) / self.scale)
        absolute = ops.sum(ops.sqrt(errors) * self.scale * weights)
        return {"label": ops.sum(errors * weights)}, {"mean_absolute_error": (absolute, ops.sum(weights))}


def accuracy_sums(logits, features):
    """The metric {"accuracy": (sum of hits, weight)} of logits [..., C] for `labels` and `label_weights`."""
    hits, weights = ops.equal(largest(logits), features["labels"]), features["label_weights"]
    return {"accuracy": (ops.sum(ops.cast(hits, "float32") * weights), ops.sum(weights))}


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


def row_weights(features):
    """float32 [B]: 1 for an example, 0 for a row that fills a batch up."""
    weights = ops.cast(features["label_weights"], "float32")
    return weights if len(weights.shape) == 1 else ops.max(weights, axis=1)
