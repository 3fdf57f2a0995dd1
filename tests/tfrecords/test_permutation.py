import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import CLS, MASK, PAD, SEP, UNK, batch_of, corrupted
from test_packing import within

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers.layout import Layout
from tfrecords.corruption.permutation import PermutationConfig, PermutationCorruption, order_within_windows
from tfrecords.corruption.permutation_spans import sample_spans
from tfrecords.corruption.random_numbers import example_keys, random_bits

SIMPLE = PermutationConfig(segments=1, bidirectional=False)


@dataclasses.dataclass
class Tokenizer:
    """Text <sep> <cls>, and every fourth id continues a word."""

    special_ids: tuple = (PAD, UNK, CLS, SEP, MASK)
    sep_id: int = SEP
    cls_id: int = CLS
    eod_id: None = None
    layout: Layout = Layout(after_first=(SEP,), at_end=(CLS,))
    starts_word = np.arange(200) % 4 != 3


def make_batch(size, length, full=True):
    generator = np.random.default_rng(0)
    lengths = np.full(size, length) if full else generator.integers(3, length + 1, size)
    token_ids = generator.integers(10, 200, (size, length))
    token_ids[generator.random(token_ids.shape) < 0.04] = SEP
    token_ids[generator.random(token_ids.shape) < 0.02] = UNK
    rows = np.arange(size)
    token_ids[rows, lengths - 2], token_ids[rows, lengths - 1] = SEP, CLS
    padding_mask = np.arange(length) < lengths[:, None]
    segment_ids = (np.arange(length) == lengths[:, None] - 1).astype("int32")
    return batch_of(np.where(padding_mask, token_ids, PAD), padding_mask) | {"segment_ids": segment_ids}


def corrupt(batch, config=SIMPLE, seed=5, tokenizer=Tokenizer(), **graph):
    return corrupted(PermutationCorruption(tokenizer, config), batch, seed, **graph)


def keys_of(batch, seed=5):
    return example_keys(seed, tf.constant(batch["epoch"]), tf.constant(batch["example_index"]))


def sample_mask(kinds, goal, draw_length, draw_before, config, stop_at_special=True):
    """`_sample_mask` of the original for one window, one token after the other, without the single tokens.

    Args:
        kinds: int [W]: 0 special, 1 first piece, 2 continuation.
        goal: how many tokens to predict.
        draw_length: function of the step -> tokens of the span, from 1.
        draw_before: function of (step, context) -> tokens passed over, below the context.
        config: a PermutationConfig.
        stop_at_special: as ours; the original takes special tokens for words, counts them, and leaves
            them out of the loss.
    """
    window, place, chosen, step = len(kinds), 0, np.zeros(len(kinds), bool), 0
    while place < window and chosen.sum() < goal:
        n = min(draw_length(step), goal - chosen.sum())
        context = n * config.alpha // config.beta
        before = draw_before(step, context)
        begin = place + before
        while begin < window and kinds[begin] != 1 and (stop_at_special or kinds[begin] != 0):
            begin += 1
        end = begin + n
        if stop_at_special:
            end = next((i for i in range(begin, min(end, window)) if kinds[i] == 0), end)
        if end >= window:
            break
        chosen[begin:end] = True
        place, step = end + context - before, step + 1
    return chosen


