"""T5's objectives against ports of its code, closed forms, and the promises of every corruption."""

import contextlib
import types

import numpy as np
import pytest
from scipy import stats
from shard_fixtures import as_arrays, as_tensors, batch_of

from bert_tf.errors import ConfigError
from bert_tf.testing import check_corruption
from bert_tf.tokenizers import Layout
from tfrecords.corruption.denoising import DenoisingCorruption
from tfrecords.corruption.denoising_config import DenoisingConfig

PAD, END, UNKNOWN, TEXT, SENTINELS = 0, 1, 2, range(3, 900), 100
VOCABULARY = ["<pad>", "</s>", "<unk>", *(f"t{i}" for i in TEXT), *(f"<extra_id_{99 - i}>" for i in range(SENTINELS))]
FIRST_SENTINEL = len(VOCABULARY) - 1
TOKENIZER = types.SimpleNamespace(
    sep_id=END, pad_id=PAD, unk_id=UNKNOWN, special_ids=(PAD, END, UNKNOWN),
    random_ids=np.array(TEXT), sentinel_ids=range(FIRST_SENTINEL, FIRST_SENTINEL - SENTINELS, -1),
    layout=Layout(after_first=(END,)), readable=VOCABULARY.__getitem__,
)  # fmt: skip


def batch(lengths, width, epoch=0, first=0):
    """Rows of different tokens, each with </s> at its end: no two tokens of a row are alike."""
    rows = np.zeros((len(lengths), width), "int32")
    for row, length in enumerate(lengths):
        rows[row, :length] = 3 + np.random.default_rng(row).permutation(len(TEXT))[:length]
        if length < width:
            rows[row, length] = END
    return as_tensors(batch_of(rows, rows != PAD, epoch, first))


def corrupted(config, data, seed=0):
    return as_arrays(DenoisingCorruption(TOKENIZER, config)(data, seed))


def rows_of(data, result):
    """(text, input, target), lists of each row without </s> and padding."""
    shifted = np.pad(result["target_ids"], [(0, 0), (1, 0)], constant_values=PAD)[:, :-1]
    np.testing.assert_array_equal(result["decoder_token_ids"], shifted)
    names = ("token_ids", "padding_mask", "target_ids", "target_weights")
    for text, ids, mask, targets, weights in zip(data["token_ids"].numpy(), *(result[name] for name in names)):
        inputs, outputs = ids[mask].tolist(), targets[weights > 0].tolist()
        assert inputs[-1] == outputs[-1] == END
        assert (ids[~mask] == PAD).all() and (targets[weights == 0] == PAD).all()
        yield text[text > UNKNOWN].tolist(), inputs[:-1], outputs[:-1]


def restored(inputs, targets):
    """The text of an input and a target with sentinels; checks their order."""
    pieces, current = {}, None
    for token in targets:
        if token > FIRST_SENTINEL - SENTINELS:
            assert token == FIRST_SENTINEL - len(pieces)
            pieces[token] = current = []
        else:
            current.append(token)
    text, seen = [], 0
    for token in inputs:
        if token > FIRST_SENTINEL - SENTINELS:
            assert token == FIRST_SENTINEL - seen
            text, seen = text + pieces[token], seen + 1
        else:
            text.append(token)
    assert seen == len(pieces)
    return text


def test_lengths_are_the_published_ones():
    for mean, raw, target in ((2.0, 552, 126), (3.0, 568, 114), (5.0, 581, 105), (10.0, 591, 99)):
        config = DenoisingConfig(mean_span=mean)
        assert (config.longest_text(512), config.lengths(raw)) == (raw, (512, target))
    for length, raw, target in ((128, 141, 29), (256, 284, 58), (1024, 1137, 229)):
        assert (DenoisingConfig().longest_text(length), DenoisingConfig().lengths(raw)[1]) == (raw, target)
    byt5 = DenoisingConfig(mean_span=20.0)
    assert (byt5.longest_text(1024), byt5.lengths(1193)[1], byt5.sentinels(1193)) == (1193, 189, 9)
    # 568 tokens and </s>: inputs of 512 and targets of 114, without a column of padding.
    result = corrupted(DenoisingConfig(), batch([568, 568], 569))
    assert result["token_ids"].shape == (2, 512) and result["target_ids"].shape == (2, 114)
    assert result["padding_mask"].all() and result["target_weights"].all()


