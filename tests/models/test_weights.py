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


def test_a_joined_array_of_another_size_is_refused():
    """As those of GPT-2's attention, whose files have queries, keys and values side by side; see test_gpt.py."""
    names = [f"layer_{{layer}}/{name}/kernel" for name in ("query", "key", "value")]
    joined = WeightMap(arrays={}, joined={"h.{layer}.c_attn.weight": names})
    ours = {name.format(layer=0): keras.Variable(np.zeros((2, 2), "float32")) for name in names}
    with pytest.raises(DataError, match=r"'h.0.c_attn.weight\[0\]' has shape \(2, 4\)"):
        load_weights(ours, {"h.0.c_attn.weight": np.zeros((2, 12), "float32")}, joined)
    with pytest.raises(DataError, match="'h.0.c_attn.weight' has no place in this model"):
        load_weights(ours, {"h.0.c_attn.weight": np.zeros((2, 7), "float32")}, joined)
