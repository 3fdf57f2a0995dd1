"""N-grams and spans: lengths against the closed forms, borders, sides, fates, static masks."""

import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import CLS, MASK, SEP, UNK, StandInTokenizer, as_arrays, as_tensors, batch_of
from test_packing import within

from bert_tf.errors import ConfigError
from bert_tf.tokenizers.layout import build_layout
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.corruption.masking_config import ngram_probabilities, span_probabilities
from tfrecords.corruption.masking_units import unit_starts

TOKENIZER = StandInTokenizer()
FIRST, PIECE = 12, 15  # ids of a first piece and of a continuation
PROBABILITIES = {"ngram": ngram_probabilities(3), "span": span_probabilities(0.2, 10)}
UNIT = pytest.mark.parametrize("unit", ["ngram", "span"])


def rows(size, length, epoch=0):
    """Rows of words of one piece."""
    ids = np.full((size, length), FIRST, np.int32)
    ids[:, 0], ids[:, -1] = CLS, SEP
    return as_tensors(batch_of(ids, epoch=epoch))


def masked(config, batch, seed=5):
    """Features, and for each row which tokens are predicted and which begin a unit: bool [B, S]."""
    corrupt = MaskedLMCorruption(TOKENIZER, config)
    features = as_arrays(corrupt(batch, seed))
    _, starts = corrupt.units(batch["token_ids"], batch["padding_mask"], corrupt.keys(batch, seed))
    selected = np.zeros(batch["token_ids"].shape, bool)
    row, rank = np.nonzero(features["mask_weights"])
    selected[row, features["mask_positions"][row, rank]] = True
    return features, selected, starts.numpy()


def test_the_published_numbers():
    np.testing.assert_allclose(ngram_probabilities(3), np.array([6, 3, 2]) / 11)
    spans = span_probabilities(0.2, 10)
    np.testing.assert_allclose(spans[1:] / spans[:-1], 0.8)
    assert spans.sum() == pytest.approx(1) and round((spans * np.arange(1, 11)).sum(), 3) == 3.797


def drawn(probabilities):
    """Where units begin in 400 rows of words: bool [400, 512]."""
    everywhere, rows = tf.ones((400, 512), tf.bool), tf.range(400)
    keys = tf.cast(rows, tf.uint32), tf.cast(rows * 7, tf.uint32)
    return unit_starts(everywhere, everywhere, probabilities, keys).numpy()


@pytest.mark.parametrize("p", [0.9, 0.99])
def test_spans_that_are_mostly_one_word(p):
    probabilities = span_probabilities(p, 10)
    mean = (probabilities * np.arange(1, 11)).sum()
    assert 400 * 512 / drawn(probabilities).sum() == pytest.approx(mean, rel=0.01)


@UNIT
def test_drawn_lengths(unit):
    """Chi-squared of the first 50 units of 400 rows, which no end of a row can have cut."""
    probabilities = PROBABILITIES[unit]
    sizes = np.concatenate([np.diff(np.flatnonzero(row))[:50] for row in drawn(probabilities)])
    assert len(sizes) == 400 * 50 and sizes.max() == len(probabilities)
    expected = len(sizes) * probabilities
    statistic = ((np.bincount(sizes)[1:] - expected) ** 2 / expected).sum()
    freedom = len(probabilities) - 1
    assert abs(statistic - freedom) < 3 * np.sqrt(2 * freedom)


def test_lengths_of_chosen_spans():
    """Of all spans drawn until the budget is full, the share of each length is its probability (Wald)."""
    config = MaskingConfig(strategy="span")
    counts = np.zeros(11)
    for epoch in range(4):
        _, selected, starts = masked(config, rows(300, 512, epoch))
        for chosen, begins in zip(selected, starts):
            bounds = np.append(np.flatnonzero(begins), 511)
            sizes = np.diff(bounds)[np.add.reduceat(chosen, bounds[:-1]) > 0]
            counts += np.bincount(sizes, minlength=11)
    trials = counts.sum()
    sizes, p = np.arange(1, 11), PROBABILITIES["span"]
    mean, variance = (sizes * p).sum(), (sizes**2 * p).sum() - 3.797**2
    assert trials > 20_000
    assert abs((counts[1:] * sizes).sum() / trials - mean) < 3 * np.sqrt(variance / trials)
    for n in sizes:
        assert within(counts[n], trials, p[n - 1]), n


