"""XLNet's rows against the original's own cutting, draw for draw, from text to the model's inputs."""

import dataclasses

import numpy as np
import pytest
from test_electra_examples import Draws
from test_packing import corpus, documents_of
from test_writer import VOCABULARY, documents, write, write_text

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer, train_unigram
from bert_tf.tokenizers.layout import build_layout
from tfrecords.config import ShardsConfig
from tfrecords.corpus.tokens import Tokens
from tfrecords.corruption.permutation import PermutationConfig, PermutationCorruption
from tfrecords.inspection import inspect_shards
from tfrecords.packing.xlnet import check_permutation, running_text, xlnet_rows
from tfrecords.reading.reader import ShardReader
from tfrecords.shards.statistics import report

SEP, CLS, EOD = -4, -3, -7
LAYOUT = build_layout("xlnet", CLS, SEP)


class Choices(Draws):
    def choice(self, values):
        return values[self.randint(0, len(values) - 1)]


def original_stream(documents):
    """`_create_data` of zihangdai/xlnet data_utils.py: ids and alternating sentence ids, a blank line ends a document."""
    data, sent_ids, sent_id = [], [], True
    for line in [line for document in documents for line in [*document, None]]:
        if line is None:
            sent_id = not sent_id
            line = [EOD]
        data += line
        sent_ids += [sent_id] * len(line)
        sent_id = not sent_id
    return np.array(data), np.array(sent_ids)


def original_split(data_len, sent_ids, begin_idx, tot_len, rng):
    """`_split_a_and_b`: the borders of A and B, or None."""
    if begin_idx + tot_len >= data_len:
        return None
    end_idx, cut_points = begin_idx + 1, []
    while end_idx < data_len:
        if sent_ids[end_idx] != sent_ids[end_idx - 1]:
            if end_idx - begin_idx >= tot_len:
                break
            cut_points.append(end_idx)
        end_idx += 1
    a_begin = begin_idx
    if len(cut_points) == 0 or rng.random() < 0.5:
        label = 0
        a_end = end_idx if len(cut_points) == 0 else rng.choice(cut_points)
        b_len = max(1, tot_len - (a_end - a_begin))
        b_begin = rng.randint(0, data_len - 1 - b_len)
        b_end = b_begin + b_len
        while b_begin > 0 and sent_ids[b_begin - 1] == sent_ids[b_begin]:
            b_begin -= 1
        while b_end < data_len - 1 and sent_ids[b_end - 1] == sent_ids[b_end]:
            b_end += 1
    else:
        label = 1
        a_end = rng.choice(cut_points)
        b_begin, b_end = a_end, end_idx
    while a_end - a_begin + b_end - b_begin > tot_len:
        if a_end - a_begin > b_end - b_begin:
            a_end -= 1
        else:
            b_end -= 1
    if a_end >= data_len or b_end >= data_len:
        return None
    return a_begin, a_end, b_begin, b_end, label


def original_segments(data, sent_ids, seq_len, reuse_len, rng):
    """`create_tfrecords` of one row of the batch: (input, seg_id, label) of each segment."""
    i = 0
    while i + seq_len <= len(data):
        split = original_split(len(data), sent_ids, i + reuse_len, seq_len - reuse_len - 3, rng)
        if split is None:
            return
        a_begin, a_end, b_begin, b_end, label = split
        a, b = data[a_begin:a_end], data[b_begin:b_end]
        ids = [*data[i : i + reuse_len], *a, SEP, *b, SEP, CLS]
        assert len(ids) == seq_len
        yield ids, [0] * (reuse_len + len(a) + 1) + [1] * (len(b) + 1) + [2], label
        i += reuse_len


def tokens_of(sentence_splits, document_splits):
    return Tokens(np.arange(sentence_splits[-1]), sentence_splits, document_splits)


def segment_ids_of(lengths, segment):
    parts = lengths.reshape(-1, 2)
    return [[0] * first + [1] * second + [2] * (segment - first - second) for first, second in parts.tolist()]


