import keras
import numpy as np
import pytest
from numeric import log_softmax

from bert_tf.config import build
from bert_tf.errors import ConfigError, DataError
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.models.gpt2.config import GPT2Config
from bert_tf.models.gpt2.model import GPT2Decoder
from bert_tf.objectives import CausalLM, CausalLMConfig, MaskedLM
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining

SIZES = dict(vocabulary_size=31, hidden_size=12, num_layers=2, num_heads=3, intermediate_size=20, max_positions=16)


def make(dtype="float32", **changes):
    keras.utils.set_random_seed(3)
    return CausalLM(GPT2Decoder(GPT2Config(**SIZES | {"initializer_range": 0.3} | changes), dtype=dtype))


def batch(rows=4, length=9):
    generator = np.random.default_rng(0)
    padding_mask = np.arange(length) < np.array([9, 5, 1, 7])[:rows, None]
    return {"token_ids": generator.integers(0, 31, (rows, length)).astype("int32"), "padding_mask": padding_mask}


def check(model, features, counted):
    """Loss, accuracy and weight are those of the predictions of tokens 1.. that count: bool [B, S - 1]."""
    log_probabilities = log_softmax(model(features)["causal_lm_logits"])[:, :-1]
    targets = features["token_ids"][:, 1:]
    picked = np.take_along_axis(log_probabilities, targets[..., None], axis=-1)[..., 0]
    correct = log_probabilities.argmax(-1) == targets
    losses, metrics = model.loss_sums(features, training=False)
    assert float(losses["causal_lm"]) == pytest.approx(-(picked * counted).sum(), rel=1e-5)
    assert [float(x) for x in metrics["causal_lm_accuracy"]] == [(correct * counted).sum(), counted.sum()]
    assert float(model.loss_weights(features)["causal_lm"]) == counted.sum()


def test_sums_against_float64():
    model, features = make(), batch()
    outputs = model(features)
    assert (outputs["causal_lm_logits"].shape, outputs["causal_lm_logits"].dtype) == ((4, 9, 31), "float32")
    check(model, features, features["padding_mask"][:, 1:])
    assert float(model.loss_weights(features)["causal_lm"]) == 8 + 4 + 0 + 6
    check(model, {"token_ids": features["token_ids"]}, np.ones((4, 8), bool))


def test_texts_of_a_row_count_apart():
    model, features = make(), batch(rows=1)
    packed = {
        "token_ids": features["token_ids"],
        "sequence_ids": np.array([[1, 1, 1, 2, 2, 2, 2, 0, 0]], "int32"),
        "position_ids": np.array([[0, 1, 2, 0, 1, 2, 3, 0, 0]], "int32"),
    }
    check(model, packed, np.array([[1, 1, 0, 1, 1, 1, 0, 0]], bool))
    texts = [{"token_ids": packed["token_ids"][:, a:b]} for a, b in ((0, 3), (3, 7))]
    alone = sum(float(model.loss_sums(text, False)[0]["causal_lm"]) for text in texts)
    assert float(model.loss_sums(packed, False)[0]["causal_lm"]) == pytest.approx(alone, rel=1e-5)


def test_padding_on_the_left_counts_the_same():
    model, features = make(), batch(rows=2)
    right = {name: value[1:] for name, value in features.items()}
    left = {name: np.roll(value, 4, axis=1) for name, value in right.items()}
    left["position_ids"] = np.array([[0, 0, 0, 0, 0, 1, 2, 3, 4]], "int32")
    losses = [float(model.loss_sums(x, False)[0]["causal_lm"]) for x in (right, left)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert float(model.loss_weights(left)["causal_lm"]) == 4


def test_backbones_of_the_other_kind_are_refused():
    encoder = BertEncoder(BertConfig(**SIZES))
    with pytest.raises(ConfigError, match="causal_lm trains decoders, and BertEncoder is an encoder: it sees"):
        CausalLM(encoder)
    for family, objective, wanted in (("bert", "causal_lm", "masked_lm or"), ("gpt2", "masked_lm", "causal_lm")):
        config = {"model": {"family": family, **SIZES}, "objective": {"name": objective}, "data": {"shards": "x"}}
        with pytest.raises(ConfigError, match=f"the family {family} is an? .*; set objective.name={wanted}"):
            check_pretraining(build(PretrainConfig, config))
    assert MaskedLM(encoder)


def test_shards_and_batches_that_it_cannot_learn_from():
    assert CausalLMConfig().for_shards({"format": "token_blocks"}, 16) == CausalLMConfig()
    with pytest.raises(ConfigError, match="the format segment_pair; write them with format=full_sentences,"):
        CausalLMConfig().for_shards({"format": "segment_pair"}, 16)
    with pytest.raises(DataError, match="token_ids"):
        make()({"padding_mask": np.ones((1, 2), bool)})
