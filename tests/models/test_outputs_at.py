"""What is computed at some positions only is what is computed everywhere, gradients too."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from test_masked_lm_families import CONFIGS, SIZES

from bert_tf.models import ENCODER_INPUTS, BertConfig, XLNetConfig
from bert_tf.models.electra import ElectraConfig
from bert_tf.models.families import build_encoder

ALL = CONFIGS | {
    "bert": BertConfig(**SIZES, max_positions=16),
    "electra": ElectraConfig(**SIZES, embedding_size=10, max_positions=16),
    "xlnet": XLNetConfig(**SIZES),
}
NUMBERS = np.random.default_rng(0)
IDS = NUMBERS.integers(5, 50, (3, 10)).astype("int32")
PACKED = np.array([[1] * 4 + [2] * 6, [1] * 5 + [2] * 3 + [0] * 2, [1] * 10], "int32")
EXTRAS = {"plain": {}, "padded": {"padding_mask": PACKED > 0}, "packed": {"sequence_ids": PACKED}}
POSITIONS = np.array([[3, 0, 3, 9], [7, 1, 2, 4], [0, 5, 9, 8]], "int32")


@pytest.fixture(scope="module", params=ALL)
def family(request):
    return request.param


@pytest.mark.parametrize("extra, pooler", [("plain", True), ("padded", False), ("packed", True)])
def test_the_same_numbers(family, extra, pooler):
    keras.utils.set_random_seed(1)
    encoder = build_encoder(ALL[family], pooler=pooler, dtype="float32")
    inputs = {"token_ids": IDS, **EXTRAS[extra]}
    direction = NUMBERS.normal(size=(*POSITIONS.shape, 24)).astype("float32")

    def outputs_and_gradients(at):
        with tf.GradientTape() as tape:
            if at:
                outputs = encoder.outputs_at(inputs, POSITIONS)
                vectors = outputs["sequence_output"]
            else:
                outputs = encoder(inputs)
                vectors = tf.gather(outputs["sequence_output"], POSITIONS, batch_dims=1)
            # A plain sum would be constant after a layer norm.
            loss = tf.reduce_sum(vectors * direction)
            if pooler:
                loss += tf.reduce_sum(outputs["pooled_output"] * direction[:, 0])
        gradients = tape.gradient(loss, [v.value for v in encoder.trainable_variables], unconnected_gradients="zero")
        return outputs, vectors, [tf.convert_to_tensor(g).numpy() for g in gradients]

    wanted, expected, gradients = outputs_and_gradients(at=False)
    outputs, vectors, found = outputs_and_gradients(at=True)
    assert set(outputs) == {"sequence_output", *(["pooled_output"] if pooler else [])}
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    if pooler:
        np.testing.assert_allclose(outputs["pooled_output"], wanted["pooled_output"], atol=1e-5)
    for variable, a, b in zip(encoder.trainable_variables, gradients, found):
        np.testing.assert_allclose(a, b, atol=2e-4 * max(1, np.abs(a).max()), err_msg=variable.path)


def test_the_last_layer_works_at_these_positions_only():
    encoder = build_encoder(ALL["bert"], pooler=True, dtype="float32")
    function = tf.function(lambda: encoder.outputs_at({"token_ids": tf.constant(IDS)}, tf.constant(POSITIONS)))
    graph = function.get_concrete_function().graph
    rows = {op.name: op.outputs[0].shape[0] for op in graph.get_operations() if op.type == "MatMul"}
    intermediate = [n for name, n in rows.items() if "intermediate" in name]
    assert intermediate == [30, 30, 30, 15]  # with the first of each row, for the pooler
    names = {"query": 15, "key": 30, "value": 30}
    assert {n: next(r for name, r in rows.items() if "layer_3" in name and n in name) for n in names} == names


def test_the_encoder_is_called_as_before():
    encoder = build_encoder(ALL["bert"], pooler=True, dtype="float32")
    assert list(encoder.input) == list(ENCODER_INPUTS)
    inside = keras.Model(encoder.input, encoder.get_layer("transformer_layer_1").output)
    extras = {"padding_mask": PACKED > 0, "segment_ids": 0 * IDS, "sequence_ids": PACKED, "position_ids": 0 * IDS}
    assert inside({"token_ids": IDS, **extras}).shape == (3, 10, 24)
