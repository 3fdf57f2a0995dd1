"""Every term in float64 NumPy, by the formula of its paper; where an original differs from it, the original."""

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.special import log_softmax, softmax

from bert_tf.distillation import terms
from bert_tf.distillation.internal_losses import AttentionScores, HiddenCosine, HiddenStates, MiniLM, MiniLM2, Patient
from bert_tf.distillation.output_losses import SoftLabels, SquaredError
from bert_tf.distillation.progressive import LayerRate, Progressive
from bert_tf.distillation.term_loss import Batch, ModelOutputs
from bert_tf.errors import ConfigError
from bert_tf.layers.internals import Internals
from bert_tf.models import BertConfig

RANDOM = np.random.default_rng(0)
B, S, C, HEADS, SIZE, LAYERS, N = 3, 5, 4, 2, 6, 2, 4
STUDENT = BertConfig(50, HEADS * SIZE, num_layers=LAYERS, num_heads=HEADS, intermediate_size=8)
TEACHER = BertConfig(50, HEADS * SIZE, num_layers=N, num_heads=HEADS, intermediate_size=8)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]], np.float32)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype("float32") * 2


def internals(layers):
    def many(*shape):
        return [numbers(*shape) for _ in range(layers)]

    scores = [s + (MASK[:, None, None] - 1) * 1e9 for s in many(B, HEADS, S, S)]
    vectors = [many(B, S, HEADS, SIZE) for _ in range(3)]
    return Internals(many(B, S, HEADS * SIZE), many(B, S, HEADS * SIZE), *vectors, scores)


OURS, THEIRS = ModelOutputs(numbers(B, C), internals(LAYERS)), ModelOutputs(numbers(B, C), internals(N))
BATCH = Batch(np.array([1, 1, 0], "float32"), np.ones(B, "float32"), MASK)


def value(loss, batch=BATCH):
    return float(loss.sum(OURS, THEIRS, batch)) / float(loss.weight(batch))


def soft_labels(**settings):
    return value(SoftLabels(terms.SoftLabelsConfig(**settings), STUDENT, TEACHER))


def test_soft_labels():
    s, t = (np.asarray(seen.outputs[:2], np.float64) for seen in (OURS, THEIRS))  # the third does not count
    for temperature in (1.0, 3.0):
        p, q = softmax(t / temperature, -1), log_softmax(s / temperature, -1)
        hinton = -(p * q).sum(-1).mean()
        assert soft_labels(temperature=temperature) == pytest.approx(temperature**2 * hinton, rel=1e-5)
        assert soft_labels(temperature=temperature, temperature_squared=False) == pytest.approx(hinton, rel=1e-5)
        tinybert = -(p * q).mean()  # over examples and classes
        found = soft_labels(temperature=temperature, temperature_squared=False, mean="classes")
        assert found == pytest.approx(tinybert, rel=1e-5)
        divergence = (p * (np.log(p) - q)).sum(-1).mean()  # KLDivLoss(reduction="batchmean")
        found = soft_labels(temperature=temperature, divergence=True)
        assert found == pytest.approx(temperature**2 * divergence, rel=1e-4)


def test_squared_error():
    s, t = (np.asarray(seen.outputs[:2], np.float64) for seen in (OURS, THEIRS))

    def ours(**settings):
        return value(SquaredError(terms.SquaredErrorConfig(**settings), STUDENT, TEACHER))

    assert ours() == pytest.approx(((s - t) ** 2).mean(), rel=1e-5)  # MSELoss
    assert ours(mean="predictions") == pytest.approx(((s - t) ** 2).sum(-1).mean(), rel=1e-5)
    assert ours(temperature=2.0) == pytest.approx(((s / 2 - t / 2) ** 2).mean(), rel=1e-5)


def test_a_number_has_no_soft_labels():
    with pytest.raises(ConfigError, match="predicts a number; use squared_error"):
        SoftLabels(terms.SoftLabelsConfig(), STUDENT, TEACHER).values(np.ones((2, 1)), np.ones((2, 1)))


def test_the_cosine_leaves_out_padding():
    real = [(i, j) for i in range(B) for j in range(S) if MASK[i, j]]
    last = [seen.internals.block_outputs[-1] for seen in (OURS, THEIRS)]
    expected = np.mean([cosine(last[0][i, j], last[1][i, j]) for i, j in real])
    assert value(HiddenCosine(terms.TermConfig(), STUDENT, TEACHER)) == pytest.approx(expected, rel=1e-5)


def test_hidden_states_of_tinybert():
    wide = BertConfig(50, 2 * HEADS * SIZE, num_layers=N, num_heads=HEADS, intermediate_size=8)
    theirs = [np.concatenate([x, -x], -1) for x in THEIRS.internals.hidden_states]
    seen = ModelOutputs(internals=Internals(block_inputs=theirs[:1], block_outputs=theirs[1:]))
    loss = HiddenStates(terms.HiddenStatesConfig(), STUDENT, wide)
    kernel, bias = numbers(HEADS * SIZE, 2 * HEADS * SIZE), numbers(2 * HEADS * SIZE)
    loss.projection.kernel.assign(kernel), loss.projection.bias.assign(bias)
    ours = [x.astype(np.float64) @ kernel + bias for x in OURS.internals.hidden_states]
    # Layer 1 of 2 learns from layer 2 of 4, layer 2 from layer 4, the embeddings from the embeddings; padding counts.
    expected = sum(((ours[i] - theirs[j]) ** 2).mean() for i, j in ((0, 0), (1, 2), (2, 4)))
    assert float(loss.sum(OURS, seen, BATCH)) / B == pytest.approx(expected, rel=1e-5)
    assert [layer.name for layer in loss.layers] == ["hidden_states_projection"]


