"""One step of plain gradient descent of every objective, on the backend that KERAS_BACKEND names.

Weights and features are NumPy's, so that backends can be compared. Prints, as JSON, `results` and the
backends that are imported.
"""

import json
import sys

import keras
import numpy as np

from bert_tf.models.albert.config import AlbertConfig
from bert_tf.models.albert.model import AlbertEncoder
from bert_tf.models.bert.config import SpanBertConfig
from bert_tf.models.bert.model import SpanBertEncoder
from bert_tf.models.electra.config import ElectraConfig, generator_config
from bert_tf.models.electra.model import ElectraEncoder, make_generator
from bert_tf.models.elmo.config import ElmoConfig
from bert_tf.models.elmo.model import Elmo
from bert_tf.models.lstm.config import LstmLMConfig
from bert_tf.models.lstm.model import LstmLM
from bert_tf.models.modernbert.config import ModernBertConfig
from bert_tf.models.modernbert.model import ModernBertEncoder
from bert_tf.models.roberta.config import RobertaConfig
from bert_tf.models.roberta.model import RobertaEncoder
from bert_tf.models.xlnet.config import XLNetConfig
from bert_tf.models.xlnet.model import XLNetEncoder
from bert_tf.objectives import BidirectionalLM, CausalLM, MaskedLM, PermutationLM, ReplacedTokenDetection
from bert_tf.objectives.settings import WordsConfig

VOCABULARY, BATCH, LENGTH, PREDICTIONS = 40, 4, 16, 4
SIZES = dict(
    vocabulary_size=VOCABULARY, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24, dropout=0.0,
    attention_dropout=0.0,
)  # fmt: skip
TWO_LAYERS = {"num_layers": 2}  # which share weights, or of which only the second attends locally


def objectives():
    electra = ElectraConfig(embedding_size=8, **SIZES)
    discriminator = ElectraEncoder(electra, pooler=False)
    sizes = dict(num_layers=1, units=12, filters=((1, 4),), highways=1, max_characters=3, dropout=0.0)
    elmo = ElmoConfig(VOCABULARY, 8, **sizes)
    generator = make_generator(discriminator, generator_config(electra, 0.5))
    return {
        "roberta": MaskedLM(RobertaEncoder(RobertaConfig(**SIZES), pooler=False)),
        "albert": MaskedLM(AlbertEncoder(AlbertConfig(embedding_size=8, **SIZES | TWO_LAYERS)), pair_task="sop"),
        "modernbert": MaskedLM(ModernBertEncoder(ModernBertConfig(local_attention=4, **SIZES | TWO_LAYERS))),
        # Which is BERT's encoder, with the heads of both.
        "spanbert": MaskedLM(SpanBertEncoder(SpanBertConfig(**SIZES)), pair_task="nsp", span_boundary=True),
        "lstm_lm": CausalLM(LstmLM(LstmLMConfig(VOCABULARY, hidden_size=8, embedding_size=6, embedding_dropout=0.0))),
        "elmo": BidirectionalLM(Elmo(elmo), WordsConfig(VOCABULARY, max_characters=3)),
        "electra": ReplacedTokenDetection(discriminator, generator),
        "xlnet": PermutationLM(XLNetEncoder(XLNetConfig(**SIZES), pooler=False), segments=2, memory_length=8),
    }


def features():
    rng = np.random.default_rng(0)
    lengths = np.array([LENGTH, 11, LENGTH, 13])
    padding_mask = np.arange(LENGTH) < lengths[:, None]
    positions = np.sort(np.stack([rng.permutation(8)[:2] for _ in range(BATCH)]), 1)
    # Half of the predictions in each half of the row, for the two segments of XLNet.
    positions = np.concatenate([positions, np.sort(8 + np.stack([rng.permutation(3)[:2] for _ in range(BATCH)]), 1)], 1)
    return {
        "token_ids": (rng.integers(2, VOCABULARY, (BATCH, LENGTH)) * padding_mask).astype("int32"),
        "segment_ids": (np.arange(LENGTH) >= 8).astype("int32") * padding_mask.astype("int32"),
        "padding_mask": padding_mask,
        "mask_positions": positions.astype("int32"),
        "mask_ids": rng.integers(2, VOCABULARY, (BATCH, PREDICTIONS)).astype("int32"),
        "mask_weights": np.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1]], "float32"),
        "span_left": np.maximum(positions - 1, 0).astype("int32"),
        "span_right": np.minimum(positions + 2, LENGTH - 1).astype("int32"),
        "span_weights": np.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1]], "float32"),
        "sampling_bits": rng.integers(0, 2**24, (BATCH, PREDICTIONS)).astype("int32"),
        "permutation_order": np.tile(rng.permuted(np.tile(np.arange(8), (BATCH, 1)), axis=1), 2).astype("int32"),
        "backward": np.array([False, True, False, True]),
        "pair_labels": np.array([0, 1, 1, 0], "int32"),
        "pair_weights": np.ones(BATCH, "float32"),
    }


def total(model, batch):
    losses, _ = model.loss_sums(batch, training=True)
    weights = model.loss_weights(batch)
    return sum(model.loss_coefficients.get(n, 1.0) * losses[n] / weights[n] for n in losses)


def differentiated(model, batch):
    """A function to the loss and the gradient of each trainable variable, as they now are."""
    variables = model.trainable_variables
    if keras.backend.backend() == "jax":
        import jax

        def of_values(values):
            with keras.StatelessScope(state_mapping=list(zip(variables, values))):
                return total(model, batch)

        compiled = jax.jit(jax.value_and_grad(of_values))
        return lambda: compiled([v.value for v in variables])
    import tensorflow as tf

    def eager():
        with tf.GradientTape() as tape:
            loss = total(model, batch)
        found = tape.gradient(loss, [v.value for v in variables], unconnected_gradients="zero")
        return loss, [tf.convert_to_tensor(g) for g in found]

    return eager


def results():
    """Objective -> the loss before and after, and the gradient's norm of each variable."""
    batch = {name: keras.ops.convert_to_tensor(value) for name, value in features().items()}
    characters = {"token_ids": keras.ops.tile(batch["token_ids"][..., None], (1, 1, 3)), "word_ids": batch["token_ids"]}
    found_by_objective = {}
    for name, model in objectives().items():
        rng = np.random.default_rng(1)
        for variable in sorted(model.weights, key=lambda v: v.path):
            variable.assign(rng.normal(0, 0.2, variable.shape) + variable.path.endswith("gamma"))
        gradients = differentiated(model, batch | characters if name == "elmo" else batch)
        loss, found = gradients()
        for variable, gradient in zip(model.trainable_variables, found):
            variable.assign(np.asarray(variable.value) - 0.1 * np.asarray(gradient))
        after, _ = gradients()
        norms = {v.path: float(np.linalg.norm(np.asarray(g))) for v, g in zip(model.trainable_variables, found)}
        found_by_objective[name] = {"loss": float(loss), "after": float(after), "norms": norms}
    return found_by_objective


if __name__ == "__main__":
    drawn = keras.initializers.TruncatedNormal, keras.initializers.VarianceScaling, keras.initializers.Orthogonal
    for initializer in drawn:  # which JAX would compile for each shape, for weights that are set by `results`
        initializer.__call__ = lambda self, shape, dtype=None: np.zeros(shape, dtype)
    steps = results()
    modules = sorted({m.split(".")[0] for m in sys.modules} & {"tensorflow", "jax"})
    print(json.dumps({"steps": steps, "modules": modules}))
