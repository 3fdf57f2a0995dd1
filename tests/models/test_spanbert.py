import keras
import numpy as np
import pytest

from bert_tf.models import PRESETS, BertEncoder, preset
from bert_tf.models.families import build_config, build_encoder, describe
from bert_tf.models.spanbert import SpanBertConfig, SpanBertEncoder
from bert_tf.objectives import MaskedLM

SIZES = dict(vocabulary_size=50, hidden_size=24, num_layers=1, num_heads=2, intermediate_size=40)


@pytest.mark.parametrize("name", ["spanbert_base", "spanbert_large"])
def test_parameter_counts(name):
    expected = PRESETS[name]
    with keras.StatelessScope(initialize_variables=False):
        assert SpanBertEncoder(expected.config).count_params() == expected.encoder_parameters
        # Without next sentence prediction there was nothing to train a pooler with.
        model = MaskedLM(SpanBertEncoder(expected.config, pooler=False), span_boundary=True)
        assert model.count_params() == expected.pretraining_parameters
    bert = PRESETS[name.replace("spanbert", "bert") + "_cased"]
    assert expected.encoder_parameters == bert.encoder_parameters


def test_it_is_bert_with_another_activation():
    config = preset("spanbert_base", vocabulary_size=50, num_layers=1)
    assert config.activation == "gelu_erf"
    small = SpanBertConfig(**SIZES)
    ours, bert = SpanBertEncoder(small), BertEncoder(small)
    assert [v.path for v in ours.weights] == [v.path for v in bert.weights]
    bert.set_weights(ours.get_weights())
    ids = {"token_ids": np.arange(5, 15, dtype="int32")[None]}
    np.testing.assert_array_equal(ours(ids)["pooled_output"], bert(ids)["pooled_output"])


def test_a_configuration_and_back():
    config = build_config({"family": "spanbert", **SIZES})
    assert describe(config)["family"] == "spanbert" and build_config(describe(config)) == config
    assert isinstance(build_encoder(config, pooler=False), SpanBertEncoder)