@pytest.mark.parametrize("config", [SIMPLE, dataclasses.replace(SIMPLE, alpha=5, beta=2, max_ngram=3)])
def test_spans_equal_a_walk_through_each_window(config):
    generator = np.random.default_rng(1)
    kinds = generator.choice([0, 1, 1, 1, 2, 2], (40, 3, 64)).astype("int8")
    budget = generator.integers(0, 20, (40, 3)).astype("int32")
    batch = make_batch(40, 8)
    keys = keys_of(batch)
    ours = sample_spans(tf.constant(kinds), tf.constant(budget), keys, config)
    counters = tf.range(3 * 64)[None, :]
    bits = [random_bits(keys, stream, counters).numpy().reshape(40, 3, 64) for stream in (17, 18)]
    weights = np.cumsum(1 / np.arange(1, config.max_ngram + 1))
    lengths = 1 + (bits[0][..., None] / 2**32 >= weights[:-1] / weights[-1]).sum(-1)
    for place in itertools.product(range(40), range(3)):

        def draw_before(step, context):
            return int(bits[1][place][step]) * context >> 32

        expected = sample_mask(kinds[place], budget[place], lengths[place].item, draw_before, config)
        np.testing.assert_array_equal(ours.numpy()[place], expected, err_msg=str(place))
    assert ours.numpy().sum() > 300


def test_numbers_of_predictions():
    assert PermutationConfig(segments=1, bidirectional=False).quotas(512) == [43, 42]
    assert PermutationConfig().quotas(1024) == [43, 42, 43, 42]
    assert PermutationConfig().predictions(1024) == 170
    assert PermutationConfig(max_predictions=9).quotas(64) == [4, 4]
    features = corrupt(make_batch(30, 512))
    # 510 or less tokens that are not special in windows of 256.
    assert features["mask_positions"].shape == (30, 85)
    batch = make_batch(200, 48, full=False)
    features = corrupt(batch)
    eligible = (~np.isin(batch["token_ids"], Tokenizer().special_ids)).sum(1)
    expected = [0 if n < 2 else max(1, round(n / 6)) for n in eligible]
    np.testing.assert_array_equal(features["mask_weights"].sum(1), expected)
    assert (eligible < 2).any()


def test_what_the_features_say():
    config = PermutationConfig(permutation_size=32, segments=2, bidirectional=False)
    batch = make_batch(100, 128, full=False)
    features = corrupt(batch, config)
    assert set(features) == {
        "token_ids", "segment_ids", "padding_mask", "permutation_order",
        "mask_positions", "mask_ids", "mask_weights",
    }  # fmt: skip
    np.testing.assert_array_equal(features["token_ids"], batch["token_ids"])
    positions, order = features["mask_positions"], features["permutation_order"]
    assert positions.shape == (100, 22) and positions.dtype == order.dtype == np.int32
    real = features["mask_weights"] > 0
    rows = np.nonzero(real)[0]
    assert not np.isin(features["mask_ids"][real], Tokenizer().special_ids).any()
    np.testing.assert_array_equal(batch["token_ids"][rows, positions[real]], features["mask_ids"][real])
    assert not positions[~real].any() and not features["mask_ids"][~real].any()
    # Half of them belong to each half of the row, and each position comes once.
    assert (positions[:, :11][real[:, :11]] < 64).all() and (positions[:, 11:][real[:, 11:]] >= 64).all()
    assert len(set(zip(rows, positions[real]))) == real.sum()
    predicted = np.zeros((100, 128), bool)
    predicted[rows, positions[real]] = True
    ordered = predicted | (np.isin(batch["token_ids"], [SEP, CLS]) & batch["padding_mask"])
    for window in range(4):
        here = order[:, window * 32 : (window + 1) * 32]
        mine = ordered[:, window * 32 : (window + 1) * 32]
        assert (here[~mine] == window * 33).all()
        for row, mask in zip(here, mine):
            assert sorted(row[mask]) == list(range(window * 33 + 1, window * 33 + 1 + mask.sum()))
            if mask.any():
                assert (~mask).any()


def test_all_orders_are_equally_likely():
    size = 12_000
    keys = keys_of({"epoch": np.zeros(size, int), "example_index": np.arange(size)})
    ordered = np.zeros((size, 8), bool)
    ordered[:, [0, 2, 3]] = True  # three in the first window of four
    ordered[:, 5:] = True  # three in the second
    ranks = order_within_windows(tf.constant(ordered), 4, keys).numpy()
    assert (ranks[:, 1] == 0).all() and (ranks[:, 4] == 5).all()
    for places, first in (([0, 2, 3], 1), ([5, 6, 7], 6)):
        for order in itertools.permutations(range(3)):
            assert within((ranks[:, places] == np.array(order) + first).all(1).sum(), size, 1 / 6)
    # The two windows know nothing of each other.
    assert within(((ranks[:, 0] < ranks[:, 2]) == (ranks[:, 5] < ranks[:, 6])).sum(), size, 0.5)


