import dataclasses
import hashlib
import itertools

import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import CLS, MASK, PAD, SEP, UNK, StandInTokenizer, as_tensors, batch_of, corrupted
from test_packing import within

from bert_tf.errors import ConfigError
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.corruption.replaced_tokens import ReplacedTokenCorruption

TOKENIZER = StandInTokenizer()
SPECIAL = np.array(TOKENIZER.special_ids)
UNIT = pytest.mark.parametrize("unit", ["token", "whole_word", "ngram", "span"])


def make_batch(size, length, full=False, continuations=0.25):
    """A batch as the reader yields it, with a second segment in every sequence."""
    rng = np.random.default_rng(0)
    ids = rng.integers(10, TOKENIZER.vocabulary_size, (size, length)).astype(np.int32)
    pieces = np.flatnonzero(TOKENIZER.is_continuation)
    ids = np.where(rng.random(ids.shape) < continuations, rng.choice(pieces, ids.shape), ids)
    lengths = np.full(size, length) if full else rng.integers(4, length + 1, size)
    ids[:, 0] = CLS
    ids[np.arange(size), rng.integers(1, lengths - 1)] = SEP
    ids[np.arange(size), lengths - 1] = SEP
    padding_mask = np.arange(length) < lengths[:, None]
    ids[~padding_mask] = PAD
    return batch_of(ids, padding_mask)


def corrupt(batch, seed=3, config=MaskingConfig(), tokens=None, corruption=MaskedLMCorruption, **graph):
    return corrupted(corruption(TOKENIZER, config, *([] if tokens is None else [tokens])), batch, seed, **graph)


@pytest.mark.parametrize("config, checksum", [
    (MaskingConfig(), "ffea08575be63a03"),
    (MaskingConfig(strategy="whole_word"), "4ea9609a0cf2b286"),
    (MaskingConfig(rate=0.4, strategy="whole_word", max_predictions=17), "54b9a34858c3080e"),
    (MaskingConfig(rate=0.3, mask_token_rate=0.5, random_token_rate=0.5, max_predictions=4), "d14c1d42f33eed43"),
    (MaskingConfig(mask_token_rate=1, random_token_rate=0), "bab4e91f940eb1d8"),
    (MaskingConfig(rate=0.95), "d6fde0aaca3c2479"),
    (MaskingConfig(rate=0.95, strategy="whole_word"), "66ba2fd5bd9dfd54"),
    (MaskingConfig(strategy="ngram"), "b9fabbe190745c16"),
    (MaskingConfig(rate=0.3, strategy="ngram", max_ngram=5, static_duplicates=2), "1d0a6862eaa402a2"),
    (MaskingConfig(strategy="span"), "c76bb5372c01873f"),
    (MaskingConfig(rate=0.9, strategy="span", span_p=0.1, max_span=20), "40b043d6e78e2ebf"),
    (MaskingConfig(strategy="span", max_predictions=7), "36ee1814e9cea0c4"),
    (MaskingConfig(strategy="span", rounding="up", predict_unknown=True), "831bcf86084bc7af"),
    (MaskingConfig(strategy="whole_word", predict_unknown=True), "f122a6e444bb20f3"),
    (MaskingConfig(rounding="random", predict_special=True), "ade43015616c37c0"),
    (MaskingConfig(rate=0.07, rounding="random", max_predictions=6, predict_unknown=True), "952c3bb4ca8a434e"),
])  # fmt: skip
def test_masks_stay_the_same(config, checksum):
    """A run that is resumed after an upgrade has the masks that it would have had before."""
    digest = hashlib.sha256()
    for length, seed in ((24, -5), (128, 0), (300, 12345678901234567)):
        row, position = np.indices((15, length))
        ids = (10 + (row * 7919 + position * position * 31 + row * position * 17) % 190).astype(np.int32)
        ids[:, 0], ids[:, length // 2], ids[:, -1], ids[ids % 23 == 0] = CLS, SEP, SEP, UNK
        real = position < length - row
        batch = batch_of(np.where(real, ids, PAD), real, epoch=2, first=1 << 33)
        features = MaskedLMCorruption(TOKENIZER, config)(as_tensors(batch), seed)
        for name in sorted(features):
            digest.update(features[name].numpy().astype(np.int32).tobytes())
    assert digest.hexdigest()[:16] == checksum


def test_graph_and_xla_are_the_operations_one_by_one():
    batch = make_batch(64, 128)
    for strategy, jit_compile in (("whole_word", False), ("span", True)):
        config = MaskingConfig(strategy=strategy)
        expected, found = corrupt(batch, 7, config), corrupt(batch, 7, config, jit_compile=jit_compile)
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@UNIT
def test_same_masks_in_any_batch(unit):
    config = MaskingConfig(strategy=unit)
    batch = make_batch(30, 64)
    whole = corrupt(batch, 1, config)
    backwards = np.arange(30)[::-1]
    for rows in (backwards, [4], range(10, 17)):
        part = corrupt({name: value[list(rows)] for name, value in batch.items()}, 1, config)
        for name in whole:
            np.testing.assert_array_equal(part[name], whole[name][list(rows)], err_msg=name)


def test_other_masks_in_other_epochs_seeds_and_examples():
    """Two independent choices of 19 among 125 share 2.9 on average; equal ones would share 19."""
    ids = make_batch(1, 128, full=True, continuations=0)["token_ids"]
    cases = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1 << 32, 0, 0), (0, 0, 1 << 32)]
    chosen = []
    for seed, epoch, index in cases:
        chosen.append(set(corrupt(batch_of(ids, epoch=epoch, first=index), seed)["mask_positions"][0].tolist()))
    for i, one in enumerate(chosen):
        for other in chosen[:i]:
            assert len(one & other) < 12