@pytest.mark.parametrize("mean_span", [1.0, 3.0, 8.0])
def test_span_corruption_has_the_exact_numbers_and_can_be_undone(mean_span):
    config, lengths = DenoisingConfig(mean_span=mean_span), [1, 2, 3, 7, 20, 63, 64, 150, 200]
    data = batch(lengths, 201)
    for text, inputs, targets in rows_of(data, corrupted(config, data)):
        noise, spans = (int(x) for x in config.noise(len(text)))
        assert len(inputs) == len(text) - noise + spans
        assert len(targets) == noise + max(spans, 1)  # a text of one token has a sentinel as its target
        if len(text) > 1:
            assert restored(inputs, targets) == text
            assert inputs[0] == text[0]  # the first token is never noise
            assert targets[-1] == text[-1]  # the last always is


def test_every_partition_is_equally_likely():
    """8 tokens, 3 of them noise in 2 spans: 2 partitions of 3 times 4 partitions of 5."""
    config = DenoisingConfig(rate=0.4, mean_span=1.5)
    assert [int(x) for x in config.noise(8)] == [3, 2]
    count, seen = 4_000, {}
    for epoch in range(4):
        data = batch([8] * 1_000, 9, epoch=epoch)
        for text, inputs, _ in rows_of(data, corrupted(config, data, seed=5)):
            key = tuple(text.index(t) for t in inputs if t in text)
            seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 8
    assert stats.chisquare([*seen.values()], [count / 8] * 8).pvalue > 0.001


def test_tokens_drawn_one_by_one_are_as_many_as_the_rate_says():
    """In BERT's style one noise token of ten is random."""
    data, expected = batch([200] * 300, 201), 200 * 300 * 0.15
    for method in ("drop", "mass", "bert"):
        noise, random = 0, 0
        for text, inputs, targets in rows_of(data, corrupted(DenoisingConfig(method=method), data)):
            if method == "drop":
                assert sorted(inputs + targets) == sorted(text)
                assert [t for t in text if t in set(targets)] == targets
                noise += len(targets)
            else:
                assert targets == text
                changed = [new for new, old in zip(inputs, text, strict=True) if new != old]
                noise += len(changed)
                random += len(changed) - changed.count(FIRST_SENTINEL)
                assert set(changed) <= {FIRST_SENTINEL, *TEXT}
        assert abs(noise - expected) < 3 * np.sqrt(expected * 0.85)
        assert abs(random - 0.1 * noise) < 3 * np.sqrt(0.09 * noise) if method == "bert" else random == 0


def test_replaced_spans_equal_a_port_of_the_original():
    def unique_sentinels(tokens, noise):
        """`noise_span_to_unique_sentinel`."""
        first = noise & ~np.concatenate([[False], noise[:-1]])
        sentinels = FIRST_SENTINEL + 1 - np.cumsum(first)
        return np.where(first, sentinels, tokens)[~noise | first].tolist()

    data = batch([150, 80, 199], 201)
    config = DenoisingConfig(method="replace_spans", rate=0.2)
    for text, inputs, targets in rows_of(data, corrupted(config, data)):
        noise = np.isin(text, targets)
        assert inputs == unique_sentinels(text, noise)
        assert targets == unique_sentinels(text, ~noise)