def test_attention_scores_of_tinybert():
    real = np.broadcast_to(MASK[:, None, None], (B, HEADS, S, S))  # padded keys are 0 in both; queries are not
    for layers, pairs in ((None, ((0, 1), (1, 3))), ((0, 2), ((0, 0), (1, 2)))):
        expected = 0
        for i, j in pairs:
            ours, theirs = (np.where(real, seen.internals.scores[k], 0.0) for seen, k in ((OURS, i), (THEIRS, j)))
            expected += ((ours.astype(np.float64) - theirs) ** 2).mean()
        found = value(AttentionScores(terms.AttentionScoresConfig(layers=layers), STUDENT, TEACHER))
        assert found == pytest.approx(expected, rel=1e-5)


def relation(x, heads):
    """softmax(x x^T / sqrt(d)) [B, heads, S, S] of [B, S, n, d], the padded keys left out."""
    x = np.asarray(x, np.float64).reshape(B, S, heads, -1).transpose(0, 2, 1, 3)
    scores = x @ x.transpose(0, 1, 3, 2) / np.sqrt(x.shape[-1])
    return softmax(np.where(MASK[:, None, None] == 1, scores, -np.inf), -1)


def divergence(theirs, ours):
    """The mean over heads and real queries."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(theirs > 0, theirs * (np.log(theirs) - np.log(ours)), 0).sum(-1)
    return (each.mean(1) * MASK).sum() / MASK.sum()


def test_minilm():
    attention = divergence(*(softmax(np.asarray(x.internals.scores[-1], np.float64), -1) for x in (THEIRS, OURS)))
    values = divergence(*(relation(x.internals.values[-1], HEADS) for x in (THEIRS, OURS)))
    assert value(MiniLM(terms.MiniLMConfig(), STUDENT, TEACHER)) == pytest.approx(attention + values, rel=1e-5)


def test_minilm2_cuts_the_vectors_into_other_heads():
    factors = {"queries": 1.0, "keys": 0.5, "values": 2.0}
    expected = sum(
        f * divergence(relation(getattr(THEIRS.internals, name)[2], 4), relation(getattr(OURS.internals, name)[-1], 4))
        for name, f in factors.items()
    )
    settings = terms.MiniLM2Config(teacher_layer=2, relation_heads=4, query=1.0, key=0.5, value=2.0)
    assert value(MiniLM2(settings, STUDENT, TEACHER)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ConfigError, match="relation_heads=5 does not divide hidden_size=12"):
        MiniLM2(terms.MiniLM2Config(relation_heads=5), STUDENT, TEACHER)


@pytest.mark.parametrize(("layers", "theirs"), [("skip", [1]), ("last", [2]), ((0,), [0])])
def test_patience(layers, theirs):
    def unit(x):
        x = np.asarray(x[:, 0], np.float64)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    (layer,) = theirs
    expected = ((unit(OURS.internals.block_outputs[0]) - unit(THEIRS.internals.block_outputs[layer])) ** 2).mean()
    assert value(Patient(terms.PatientConfig(layers=layers), STUDENT, TEACHER)) == pytest.approx(expected, rel=1e-5)


def test_progressive_transfer_has_the_loss_of_one_layer_at_a_time():
    settings = terms.ProgressiveConfig(phase_steps=3, feature_maps=7.0, attention=3.0, mean=11.0, variance=5.0)
    loss = Progressive(settings, STUDENT, TEACHER)
    for step, (i, j) in ((0, (0, 1)), (2, (0, 1)), (3, (1, 3)), (100, (1, 3))):
        s, t = (np.asarray(x, np.float64) for x in (OURS.internals.block_outputs[i], THEIRS.internals.block_outputs[j]))
        p = softmax(np.asarray(THEIRS.internals.scores[j], np.float64), -1)
        q = log_softmax(np.asarray(OURS.internals.scores[i], np.float64), -1)
        maps = [(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) for x in (s, t)]
        expected = 7 * ((maps[0] - maps[1]) ** 2).mean() - 3 * (p * q).sum(-1).mean()
        expected += 11 * ((s.mean(-1) - t.mean(-1)) ** 2).mean() + 5 * np.abs(s.var(-1) - t.var(-1)).mean()
        batch = Batch(BATCH.predictions, BATCH.rows, BATCH.tokens, step)
        assert value(loss, batch) == pytest.approx(expected / LAYERS, rel=1e-5)


def test_the_learning_rates_of_progressive_transfer():
    """Against `layer_wise_learning_rate` and `get_background_lr` of the original's distill_util.py, in Python."""

    def rate(layer, step):
        return float(LayerRate(layer, 2, phase_steps=20, layer_rate=3.0, earlier_rate=0.3)(step))

    for step in range(40):
        done = step % 20 / 20
        background = min((1 - 0.9) * (1 - done) ** 0.5 + 0.9, 10 * done)
        for layer in (0, 1):
            factor = 0.0 if step < 20 * layer else 3.0 if step < 20 * layer + 20 else 0.3
            assert rate(layer, step) == pytest.approx(factor * background, rel=1e-5, abs=1e-7), (step, layer)
        assert rate(-1, step) == rate(2, step) == 0  # embeddings and what is above the layers


def test_models_that_cannot_be_compared():
    other = BertConfig(50, 12, num_layers=3, num_heads=3, intermediate_size=8)
    with pytest.raises(ConfigError, match="teacher's 4 layers are not a multiple of the student's 3"):
        HiddenStates(terms.HiddenStatesConfig(), other, TEACHER)
    said = (
        r"compares models of one num_heads, and the student has 3, the teacher 2; set student.model.num_heads=2 "
        r"\(model.num_heads=2 for pretraining\)"
    )
    with pytest.raises(ConfigError, match=said):
        MiniLM(terms.MiniLMConfig(), other, TEACHER)