def test_exactly_the_budget_and_never_a_special_token():
    batch = make_batch(500, 96)
    features = corrupt(batch)
    eligible = (~np.isin(batch["token_ids"], SPECIAL)).sum(1)
    expected = [min(15, max(1, round(0.15 * n))) for n in eligible]
    assert features["mask_positions"].shape == (500, 15)
    np.testing.assert_array_equal(features["mask_weights"].sum(1), expected)
    real = features["mask_weights"] > 0
    assert not np.isin(features["mask_ids"][real], SPECIAL).any()
    assert not features["mask_positions"][~real].any() and not features["mask_ids"][~real].any()
    rows = np.arange(500)[:, None]
    predicted = batch["token_ids"][rows, features["mask_positions"]]
    np.testing.assert_array_equal(features["mask_ids"][real], predicted[real])
    steps = np.diff(features["mask_positions"], axis=1)
    assert (steps[real[:, 1:]] > 0).all()
    untouched = np.ones_like(batch["token_ids"], bool)
    untouched[np.nonzero(real)[0], features["mask_positions"][real]] = False
    np.testing.assert_array_equal(features["token_ids"][untouched], batch["token_ids"][untouched])


@UNIT
def test_no_eligible_token_no_prediction(unit):
    ids = np.array([[CLS, SEP, SEP, PAD], [CLS, UNK, SEP, PAD], [CLS, 50, SEP, PAD]], np.int32)
    features = corrupt(batch_of(ids, ids != PAD), config=MaskingConfig(strategy=unit))
    np.testing.assert_array_equal(features["mask_weights"], [[0], [0], [1]])
    np.testing.assert_array_equal(features["token_ids"][:2], ids[:2])
    np.testing.assert_array_equal(features["mask_ids"], [[0], [0], [50]])


def test_eligible_token_in_the_first_place():
    """Filler points at position 0, which must stay as the selection left it."""
    ids = np.full((200, 12), 20, np.int32)
    ids[:, 2:] = SEP
    features = corrupt(batch_of(ids), config=MaskingConfig(rate=0.4, mask_token_rate=1, random_token_rate=0))
    first = features["token_ids"][:, 0] == MASK
    assert (first != (features["token_ids"][:, 1] == MASK)).all()
    assert within(first.sum(), 200, 0.5)


@pytest.mark.parametrize("special_ids", [(0, 1), (0, 100, 101, 102, 103), (3, 5, 6, 9, 40, 199), (*range(1, 20, 2),)])
def test_what_may_be_masked_wherever_special_ids_lie(special_ids):
    """They are compared with where they lie in few stretches, else looked up."""
    tokenizer = dataclasses.replace(TOKENIZER, special_ids=special_ids)
    ids, padding_mask = np.arange(200)[None], np.arange(200)[None] < 190
    tokens, _ = MaskedLMCorruption(tokenizer).units(tf.constant(ids, tf.int32), tf.constant(padding_mask), None)
    np.testing.assert_array_equal(tokens, ~np.isin(ids, special_ids) & padding_mask)


