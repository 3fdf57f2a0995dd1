"""Losses and proposed spans of each head against formulas in float64 NumPy, written from the originals' code."""

import keras
import numpy as np
import pytest
from scipy.special import erf, expit, log_softmax, softmax

from bert_tf.errors import ConfigError
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks.spans.heads import IMPOSSIBLE, published_head
from bert_tf.tasks.spans.model import SpanModel

B, S, H, LENGTHS, OFFSET = 3, 9, 8, (9, 7, 8), 3  # [CLS] question [SEP] context [SEP]
GOLD = np.array([[4, 5], [0, 0], [0, 0]])
ANSWERABLE = np.array([1.0, 0.0, 1.0])  # the third: the answer is in another window


def gelu(x):
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def features(at_end=False):
    column = np.arange(S)
    lengths = np.array(LENGTHS)[:, None]
    context = (column >= OFFSET) & (column < lengths - 1)
    null = np.where(at_end, lengths[:, 0] - 1, 0)
    gold = np.where(GOLD == 0, null[:, None], GOLD)
    return {
        "token_ids": np.random.default_rng(0).integers(5, 20, (B, S)).astype("int32"),
        "segment_ids": ((column >= OFFSET) & (column < lengths)).astype("int32"),
        "padding_mask": column < lengths,
        "context_mask": context,
        "start_mask": context & (column < 6),
        "start_positions": gold[:, 0].astype("int32"),
        "end_positions": gold[:, 1].astype("int32"),
        "answerable": ANSWERABLE.astype("float32"),
        "label_weights": np.array([1.0, 0.5, 1.0], "float32"),
    }


def build(head, **settings):
    keras.utils.set_random_seed(1)
    config = BertConfig(20, H, 1, 2, 16, max_positions=16, dropout=0.0, attention_dropout=0.0, initializer_range=0.5)
    model = SpanModel(BertEncoder(config, pooler=False), head, **settings)
    for variable in model.head.trainable_variables:
        variable.assign(keras.random.normal(variable.shape, stddev=0.7, seed=len(variable.path)))
    return model


def numpy_head(model, x, at_end):
    """(start logits [B, S], function(example, start) -> end logits [S], answer logits or None, null positions)."""
    w = {v.path.split("head/")[1]: v.numpy().astype(np.float64) for v in model.head.variables}
    h = model.backbone({n: x[n] for n in ("token_ids", "segment_ids", "padding_mask")})["sequence_output"].numpy()
    h = h.astype(np.float64)
    null = np.array(LENGTHS) - 1 if at_end else np.zeros(B, int)
    cls = np.eye(S, dtype=bool)[null]
    if model.head.__class__.__name__ in ("BertSpanHead", "ModernBertSpanHead"):
        if "hidden/kernel" in w:
            h = gelu(h @ w["hidden/kernel"])
            mean, variance = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
            h = (h - mean) / np.sqrt(variance + 1e-5) * w["layer_norm/gamma"]
        logits = h @ w["dense/kernel"] + w["dense/bias"]
        logits[~x["padding_mask"]] = -1e9
        return logits[..., 0], lambda b, start: logits[b, :, 1], None, null
    start = (h @ w["start/kernel"] + w["start/bias"])[..., 0]
    if model.head.__class__.__name__ == "ElectraSpanHead":
        allowed = (x["padding_mask"] & (x["segment_ids"] == 1)) | cls
        mask = lambda logits, b: logits + 1000 * (allowed[b] - 1.0)  # noqa: E731
        start = start + 1000 * (allowed - 1.0)

        def end(b, at):
            both = np.concatenate([np.tile(h[b, at], (S, 1)), h[b]], axis=-1)
            hidden = gelu(both @ w["end_hidden/kernel"] + w["end_hidden/bias"])
            return mask((hidden @ w["end/kernel"] + w["end/bias"])[:, 0], b)

        read = np.concatenate([h[cls], np.einsum("bs,bsh->bh", softmax(start, -1), h)], axis=-1)
        hidden = gelu(read @ w["answerable_hidden/kernel"] + w["answerable_hidden/bias"])
        return start, end, (hidden @ w["answerable/kernel"] + w["answerable/bias"])[:, 0], null
    allowed = x["context_mask"] | cls
    start = np.where(allowed, start, -1e30)

    def end(b, at):
        both = np.concatenate([h[b], np.tile(h[b, at], (S, 1))], axis=-1)
        hidden = np.tanh(both @ w["end_hidden/kernel"] + w["end_hidden/bias"])
        mean, variance = hidden.mean(-1, keepdims=True), hidden.var(-1, keepdims=True)
        hidden = (hidden - mean) / np.sqrt(variance + 1e-12) * w["end_norm/gamma"] + w["end_norm/beta"]
        return np.where(allowed[b], (hidden @ w["end/kernel"] + w["end/bias"])[:, 0], -1e30)

    read = np.concatenate([np.einsum("bs,bsh->bh", softmax(start, -1), h), h[cls]], axis=-1)
    hidden = np.tanh(read @ w["answer_hidden/kernel"] + w["answer_hidden/bias"])
    return start, end, (hidden @ w["answer/kernel"])[:, 0], null