@pytest.mark.parametrize("tokens_a_word", [1.25, 2.5])
def test_every_place_is_predicted_alike(tokens_a_word):
    """By eighths of a window: near the mean, and by chi-squared as the original's `_sample_mask`."""
    size, window, goal = 3000, 256, 43
    generator = np.random.default_rng(7)
    kinds = np.where(generator.random((size, window)) < 1 / tokens_a_word, 1, 2)
    token_ids = tf.constant(np.where(kinds == 1, 12, 15), tf.int32)
    keys = keys_of({"epoch": np.zeros(size, int), "example_index": np.arange(size)})
    ours = PermutationCorruption(Tokenizer(), SIMPLE).select(token_ids, tf.ones(kinds.shape, tf.bool), keys).numpy()
    np.testing.assert_array_equal(ours.sum(1), goal)
    weights = 1 / np.arange(1, 6)
    lengths = generator.choice(5, (400, window), p=weights / weights.sum()) + 1

    def draw_before(step, context):
        return generator.integers(context)

    walks = zip(kinds[:400], lengths)
    original = np.array([sample_mask(row, goal, each.item, draw_before, SIMPLE, False) for row, each in walks])
    for row in original:  # then single tokens
        row[generator.choice(np.flatnonzero(~row), goal - row.sum(), replace=False)] = True
    ours, original = (x.reshape(len(x), 8, window // 8).mean(2) for x in (ours, original))
    # The end of a window has a few per cent less, in the original too: no span may reach it.
    relative = ours.mean(0) / (goal / window)
    assert np.abs(relative - 1).max() < 0.06 and np.abs(relative[:7] - 1).max() < 0.035
    # Seven eighths are free, the last follows from them. The chance of more than 24.3 is one in a thousand.
    difference = (ours.mean(0) - original.mean(0))[:7]
    covariance = sum(np.cov(x[:, :7].T) / len(x) for x in (ours, original))
    assert difference @ np.linalg.solve(covariance, difference) < 24.3
    # The inner eighths are alike among themselves.
    inner = ours[:, 1:7] - ours[:, 1:7].mean(1, keepdims=True)
    deviation, covariance = inner.mean(0)[:5], np.cov(inner[:, :5].T) / size
    assert deviation @ np.linalg.solve(covariance, deviation) < 20.5  # as likely, with five


def test_unknown_tokens_are_predicted_on_request():
    batch = make_batch(200, 128)
    for wanted in (False, True):
        features = corrupt(batch, dataclasses.replace(SIMPLE, predict_special=wanted))
        predicted = features["mask_ids"][features["mask_weights"] > 0]
        assert (predicted == UNK).any() == wanted and not np.isin(predicted, [SEP, CLS, PAD, MASK]).any()
        may = ~np.isin(batch["token_ids"], [SEP, CLS] if wanted else [SEP, CLS, UNK])
        np.testing.assert_array_equal(features["mask_weights"].sum(1), np.round(may.sum(1) / 6).clip(max=21))


def test_same_in_graph_and_xla_in_any_batch_and_other_in_other_epochs():
    config = PermutationConfig(permutation_size=16)
    batch = make_batch(30, 64, full=False)
    graph, xla = corrupt(batch, config), corrupt(batch, config, jit_compile=True)
    for name in graph:
        np.testing.assert_array_equal(graph[name], xla[name], err_msg=name)
    rows = [7, 3, 20]
    part = corrupt({k: v[rows] for k, v in batch.items()}, config)
    for name in part:
        np.testing.assert_array_equal(part[name], graph[name][rows], err_msg=name)
    for other in (corrupt(batch, config, seed=6), corrupt(batch | {"epoch": batch["epoch"] + 2}, config)):
        same = np.mean(other["permutation_order"] == graph["permutation_order"])
        assert same < 0.9 and (other["token_ids"] == graph["token_ids"]).all()


def test_backward_rows():
    config = PermutationConfig(permutation_size=16)
    batch = make_batch(40, 64, full=False)
    features = corrupt(batch, config)
    np.testing.assert_array_equal(features["backward"], np.arange(40) % 2 == 1)
    again = corrupt(batch | {"epoch": batch["epoch"] + 1}, config)
    np.testing.assert_array_equal(again["backward"], ~features["backward"])
    for row in range(40):
        ids, n = batch["token_ids"][row], batch["padding_mask"][row].sum()
        text = ids[: n - 2][::-1] if features["backward"][row] else ids[: n - 2]
        np.testing.assert_array_equal(features["token_ids"][row], [*text, SEP, CLS, *ids[n:]])
        assert features["segment_ids"][row, n - 1] == 1
    bert = dataclasses.replace(Tokenizer(), layout=Layout(before_first=(CLS,), after_first=(SEP,)))
    ids = np.array([[CLS, 10, 11, 12, 14, SEP, PAD, PAD]], "int32")
    one = {k: v[:1] for k, v in batch.items()} | {"example_index": np.array([1])}
    one |= {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids > 0}
    out = corrupt(one, PermutationConfig(), tokenizer=bert)
    np.testing.assert_array_equal(out["token_ids"], [[CLS, 14, 12, 11, 10, SEP, PAD, PAD]])


def test_spans_of_backward_rows_begin_with_words_too():
    batch = make_batch(400, 64)
    config = PermutationConfig(segments=2, max_ngram=2)
    corruption_ = PermutationCorruption(Tokenizer(), config)
    # The same text read backwards, chosen with the same numbers: the mirror image, window by window.
    forwards = corruption_.select(*texts(batch), keys_of(batch)).numpy()
    mirrored = {k: v.reshape(400, 2, 32)[:, :, ::-1].reshape(400, 64) for k, v in batch.items() if v.ndim == 2}
    backwards = corruption_.select(*texts(mirrored), keys_of(batch), tf.fill([400], True)).numpy()
    spans = forwards.reshape(400, 2, 32)[:, :, ::-1].reshape(400, 64)
    np.testing.assert_array_equal(backwards, spans)


def texts(batch):
    return tf.constant(batch["token_ids"]), tf.constant(batch["padding_mask"])


def test_windows_shorter_than_a_span():
    batch = make_batch(50, 8, full=False)
    features = corrupt(batch)
    assert (features["mask_weights"].sum(1) <= 1).all() and features["mask_weights"].sum() > 10
    features = corrupt(batch, PermutationConfig(permutation_size=2))
    assert features["mask_positions"].shape == (50, 2)  # one of four tokens, in the first of their windows


def test_errors():
    for settings, message in (
        ({"segments": 1}, "with segments=1 there is none"),
        ({"alpha": 1}, "would leave none"),
        ({"max_ngram": 0}, "'max_ngram' is 0"),
        ({"max_predictions": 1}, "leaves none for some of 2 segments"),
    ):
        with pytest.raises(ConfigError, match=message):
            PermutationConfig(**settings)
    with pytest.raises(ConfigError, match="15 tokens cannot be cut into 2 equal segments"):
        PermutationConfig().window(15)
    with pytest.raises(ConfigError, match="permutation_size=10 does not divide segments of 16"):
        PermutationConfig(permutation_size=10).window(32)
    with pytest.raises(DataError, match="one sequence a row"):
        PermutationCorruption(Tokenizer())({"sequence_ids": tf.zeros([2, 4])}, 0)