def test_too_few_sentinels_are_an_error_before_the_first_step():
    with pytest.raises(ConfigError, match="needs 128 sentinels for texts of 512 tokens, and the vocabulary has 100"):
        DenoisingCorruption(TOKENIZER, DenoisingConfig(method="replace_spans", rate=0.5)).check_sentinels(512)
    exact = DenoisingConfig(rate=0.5, mean_span=1.0)  # a sentinel for two tokens: </s> of the row needs none
    for width, raises in ((202, False), (203, True)):
        reader = types.SimpleNamespace(manifest=types.SimpleNamespace(sequence_length=width))
        with pytest.raises(ConfigError) if raises else contextlib.nullcontext():
            DenoisingCorruption.of_shards(reader, TOKENIZER, exact)


def test_a_text_that_draws_more_spans_than_sentinels_keeps_the_rest():
    few = types.SimpleNamespace(**vars(TOKENIZER) | {"sentinel_ids": TOKENIZER.sentinel_ids[:5]})
    data = batch([32] * 200, 33)
    corrupt = DenoisingCorruption(few, DenoisingConfig(method="replace_spans"))
    for _, inputs, targets in rows_of(data, as_arrays(corrupt(data, 0))):
        for ids in (inputs, targets):
            sentinels = [t for t in ids if t > FIRST_SENTINEL - SENTINELS]
            assert sentinels == list(range(FIRST_SENTINEL, FIRST_SENTINEL - len(sentinels), -1))
            assert len(sentinels) <= 5


def test_deshuffling_gives_every_order():
    data, seen = batch([3] * 3_000, 4), {}
    for text, inputs, targets in rows_of(data, corrupted(DenoisingConfig(method="deshuffle"), data)):
        assert targets == text
        key = tuple(text.index(t) for t in inputs)
        seen[key] = seen.get(key, 0) + 1
    assert stats.chisquare([seen[k] for k in sorted(seen)], [500] * 6).pvalue > 0.001


def test_prefixes_are_cut_uniformly():
    data, seen = batch([11] * 4_000, 12), np.zeros(11)
    for text, inputs, targets in rows_of(data, corrupted(DenoisingConfig(method="prefix_lm"), data)):
        assert inputs + targets == text
        seen[len(inputs)] += 1
    assert seen[0] == 0
    assert stats.chisquare(seen[1:]).pvalue > 0.001


def test_a_language_model_has_no_input():
    data = batch([11, 4], 12)
    for text, inputs, targets in rows_of(data, corrupted(DenoisingConfig(method="lm"), data)):
        assert inputs == [] and targets == text


@pytest.mark.parametrize("method", ["span", "replace_spans", "bert", "mass", "drop", "deshuffle", "prefix_lm", "lm"])
def test_the_contract_of_a_corruption(method):
    corrupt = DenoisingCorruption(TOKENIZER, DenoisingConfig(method=method))
    check_corruption(corrupt, batch([40, 33, 12, 40, 25, 8], 41), draws=method != "lm")


def test_truncation_keeps_the_last_token():
    result = corrupted(DenoisingConfig(method="mass", input_length=10, target_length=8), batch([40], 41))
    assert result["token_ids"].shape == (1, 10) and result["target_ids"].shape == (1, 8)
    assert result["token_ids"][0, -1] == result["target_ids"][0, -1] == END


def test_inspect_shows_input_and_target():
    data = batch([12], 13)
    corrupt = DenoisingCorruption(TOKENIZER, DenoisingConfig(rate=0.4, mean_span=2.0))
    (explained,) = corrupt.explain(data, corrupt(data, 0), 0)
    reads, writes = (explained.notes[name].split() for name in ("reads", "writes"))
    assert reads[-1] == writes[-1] == "</s>"
    ids = [[VOCABULARY.index(token) for token in side[:-1]] for side in (reads, writes)]
    assert restored(*ids) == data["token_ids"].numpy()[0, :12].tolist()
    assert explained.rule == f"{len(writes)} tokens from an input of {len(reads)}; method: span"