@pytest.mark.parametrize("length", [64, 300])
def test_distributions(length):
    size, candidates, special = 4000, length - 3, [0, 30, length - 1]
    batch = make_batch(size, length, full=True, continuations=0)
    batch["token_ids"][:] = 77
    batch["token_ids"][:, special] = [CLS, SEP, SEP]
    features = corrupt(batch, seed=11)
    n = round(0.15 * candidates)
    positions = features["mask_positions"][features["mask_weights"] > 0]
    assert len(positions) == n * size
    # Every position equally likely: chi-squared. Drawing without replacement makes it smaller by (1 - n / candidates).
    counts = np.delete(np.bincount(positions, minlength=length), special)
    expected = n * size / candidates
    statistic = ((counts - expected) ** 2 / expected).sum() / (1 - n / candidates)
    freedom = candidates - 1
    assert abs(statistic - freedom) < 3 * np.sqrt(2 * freedom) * candidates / freedom

    after = features["token_ids"][np.nonzero(features["mask_weights"])[0], positions]
    masked, kept = (after == MASK).sum(), (after == 77).sum()
    choices = len(TOKENIZER.random_ids)
    assert within(masked, len(after), 0.8)
    # A random token is the original one time in `choices`.
    assert within(kept, len(after), 0.1 + 0.1 / choices)
    drawn = np.bincount(after[(after != MASK) & (after != 77)], minlength=200)[10:]
    drawn = np.delete(drawn, 77 - 10)
    expected = drawn.sum() / (choices - 1)
    statistic = ((drawn - expected) ** 2 / expected).sum()
    assert abs(statistic - (choices - 2)) < 3 * np.sqrt(2 * (choices - 2))
    assert not np.isin(after[after != MASK], SPECIAL).any()


def test_few_tokens_among_many_special_ones():
    """Draws with replacement rarely hit them: the rest is chosen otherwise, all equally likely."""
    size, places = 3000, [5, 40, 41, 77, 99, 120, 126]
    ids = np.full((size, 128), UNK, np.int32)
    ids[:, places] = 50
    features = corrupt(batch_of(ids), config=MaskingConfig(rate=0.6))
    assert (features["mask_weights"].sum(1) == 4).all()
    positions = features["mask_positions"][features["mask_weights"] > 0]
    counts = np.bincount(positions, minlength=128)
    assert counts.sum() == counts[places].sum()
    for count in counts[places]:
        assert within(count, size, 4 / 7)


def test_words_are_never_split():
    batch = make_batch(600, 128, continuations=0.5)
    features = corrupt(batch, config=MaskingConfig(strategy="whole_word"))
    real = features["mask_weights"] > 0
    selected = np.zeros_like(batch["padding_mask"])
    selected[np.nonzero(real)[0], features["mask_positions"][real]] = True
    ids = batch["token_ids"]
    special = np.isin(ids, SPECIAL)
    inside = TOKENIZER.is_continuation[ids] & ~special
    inside[:, 1:] &= ~special[:, :-1]
    inside[:, 0] = False
    np.testing.assert_array_equal(selected[:, 1:][inside[:, 1:]], selected[:, :-1][inside[:, 1:]])
    budget = np.array([max(1, round(0.15 * n)) for n in (~special).sum(1)])
    used = selected.sum(1)
    assert (used <= budget).all()
    # Words of two pieces on average fill it but for sequences where none fits.
    assert used.sum() > 0.97 * budget.sum()


def test_other_features_pass_and_shapes_are_static():
    batch = make_batch(8, 128)
    spec = {name: tf.TensorSpec(value.shape, tf.as_dtype(value.dtype)) for name, value in batch.items()}
    spec["pair_labels"] = tf.TensorSpec([8], tf.int32)
    corruption = MaskedLMCorruption(TOKENIZER)
    zeros = {name: tf.zeros(part.shape, part.dtype) for name, part in spec.items()}
    dataset = tf.data.Dataset.from_tensors(zeros).map(lambda features: corruption(features, 1))
    assert {name: (s.shape.as_list(), s.dtype) for name, s in dataset.element_spec.items()} == {
        "token_ids": ([8, 128], tf.int32),
        "padding_mask": ([8, 128], tf.bool),
        "pair_labels": ([8], tf.int32),
        "mask_positions": ([8, 20], tf.int32),
        "mask_ids": ([8, 20], tf.int32),
        "mask_weights": ([8, 20], tf.float32),
    }


