import numpy as np

from bert_tf.models import BertEncoder, preset
from bert_tf.models.bert.config import SpanBertConfig
from bert_tf.models.bert.model import SpanBertEncoder

SIZES = dict(vocabulary_size=50, hidden_size=24, num_layers=1, num_heads=2, intermediate_size=40)


def test_it_is_bert_with_another_activation():
    config = preset("spanbert_base", vocabulary_size=50, num_layers=1)
    assert config.activation == "gelu_erf"
    small = SpanBertConfig(**SIZES)
    ours, bert = SpanBertEncoder(small), BertEncoder(small)
    assert [v.path for v in ours.weights] == [v.path for v in bert.weights]
    bert.set_weights(ours.get_weights())
    ids = {"token_ids": np.arange(5, 15, dtype="int32")[None]}
    np.testing.assert_array_equal(ours(ids)["pooled_output"], bert(ids)["pooled_output"])
