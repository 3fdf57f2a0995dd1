"""A classifier that answers easy texts from its lower layers.

FastBERT (Liu et al. 2020, arXiv:2004.02178): each layer but the last gets a classifier of its own, trained to give the
probabilities that the whole model gives (section 3.2.2, self-distillation), while the model stays as it is. A text leaves at the
first layer whose classifier is certain enough (section 3.3). FastBERT's own classifiers begin with a narrow self-attention;
these are a dense layer on the first token and an output layer, as DeeBERT's (Xin et al. 2020, arXiv:2004.12993).
"""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.errors import ConfigError
from bert_tf.models.transformer_encoder import TransformerEncoder
from bert_tf.tasks.heads import INPUTS, Classifier, InferringModel, backbone_inputs

#: The batch, the passes and Adam's rate with which the classifiers are trained.
BATCH, EPOCHS, RATE = 32, 10, 1e-3


class ExitClassifiers(keras.layers.Layer):
    """One classifier for each of several layers: softmax(W2 tanh(W1 x + b1) + b2), without the softmax.

    Args:
        count: N, the number of layers.
        units: C, the number of classes.

    Call arguments:
        x: float32 [B, N, H], the first token's vector after each layer.

    Returns:
        float32 [B, N, C].

    Example:
        ExitClassifiers(3, units=2)(np.ones((8, 3, 16), "float32"))  # [8, 3, 2]
    """

    def __init__(self, count, units, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.count, self.units = count, units

    def build(self, shape):
        size = shape[-1]
        self.hidden_kernel = self.add_weight((self.count, size, size), "glorot_uniform", name="hidden_kernel")
        self.hidden_bias = self.add_weight((self.count, size), "zeros", name="hidden_bias")
        self.kernel = self.add_weight((self.count, size, self.units), "glorot_uniform", name="kernel")
        self.bias = self.add_weight((self.count, self.units), "zeros", name="bias")

    def call(self, x):
        hidden = ops.tanh(ops.einsum("bnh,nhk->bnk", x, self.hidden_kernel) + self.hidden_bias)
        return ops.einsum("bnh,nhc->bnc", hidden, self.kernel) + self.bias

    def of_layer(self, index, x):
        """The same of one layer: float32 [B, H] -> [B, C]."""
        hidden = ops.tanh(ops.matmul(x, self.hidden_kernel[index]) + self.hidden_bias[index])
        return ops.matmul(hidden, self.kernel[index]) + self.bias[index]


class EarlyExitClassifier(InferringModel):
    """The answers of a classifier, each computed up to the first layer that is certain.

    Args:
        model: a `Classifier` of texts on an encoder whose layers are called one after the other.
        exits: built `ExitClassifiers`, of all layers but the last.
        threshold: a text leaves where the uncertainty is below: the entropy of the probabilities divided by that of the
            uniform distribution, from 0 to 1 (equation 7).

    Call arguments:
        features: as of `Classifier`, for inference alone.

    Returns:
        {"logits", "probabilities"}: float32 [B, C]; "layers": int32 [B], how many layers were computed for each text.

    Raises:
        ConfigError: another model.

    Example:
        encoder = BertEncoder(BertConfig(tokenizer.vocabulary_size, 16, num_layers=2, num_heads=2, intermediate_size=32))
        exits = ExitClassifiers(1, units=2)
        exits.build((None, 1, 16))
        model = EarlyExitClassifier(Classifier(encoder, 2), exits, threshold=0.5)
        model(tokenizer.pack(tokenizer.tokenize(["a film"]), sequence_length=8))["layers"]  # [1] or more
    """

    def __init__(self, model, exits, threshold, name="early_exit"):
        check_model(model)
        super().__init__(name=name)
        self.classifier, self.exits, self.threshold = model, exits, float(threshold)
        self.built = True

    @property
    def backbone(self):
        return self.classifier.backbone

    def backbones(self):
        return self.classifier.backbones()

    def call(self, features, training=False):
        encoder, head = self.backbone, self.classifier.head
        x, mask = encoder.enter(backbone_inputs(encoder, features))
        rows, count = ops.arange(ops.shape(x)[0]), len(encoder.blocks())
        logits, layers = tf.zeros([tf.size(rows), self.exits.units]), tf.zeros([tf.size(rows)], tf.int32)
        for number, block in enumerate(encoder.blocks(), 1):
            x = block(x, mask, training=False)
            if number == count:
                own = head(self.classifier.read(x), training=False)
                leaves = tf.ones_like(rows, tf.bool)
            else:
                own = self.exits.of_layer(number - 1, tf.cast(x[:, 0], tf.float32))
                leaves = uncertainty(ops.softmax(own)) < self.threshold
            found = tf.boolean_mask(rows, leaves)[:, None]
            logits = tf.tensor_scatter_nd_update(logits, found, tf.boolean_mask(own, leaves))
            layers = tf.tensor_scatter_nd_update(layers, found, tf.fill([tf.shape(found)[0]], number))
            stays = ~leaves
            x, rows = tf.boolean_mask(x, stays), tf.boolean_mask(rows, stays)
            mask = tf.boolean_mask(mask, stays) if mask.shape[0] != 1 else mask
        return {"logits": logits, "probabilities": ops.softmax(logits), "layers": layers}


def check_model(model):
    """Refuses a model that cannot answer early.

    Raises:
        ConfigError: it is no classifier of texts, or of another family.
    """
    if type(model) is not Classifier or not model.pooled or model.both_orders is not None or model.lstms:
        raise ConfigError(
            "early exit is for classification of texts or pairs (task.kind=classification), without task.pair_order and "
            "task.bilstm_layers; leave --early-exit out"
        )
    encoder = model.backbone
    if not (isinstance(encoder, TransformerEncoder) and encoder.plain and len(encoder.blocks()) > 1):
        raise ConfigError(
            f"{encoder.name} cannot answer early: early exit is for BERT, RoBERTa, ALBERT, ELECTRA, SpanBERT and DistilBERT of at "
            "least two layers; leave --early-exit out"
        )
    if model.task_head.reads == "mean":
        raise ConfigError(
            "early exit reads the first token after each layer, and task.head=mean all; leave --early-exit out"
        )


def uncertainty(probabilities):
    """The entropy of probabilities [..., C] divided by log C, from 0 to 1: [...]."""
    logs = ops.log(ops.maximum(probabilities, 1e-30))
    return -ops.sum(probabilities * logs, axis=-1) / np.log(max(probabilities.shape[-1], 2))


def train_exits(model, features, progress=lambda done: None, seed=0):
    """Trains the classifiers of all layers but the last on the model's own answers.

    Args:
        model: see `EarlyExitClassifier`.
        features: iterable of batches of features, without labels.
        progress: function(batches that were computed).
        seed: of the initial weights and of the order.

    Returns:
        `ExitClassifiers`.

    Raises:
        ConfigError: as `EarlyExitClassifier`.
    """
    states, targets = layer_states(model, features, progress)
    keras.utils.set_random_seed(seed)
    exits = ExitClassifiers(states.shape[1], targets.shape[-1])
    trained = keras.Sequential([keras.Input(states.shape[1:]), exits])
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    trained.compile(keras.optimizers.Adam(RATE), loss=loss)
    trained.fit(
        states, np.repeat(targets[:, None], states.shape[1], axis=1), batch_size=BATCH, epochs=EPOCHS, verbose=0
    )
    return exits


def layer_states(model, features, progress=lambda done: None):
    """(float32 [N, L - 1, H], the first token's vector after each layer but the last; float32 [N, C], the probabilities)."""
    check_model(model)
    encoder = model.backbone

    def computed(*inputs):
        x, mask = encoder.enter(dict(zip(INPUTS, inputs)))
        firsts = []
        for block in encoder.blocks():
            x = block(x, mask, training=False)
            firsts.append(ops.cast(x[:, 0], "float32"))
        return ops.stack(firsts[:-1], axis=1), ops.softmax(model.head(model.read(x), training=False))

    compute = as_graph(computed, [((None, None), "int32")] * 2 + [((None, None), "bool")])
    states, probabilities = [], []
    for done, batch in enumerate(features, 1):
        found = compute(*(batch[name] for name in INPUTS))
        states.append(np.asarray(found[0]))
        probabilities.append(np.asarray(found[1]))
        progress(done)
    return np.concatenate(states), np.concatenate(probabilities)