@pytest.mark.parametrize("longest, segment, segments", [(25, 64, 2), (25, 64, 3), (90, 32, 2), (3, 128, 2)])
def test_every_segment_is_the_original_s(longest, segment, segments):
    splits = corpus(40 if longest > 3 else 400, 12, longest)
    rows, lengths, left_out = xlnet_rows(tokens_of(*splits), EOD, LAYOUT, segment * segments, segments, 5)
    data, sent_ids = original_stream(documents_of(*splits))
    rng = Choices(5)
    for direction, (text, sentences) in enumerate(((data, sent_ids), (data[::-1], sent_ids[::-1]))):
        theirs = list(original_segments(text, sentences.tolist(), segment, segment // 2, rng))
        ours = rows[direction::2].reshape(-1, segment)
        # What is left is less than a row, or what the other direction has no partner for.
        assert 0 <= len(theirs) - len(ours) < 2 * segments
        assert ours.tolist() == [list(ids) for ids, _, _ in theirs[: len(ours)]]
        assert segment_ids_of(lengths[direction::2], segment) == [ids for _, ids, _ in theirs[: len(ours)]]
    assert len(rows) > 10 and len(rows) % 2 == 0
    assert left_out == len(data) - len(rows) // 2 * segments * segment // 2


def test_running_text_without_a_mark_between_documents():
    tokens = Tokens(np.arange(6), np.array([0, 2, 5, 6]), np.array([0, 2, 3]))
    assert [part.tolist() for part in running_text(tokens, None)] == [[0, 1, 2, 3, 4, 5], [0, 2, 5, 6]]
    assert [part.tolist() for part in running_text(tokens, 9)] == [[0, 1, 2, 3, 4, 9, 5, 9], [0, 2, 6, 8]]


TEXTS = documents(400)
CONFIG = ShardsConfig(sequence_length=64, format="xlnet", shard_bytes=1 << 14)


@pytest.fixture(scope="module")
def tokenizer():
    return train_unigram(TEXTS, 260, family="xlnet")


@pytest.fixture(scope="module")
def shards(tmp_path_factory, tokenizer):
    folder = tmp_path_factory.mktemp("xlnet")
    text = write_text(folder / "corpus.txt", TEXTS)
    return text, write(text, folder / "shards", tokenizer, CONFIG), folder / "shards"


def test_batches_hold_the_rows(shards, tokenizer):
    _, manifest, folder = shards
    assert manifest.packing["segments"] == manifest.row_segments == 2 and manifest.pair_task == "none"
    assert len(manifest.shards) > 3 and all(shard.examples % 2 == 0 for shard in manifest.shards)
    batch = {k: v.numpy() for k, v in ShardReader(folder, tokenizer).examples(range(manifest.examples)).items()}
    assert batch["padding_mask"].all() and "pair_weights" not in batch
    np.testing.assert_array_equal(batch["backward"], np.arange(manifest.examples) % 2 == 1)
    ids = batch["token_ids"].reshape(-1, 32)
    assert (ids[:, -2:] == [tokenizer.sep_id, tokenizer.cls_id]).all()
    is_sep = ids == tokenizer.sep_id
    assert (is_sep.sum(1) == 2).all() and not is_sep[:, :16].any()
    before = np.cumsum(is_sep, 1) - is_sep  # a separator belongs to the text before it
    np.testing.assert_array_equal(batch["segment_ids"].reshape(-1, 32), before)
    # Documents are parted by <eod>, in either direction.
    text = ids.reshape(-1, 2, 2, 32)[..., :16]
    for direction in (0, 1):
        share = (text[:, direction] == tokenizer.eod_id).mean()
        assert 0.5 < share * manifest.counts["tokens"] / manifest.counts["documents"] < 1.5
    lines = report(manifest.counts, 64)
    assert any(line.startswith(f"pairs: {manifest.examples:,} without a label") for line in lines)


def test_what_is_predicted(shards, tokenizer):
    """Text and <eod>, in either half of each segment; rows stay as they were written."""
    _, manifest, folder = shards
    batch = ShardReader(folder, tokenizer).examples(range(manifest.examples))
    config = PermutationConfig(permutation_size=16, predict_special=True)
    features = {k: v.numpy() for k, v in PermutationCorruption(tokenizer, config)(batch, 3).items()}
    for name in ("token_ids", "segment_ids", "backward"):
        np.testing.assert_array_equal(features[name], batch[name].numpy())
    real = features["mask_weights"] > 0
    predicted = features["mask_ids"][real]
    assert not np.isin(predicted, [tokenizer.sep_id, tokenizer.cls_id]).any()
    is_eod = real & (features["mask_ids"] == tokenizer.eod_id)
    for half in (0, 1):
        # Spans begin with words, of which <eod> is one, so rather more often than other tokens.
        here = features["mask_positions"] // 16 % 2 == half
        share = (features["token_ids"].reshape(-1, 2, 16)[:, half] == tokenizer.eod_id).mean()
        assert 1 < is_eod[here].sum() / (real & here).sum() / share < 4
    functional = np.isin(features["token_ids"], [tokenizer.sep_id, tokenizer.cls_id])
    assert (features["permutation_order"][functional] % 17 > 0).all()


@pytest.mark.parametrize("segments", [0, 3, "2", None, 2.0])
def test_segments_of_a_manifest_that_was_edited(shards, segments):
    _, manifest, _ = shards
    with pytest.raises(ConfigError, match="'packing.segments' is .*, into which rows of 64 tokens cannot be cut"):
        dataclasses.replace(manifest, packing=manifest.packing | {"segments": segments})


def test_inspection_names_each_segment(shards):
    config = PermutationConfig(permutation_size=16)
    lines = list(inspect_shards(shards[2], config, examples=2, corruption=PermutationCorruption))
    names = [line[:11].strip() for line in lines]
    assert [name for name in names if name.startswith("text")] == ["text 1A", "text 1B", "text 2A", "text 2B"] * 2
    inputs = ["input 1A", "input 1B", "input 1end", "input 2A", "input 2B", "input 2end"]
    assert [name for name in names if name.startswith("input")] == inputs * 2
    assert [line.split()[1] for line in lines if line.startswith("direction")] == ["forward", "backward,"]
    with pytest.raises(ConfigError, match="permutation.permutation_size=256 reaches beyond the 16 tokens"):
        list(inspect_shards(shards[2], PermutationConfig(), corruption=PermutationCorruption))


def test_settings_that_do_not_fit_the_rows():
    packing = dataclasses.replace(CONFIG, sequence_length=1024).packing
    check_permutation(PermutationConfig(), packing, 1024)
    for changes, message in (
        ({"segments": 4}, "segments=4, but the shards were packed with 2 segments a row; set objective.permutation.s"),
        ({"bidirectional": False}, "every second row of shards of the format xlnet is in reverse order"),
        ({"permutation_size": 512}, "set objective.permutation.permutation_size=256"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_permutation(dataclasses.replace(PermutationConfig(), **changes), packing, 1024)
    check_permutation(PermutationConfig(segments=4), ShardsConfig(format="full_sentences").packing, 1024)


@pytest.mark.parametrize("settings, message", [
    ({"pair_task": "nsp"}, "pair_task: nsp asks about two segments, and xlnet"),
    ({"sequence_length": 66}, "'sequence_length' is 66; xlnet makes 2 segments a row, each of an even number of"),
    ({"sequence_length": 64, "segments": 8}, "'sequence_length' is 64; xlnet makes 8 segments a row"),
    ({"segments": 1}, "'segments' is 1; it must be at least 2"),
    ({"format": "full_sentences", "segments": 2}, "segments: full_sentences makes rows of one segment"),
])  # fmt: skip
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ConfigError, match=message):
        ShardsConfig(**{"format": "xlnet", **settings})


def test_a_corpus_and_a_tokenizer_that_do_not_do(tmp_path, tokenizer):
    text = write_text(tmp_path / "a.txt", ["w1 w2."])
    with pytest.raises(DataError, match="too short for a single row of 64 tokens"):
        write(text, tmp_path / "out", tokenizer, CONFIG)
    with pytest.raises(ConfigError, match="xlnet puts <sep> after each of two texts and <cls> at the end"):
        write(text, tmp_path / "out", WordPieceTokenizer(VOCABULARY), CONFIG)