def test_unknown_and_special_tokens_are_predicted_on_request():
    """BERT, ALBERT, ELECTRA and SpanBERT predict [UNK]; RoBERTa all but padding."""
    batch = make_batch(400, 64)
    batch["token_ids"][:, 1][batch["token_ids"][:, 1] > MASK] = UNK
    ids, real = batch["token_ids"], batch["padding_mask"]
    for setting, never in ((None, SPECIAL), ("predict_unknown", [PAD, CLS, SEP, MASK]), ("predict_special", [PAD])):
        features = corrupt(batch, config=MaskingConfig(**({setting: True} if setting else {})))
        predicted = features["mask_ids"][features["mask_weights"] > 0]
        assert not np.isin(predicted, never).any()
        assert set(SPECIAL) - {MASK} - set(never) <= set(predicted.tolist())
        may = (~np.isin(ids, never) & real).sum(1)
        np.testing.assert_array_equal(features["mask_weights"].sum(1), [min(n, max(1, round(0.15 * n))) for n in may])
    with pytest.raises(ConfigError, match="predict_special masks .CLS. and .SEP., which belong to no word"):
        MaskingConfig(predict_special=True, strategy="span")


def test_rounding():
    """fairseq's int(.15 n + U) has the mean .15 n; SpanBERT's ceil is never less."""
    batch = make_batch(4000, 64, full=True, continuations=0)
    batch["token_ids"][:] = 77
    batch["token_ids"][:, -13:] = SEP  # 51 are left: 7.65
    configs = {rounding: MaskingConfig(rounding=rounding) for rounding in ("nearest", "up", "random")}
    counts = {rounding: corrupt(batch, config=config)["mask_weights"].sum(1) for rounding, config in configs.items()}
    assert (counts["nearest"] == 8).all() and (counts["up"] == 8).all()
    assert set(counts["random"]) == {7, 8} and within((counts["random"] == 8).sum(), 4000, 0.65)
    up, _ = MaskingConfig(rounding="up").budgets(512)
    nearest, _ = MaskingConfig().budgets(512)
    assert (up[510], nearest[510]) == (77, 76) and up[20] == 3 and up[0] == 0
    whole, more = MaskingConfig(rounding="random").budgets(100)
    np.testing.assert_allclose(whole + more, 0.15 * np.arange(101), atol=1e-8)


def test_random_tokens_of_the_corpus():
    """As frequent as in the corpus, chi-squared; the same positions are chosen as with others."""
    batch = make_batch(6000, 64, full=True, continuations=0)
    config = MaskingConfig(mask_token_rate=0, random_token_rate=1, random_tokens="corpus")
    tokens = np.repeat(np.arange(20, 30, dtype=np.int32), np.arange(1, 11) * 1000)
    features = corrupt(batch, config=config, tokens=tokens)
    uniform = corrupt(batch, config=dataclasses.replace(config, random_tokens="uniform"))
    np.testing.assert_array_equal(features["mask_positions"], uniform["mask_positions"])
    rows, ranks = np.nonzero(features["mask_weights"])
    drawn = features["token_ids"][rows, features["mask_positions"][rows, ranks]]
    counts = np.bincount(drawn, minlength=200)
    expected = len(drawn) * np.arange(1, 11) / 55
    assert counts.sum() == counts[20:30].sum() == 6000 * 9
    statistic = ((counts[20:30] - expected) ** 2 / expected).sum()
    assert abs(statistic - 9) < 3 * np.sqrt(2 * 9)
    with pytest.raises(ConfigError, match="random_tokens: corpus and rare_token_exponent need tokens of the shards"):
        MaskedLMCorruption(TOKENIZER, config)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_rare_tokens_are_predicted_more_often(jit_compile):
    """The pairs that are drawn from four tokens, chi-squared against drawing one after the other by count^-0.7."""
    counts = np.array([1000, 100, 10, 1])
    corpus = np.repeat(np.arange(20, 24, dtype=np.int32), counts)
    rows = 20_000
    ids = np.tile(np.array([CLS, 20, 21, UNK, 22, 23, SEP, PAD], np.int32), (rows, 1))
    config = MaskingConfig(rate=0.5, rare_token_exponent=0.7)
    features = corrupt(batch_of(ids, ids != PAD), 11, config, corpus, jit_compile=jit_compile)
    assert (features["mask_weights"].sum(1) == 2).all()
    pairs = np.sort(features["mask_ids"][:, :2], axis=1) - 20
    weights = counts**-0.7
    p = weights / weights.sum()
    statistic = 0
    for i, j in itertools.combinations(range(4), 2):
        expected = rows * (p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j]))
        statistic += (np.all(pairs == (i, j), axis=1).sum() - expected) ** 2 / expected
    assert statistic < 5 + 3 * np.sqrt(2 * 5)