def test_lengths_of_chosen_ngrams():
    """With a budget of three one 3-gram fills it, if it is drawn first; nothing else of that size can."""
    config = MaskingConfig(strategy="ngram", rate=0.1, max_predictions=3)
    whole = 0
    for epoch in range(4):
        _, selected, starts = masked(config, rows(2000, 64, epoch))
        first = np.argmax(selected, axis=1)
        row = np.arange(len(first))
        together = selected[row, first + 1] & selected[row, np.minimum(first + 2, 63)]
        begin = starts[row, first] & ~starts[row, first + 1] & ~starts[row, np.minimum(first + 2, 63)]
        whole += (together & begin).sum()
    assert within(whole, 8000, 2 / 11)


@UNIT
def test_budgets(unit):
    config = MaskingConfig(strategy=unit)
    batch = rows(500, 128)
    lengths = np.random.default_rng(0).integers(3, 129, 500)
    ids = batch["token_ids"].numpy()
    ids[np.arange(500), lengths - 1] = SEP
    batch["padding_mask"] = tf.constant(np.arange(128) < lengths[:, None])
    batch["token_ids"] = tf.constant(np.where(batch["padding_mask"], ids, 0))
    _, selected, _ = masked(config, batch)
    budget = np.array([max(1, round(0.15 * n)) for n in lengths - 2])
    used = selected.sum(1)
    if unit == "span":
        np.testing.assert_array_equal(used, budget)
    else:
        assert (used <= budget).all() and used.sum() > 0.995 * budget.sum()
    assert not selected[np.isin(batch["token_ids"], TOKENIZER.special_ids)].any()


@pytest.mark.parametrize("unit", ["whole_word", "ngram", "span"])
def test_places_are_covered_alike(unit):
    counts, size = 0, 3000
    for epoch in range(5):
        _, selected, _ = masked(MaskingConfig(strategy=unit), rows(size, 128, epoch))
        counts = counts + selected.sum(0)
    assert counts[0] == counts[-1] == 0
    share = 19 / 126
    sigma = np.sqrt(5 * size * share * (1 - share))
    relative = counts[1:-1] / (5 * size * share) - 1
    inner = relative[12:-12]
    assert np.abs(inner).max() < 4 * sigma / (5 * size * share)  # the largest of 102
    # The last span drawn is cut: a few per cent more at the ends of a text.
    assert -0.05 < relative[[0, 1, -2, -1]].mean() < 0.1


@pytest.mark.parametrize("unit", ["whole_word", "ngram", "span"])
def test_units_hold_whole_words_and_no_special_token(unit):
    batch = rows(400, 96)
    ids = batch["token_ids"].numpy()
    rng = np.random.default_rng(1)
    ids[rng.random(ids.shape) < 0.4] = PIECE
    ids[:, [0, 40, 95]] = CLS, SEP, SEP
    batch["token_ids"] = tf.constant(ids)
    _, selected, starts = masked(MaskingConfig(strategy=unit), batch)
    special = np.isin(ids, TOKENIZER.special_ids)
    behind_special = np.roll(special, 1, axis=1)
    word = ~special & ((ids == FIRST) | behind_special)
    assert not (starts & ~word).any() and starts[behind_special & ~special].all()
    words = np.diff(np.flatnonzero(starts[:, :][word]))
    assert words.max() == len(PROBABILITIES.get(unit, [1]))
    if unit != "span":  # all of a unit or nothing
        number = np.cumsum(starts, axis=1)
        for row in range(400):
            chosen = np.unique(number[row][selected[row]])
            assert np.isin(number[row], chosen)[~special[row]].sum() == selected[row].sum()


