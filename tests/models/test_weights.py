import keras
import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.models.bert.checkpoints import HF_WEIGHTS
from bert_tf.models.weights import WeightMap, export_weights, load_weights
from bert_tf.objectives import MaskedLM

CONFIG = BertConfig(vocabulary_size=9, hidden_size=4, num_layers=12, num_heads=2, intermediate_size=6, max_positions=5)
QUERY = "bert.encoder.layer.11.attention.self.query.weight"


def model():
    model = MaskedLM(BertEncoder(CONFIG), pair_task="nsp")
    generator = np.random.default_rng()
    for variable in model.weights:
        variable.assign(generator.normal(size=variable.shape))
    return model


def test_what_published_files_hold_beside_the_weights():
    ours, other = model(), model()
    arrays = export_weights(ours, HF_WEIGHTS)
    arrays["cls.predictions.decoder.weight"] = arrays["bert.embeddings.word_embeddings.weight"]
    arrays["cls.predictions.decoder.bias"] = arrays["cls.predictions.bias"]
    arrays["bert.embeddings.position_ids"] = np.arange(5)[None]
    old = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for k, v in arrays.items()
    }
    for given in (arrays, old):
        load_weights(other, given, HF_WEIGHTS)
        for a, b in zip(ours.weights, other.weights):
            np.testing.assert_array_equal(a, b)


def test_every_misfit_is_listed_and_nothing_is_assigned():
    ours = model()
    before = ours.get_weights()
    arrays = export_weights(model(), HF_WEIGHTS)
    del arrays[QUERY]
    arrays["cls.seq_relationship.weight"] = np.zeros((3, 4))
    arrays["bert.encoder.layer.12.output.dense.bias"] = np.zeros(4)
    arrays["classifier.weight"] = np.zeros((2, 4))
    arrays["cls.predictions.decoder.weight"] = np.zeros((9, 4))
    with pytest.raises(DataError) as error:
        load_weights(ours, arrays, HF_WEIGHTS)
    assert str(error.value).splitlines() == [
        "the weights do not fit the model:",
        "  'bert.encoder.layer.12.output.dense.bias' has no place in this model",
        "  'classifier.weight' has no place in this model",
        "  'cls.predictions.decoder.weight' is not equal to 'bert.embeddings.word_embeddings.weight', "
        "to which it is tied here",
        "  'cls.seq_relationship.weight' has shape (4, 3), 'pair_head/dense/kernel' has (4, 2)",
        f"  nothing fills 'transformer_layer_11/attention/query/kernel' ('{QUERY}' there)",
    ]
    for a, b in zip(before, ours.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_a_map_without_a_name_for_a_variable():
    encoder = BertEncoder(CONFIG)
    with pytest.raises(DataError, match="no name for 'embeddings/token_embeddings'"):
        export_weights(encoder, type(HF_WEIGHTS)(arrays={}, dense={}))


def variables(**shapes):
    return {path.replace("__", "/"): keras.Variable(np.zeros(shape, "float32")) for path, shape in shapes.items()}


# GPT-2's attention in Hugging Face's files: a Conv1D layer holds queries, keys and values side by side, [in, out].
FUSED = WeightMap(
    arrays={"transformer.wte.weight": "embeddings/token_embeddings", "lm_head.weight": "lm_head/output_table"},
    joined={
        f"transformer.h.{{layer}}.attn.c_attn.{theirs}": [
            f"layer_{{layer}}/{name}/{ours}" for name in ("query", "key", "value")
        ]
        for theirs, ours in (("weight", "kernel"), ("bias", "bias"))
    },
    copies={"lm_head.weight": "transformer.wte.weight"},
    prefix="transformer.",
)
KERNEL, BIAS = np.arange(12, dtype="float32").reshape(2, 6), np.arange(6, dtype="float32")
TABLE = np.arange(10, dtype="float32").reshape(5, 2)


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_a_joined_array_fills_several_variables(prefix):
    attention = {f"layer_7__{name}__kernel": (2, 2) for name in ("query", "key", "value")}
    attention |= {f"layer_7__{name}__bias": (2,) for name in ("query", "key", "value")}
    ours = variables(**attention)
    arrays = {f"{prefix}h.7.attn.c_attn.weight": KERNEL, f"{prefix}h.7.attn.c_attn.bias": BIAS}
    load_weights(ours, arrays, FUSED)
    np.testing.assert_array_equal(ours["layer_7/query/kernel"], [[0, 1], [6, 7]])
    np.testing.assert_array_equal(ours["layer_7/key/kernel"], [[2, 3], [8, 9]])
    np.testing.assert_array_equal(ours["layer_7/value/bias"], [4, 5])
    written = export_weights(ours, FUSED)
    assert sorted(written) == ["transformer.h.7.attn.c_attn.bias", "transformer.h.7.attn.c_attn.weight"]
    np.testing.assert_array_equal(written["transformer.h.7.attn.c_attn.weight"], KERNEL)
    np.testing.assert_array_equal(written["transformer.h.7.attn.c_attn.bias"], BIAS)


def test_a_joined_array_of_another_size_is_refused():
    ours = variables(layer_0__query__kernel=(2, 2), layer_0__key__kernel=(2, 2), layer_0__value__kernel=(2, 2))
    with pytest.raises(DataError, match=r"'transformer.h.0.attn.c_attn.weight\[0\]' has shape \(2, 4\)"):
        load_weights(ours, {"transformer.h.0.attn.c_attn.weight": np.zeros((2, 12), "float32")}, FUSED)
    with pytest.raises(DataError, match="'transformer.h.0.attn.c_attn.weight' has no place in this model"):
        load_weights(ours, {"transformer.h.0.attn.c_attn.weight": np.zeros((2, 7), "float32")}, FUSED)


def test_an_output_layer_is_tied_where_the_model_has_no_variable_for_it():
    arrays = {"transformer.wte.weight": TABLE, "lm_head.weight": TABLE + 1}
    tied = variables(embeddings__token_embeddings=(5, 2))
    with pytest.raises(DataError, match="'lm_head.weight' is not equal to 'transformer.wte.weight'"):
        load_weights(tied, arrays, FUSED)
    assert load_weights(tied, arrays | {"lm_head.weight": TABLE}, FUSED).ignored == ("lm_head.weight",)
    untied = variables(embeddings__token_embeddings=(5, 2), lm_head__output_table=(5, 2))
    load_weights(untied, arrays, FUSED)
    np.testing.assert_array_equal(untied["lm_head/output_table"], TABLE + 1)
    assert sorted(export_weights(untied, FUSED)) == ["lm_head.weight", "transformer.wte.weight"]