def test_weights_by_frequency_are_for_single_tokens_of_a_known_corpus():
    with pytest.raises(ConfigError, match="rare_token_exponent need tokens of the shards"):
        MaskedLMCorruption(TOKENIZER, MaskingConfig(rare_token_exponent=0.7))
    for settings in ({"strategy": "span"}, {"predict_special": True}, {"predict_unknown": True}):
        with pytest.raises(ConfigError, match="rare_token_exponent weighs single tokens of the text"):
            MaskingConfig(rare_token_exponent=0.7, **settings)


def test_width_of_the_predictions():
    assert MaskingConfig().predictions(128) == 20
    assert MaskingConfig().predictions(512) == 77
    assert MaskingConfig(rate=0.07).predictions(100) == 7
    assert MaskingConfig(max_predictions=80).predictions(512) == 80
    assert MaskingConfig(max_predictions=80).predictions(64) == 64
    budgets, more = MaskingConfig(max_predictions=5).budgets(128)
    assert budgets[[0, 1, 3, 10, 17, 126]].tolist() == [0, 1, 1, 2, 3, 5] and not more.any()


@pytest.mark.parametrize("values", [
    {"rate": 0}, {"rate": 1.5}, {"mask_token_rate": 0.9, "random_token_rate": 0.2}, {"random_token_rate": -0.1},
    {"max_predictions": 0}, {"rounding": "down"}, {"random_tokens": "batch"},
])  # fmt: skip
def test_impossible_settings_are_refused(values):
    with pytest.raises(ConfigError):
        MaskingConfig(**values)


# As google-research/electra: of the predicted tokens 85 % become [MASK], the rest stay.
REPLACEMENT = MaskingConfig(mask_token_rate=0.85, random_token_rate=0.0)


def full_batch(size, epoch=0, first=0):
    return batch_of(np.random.default_rng(0).integers(10, 200, (size, 64)), None, epoch, first)


def replaced(batch, seed=3, **graph):
    return corrupt(batch, seed, REPLACEMENT, corruption=ReplacedTokenCorruption, **graph)


def test_masks_of_replaced_tokens_are_those_of_the_masked_lm():
    batch = full_batch(50)
    ours, masked_lm = replaced(batch), corrupt(batch, config=REPLACEMENT)
    assert set(ours) == set(masked_lm) | {"sampling_bits"}
    for name, value in masked_lm.items():
        np.testing.assert_array_equal(ours[name], value)


def test_published_replacement():
    # 85 % [MASK] and 15 % kept, none random; and, unlike the original, no position twice.
    batch = full_batch(2000)
    features = replaced(batch)
    there = np.take_along_axis(features["token_ids"], features["mask_positions"], 1)
    real = features["mask_weights"] > 0
    masked = (there == MASK)[real]
    assert ((there == features["mask_ids"]) | (there == MASK))[real].all()
    assert abs(masked.mean() - 0.85) < 3 * np.sqrt(0.85 * 0.15 / masked.size)
    distinct = [len(set(row[r])) for row, r in zip(features["mask_positions"], real)]
    np.testing.assert_array_equal(distinct, real.sum(1))
    np.testing.assert_array_equal(real.sum(1), round(0.15 * 64))


def test_the_numbers_are_uniform_and_independent_of_the_masks():
    features = replaced(full_batch(4000))
    bits = features["sampling_bits"]
    assert bits.dtype == "int32" and bits.shape == features["mask_positions"].shape
    assert bits.min() >= 0 and bits.max() < 2**24
    counts = np.bincount((bits // 2**20).ravel(), minlength=16)
    expected = bits.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 15 + 3 * np.sqrt(30)
    uniform = bits / 2**24 - 0.5
    for other in (features["mask_positions"], features["mask_ids"], features["token_ids"][:, : bits.shape[1]]):
        correlation = np.corrcoef(uniform.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 3 / np.sqrt(bits.size)
    neighbours = np.corrcoef(uniform[:, 1:].ravel(), uniform[:, :-1].ravel())[0, 1]
    assert abs(neighbours) < 3 / np.sqrt(bits.size)


def test_the_numbers_are_a_pure_function_of_seed_epoch_and_example():
    whole = replaced(full_batch(20))["sampling_bits"]
    batch = {k: v[12:] for k, v in full_batch(20).items()}
    np.testing.assert_array_equal(replaced(batch)["sampling_bits"], whole[12:])
    np.testing.assert_array_equal(replaced(full_batch(20), jit_compile=True)["sampling_bits"], whole)
    others = replaced(full_batch(20, epoch=1)), replaced(full_batch(20), 4), replaced(full_batch(20, first=20))
    for other in others:
        assert (other["sampling_bits"] == whole).mean() < 0.01