def test_sides_and_fates_of_spans():
    features, selected, _ = masked(MaskingConfig(strategy="span"), rows(3000, 128))
    after, fates = features["token_ids"], []
    for row in range(3000):
        real = features["mask_weights"][row] > 0
        sides = np.stack([features["span_left"][row], features["span_right"][row]], axis=1)
        assert not sides[~real].any()
        for left, right in np.unique(sides[real], axis=0):
            inside = np.arange(left + 1, right)
            assert selected[row, inside].all() and not selected[row, [left, right]].any()
            of_span = (sides == (left, right)).all(1) & real
            np.testing.assert_array_equal(features["mask_positions"][row][of_span], inside)
            is_mask, is_kept = after[row, inside] == MASK, after[row, inside] == FIRST
            assert is_mask.all() or not is_mask.any()
            if len(inside) > 2:
                assert is_kept.all() or is_kept.sum() <= 1  # 1 in 190 random tokens is the original
                fates.append((is_mask.all(), is_kept.all()))
    is_mask, is_kept = np.array(fates).T
    assert within(is_mask.sum(), len(fates), 0.8) and within(is_kept.sum(), len(fates), 0.1)


def test_spans_beside_special_tokens_have_no_boundaries():
    """SpanBERT's span_masking leaves out spans at either end of the text; [UNK] is a token of the text."""
    batch = rows(300, 64)
    ids = batch["token_ids"].numpy()
    ids[:, 30], ids[:, 50] = SEP, UNK
    batch["token_ids"] = tf.constant(ids)
    features, _, _ = masked(MaskingConfig(strategy="span"), batch)
    real = features["mask_weights"] > 0
    left, right = features["span_left"], features["span_right"]
    between = ~np.isin(left, [0, 30]) & ~np.isin(right, [30, 63])
    np.testing.assert_array_equal(features["span_weights"], real & between)
    assert (real & between & ((left == 50) | (right == 50))).any()
    assert 0.05 < (real & ~between).sum() / real.sum() < 0.4


@pytest.mark.parametrize("unit", ["token", "span"])
def test_static_masks_repeat(unit):
    config = MaskingConfig(strategy=unit, static_duplicates=3)
    features = [masked(config, rows(20, 64, epoch))[0] for epoch in range(7)]
    for name in features[0]:
        for epoch in range(4):
            np.testing.assert_array_equal(features[epoch][name], features[epoch + 3][name], err_msg=name)
    for epoch in (1, 2):
        same = features[0]["mask_positions"] == features[epoch]["mask_positions"]
        assert same.mean() < 0.5
    without = masked(MaskingConfig(strategy=unit), rows(20, 64, 1))[0]
    np.testing.assert_array_equal(without["token_ids"], features[1]["token_ids"])


@pytest.mark.parametrize("values, message", [
    ({"strategy": "spans"}, "'strategy' is 'spans'; did you mean 'span'?"),
    ({"max_ngram": 2}, "max_ngram applies only to strategy: ngram, but strategy is token; remove max_ngram"),
    ({"strategy": "ngram", "span_p": 0.1}, "span_p applies only to strategy: span, but strategy is ngram"),
    ({"strategy": "span", "span_p": 1.0}, "'span_p' is 1.0; it must be above 0 and below 1"),
    ({"strategy": "ngram", "max_ngram": 0}, "'max_ngram' is 0; it must be at least 1"),
    ({"static_duplicates": 0}, "'static_duplicates' is 0; it must be at least 1"),
])  # fmt: skip
def test_senseless_settings_are_refused(values, message):
    with pytest.raises(ConfigError) as caught:
        MaskingConfig(**values)
    assert message in str(caught.value)


def test_what_a_strategy_asks_of_the_tokenizer():
    for unit in ("whole_word", "ngram", "span"):
        with pytest.raises(ConfigError, match=f"strategy: {unit} needs to know where words begin"):
            MaskedLMCorruption(StandInTokenizer(marks_words=False), MaskingConfig(strategy=unit))
    MaskedLMCorruption(StandInTokenizer(marks_words=False), MaskingConfig())
    bare = StandInTokenizer(layout=build_layout("xlnet", CLS, SEP))
    MaskedLMCorruption(bare, MaskingConfig(strategy="ngram"))
    with pytest.raises(ConfigError, match="puts no special token before the text"):
        MaskedLMCorruption(bare, MaskingConfig(strategy="span"))