@pytest.mark.parametrize(
    "head, at_end", [("bert", False), ("modernbert", False), ("electra", False), ("xlnet", False), ("xlnet", True)]
)
def test_losses_and_spans(head, at_end):
    n = 3
    model = build(head, n_best=n, beam=None if head.endswith("bert") else n, max_answer_length=2, at_end=at_end)
    x = features(at_end)
    start, end, answer, null = numpy_head(model, x, at_end)
    gold = np.stack([x["start_positions"], x["end_positions"]], 1)
    span = [-0.5 * (log_softmax(start[b])[gold[b, 0]] + log_softmax(end(b, gold[b, 0]))[gold[b, 1]]) for b in range(B)]
    sums, _ = model.loss_sums(x, training=False)
    weights = x["label_weights"]
    np.testing.assert_allclose(sums["span"], np.dot(span, weights), rtol=1e-4)
    total = np.array(span)
    if head.endswith("bert"):
        assert sums.keys() == {"span"} == model.loss_weights(x).keys()
    else:
        # ELECTRA has the question's label, XLNet the window's.
        impossible = 1 - ANSWERABLE if head == "electra" else np.array([0.0, 1.0, 1.0])
        losses = -impossible * np.log(expit(answer)) - (1 - impossible) * np.log(expit(-answer))
        np.testing.assert_allclose(sums["answerable"], np.dot(losses, weights), rtol=1e-4)
        total = total + 0.5 * losses
    outputs = {name: value.numpy() for name, value in model(x).items()}
    np.testing.assert_allclose(outputs["loss"], total, rtol=1e-4)
    for b in range(B):
        pairs = []
        scores = start[b] if head.endswith("bert") else log_softmax(start[b])
        for s in np.argsort(-scores, kind="stable")[:n]:
            ends = end(b, s) if head.endswith("bert") else log_softmax(end(b, s))
            for e in np.argsort(-ends, kind="stable")[:n]:
                if x["start_mask"][b, s] and x["context_mask"][b, e] and 0 <= e - s < 2:
                    pairs.append((scores[s] + ends[e], s, e))
        pairs.sort(key=lambda pair: -pair[0])
        proposed = zip(*(outputs[name][b] for name in ("scores", "starts", "ends")))
        found = [(score, s, e) for score, s, e in proposed if score > IMPOSSIBLE / 2]
        assert [pair[1:] for pair in found] == [pair[1:] for pair in pairs]
        np.testing.assert_allclose([pair[0] for pair in found], [pair[0] for pair in pairs], rtol=1e-4, atol=1e-5)
        expected = answer[b] if answer is not None else start[b, null[b]] + end(b, 0)[null[b]]
        np.testing.assert_allclose(outputs["null_scores"][b], expected, rtol=1e-4, atol=1e-5)


def test_the_rate_of_dropout_that_is_given():
    for head in ("bert", "xlnet"):
        assert [build(head, **given).head.dropout.rate for given in ({"dropout": 0.25}, {})] == [0.25, 0.0]
    with pytest.raises(ConfigError, match="task.head.dropout=0.25 is for other heads, and that of electra has none"):
        build("electra", dropout=0.25)


def test_rows_shorter_than_the_beam():
    x = {name: value[:, :5] if value.ndim == 2 else value for name, value in features().items()}
    for head in ("bert", "electra"):
        outputs = build(head, n_best=20)({n: v for n, v in x.items() if not n.endswith("positions")})
        assert outputs["scores"].shape == outputs["starts"].shape == (B, 100)
        assert np.isfinite(outputs["scores"]).all() and outputs["ends"].numpy().max() < 5


def test_families_have_the_head_that_was_published():
    families = ("bert", "spanbert", "albert", "electra", "modernbert", "xlnet")
    heads = [published_head(family, True) for family in families]
    assert heads == ["bert", "bert", "xlnet", "electra", "modernbert", "xlnet"]
    assert published_head("albert", False) == "bert"


def test_modernbert_starts_from_the_layers_of_the_masked_lm_head():
    found = build("modernbert").pretrained_head()
    shapes = {"masked_lm_head/dense/kernel": (H, H), "masked_lm_head/layer_norm/gamma": (H,)}
    assert {name: variable.shape for name, variable in found.items()} == shapes
    assert build("bert").pretrained_head() == {}
