"""Pairs of texts: files of two columns to shards to batches, against a port in plain Python."""

import gzip
import json
import random

import numpy as np
import pytest
from test_writer import write

from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.baselines import unigram
from tfrecords import ShardReader, ShardsConfig, report

WORDS = [f"w{i}" for i in range(50)]
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
END = TOKENIZER.sep_id


def pairs(count=40, longest=9, seed=0):
    draw = random.Random(seed)
    return [tuple(" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(2)) for _ in range(count)]


PAIRS = pairs()


def table(path, rows=PAIRS, header=False):
    text = "source\ttarget\n" * header + "\n".join("\t".join(row) for row in rows) + "\n"
    path.write_text(text)
    return path


def written(folder, rows=PAIRS, **settings):
    config = ShardsConfig(format="text_pairs", **{"sequence_length": 16, **settings})
    text = table(folder / "a.tsv", rows)
    manifest = write(text, folder / "shards", TOKENIZER, config)
    reader = ShardReader(folder / "shards", TOKENIZER)
    return manifest, reader, {k: v.numpy() for k, v in reader.examples(range(reader.num_examples)).items()}


def ended(text, length):
    return TOKENIZER.encode(text)[: length - 1] + [END]


def test_one_pair_a_row(tmp_path):
    manifest, reader, batch = written(tmp_path, target_length=6, pack_pairs=False)
    assert reader.num_examples == len(PAIRS) and batch["target_ids"].shape == (40, 6)
    for row, (source, target) in enumerate(PAIRS):
        source, target = ended(source, 16), ended(target, 6)
        np.testing.assert_array_equal(batch["token_ids"][row], source + [0] * (16 - len(source)))
        np.testing.assert_array_equal(batch["padding_mask"][row], np.arange(16) < len(source))
        np.testing.assert_array_equal(batch["target_ids"][row], target + [0] * (6 - len(target)))
        np.testing.assert_array_equal(batch["target_weights"][row], np.arange(6) < len(target))
        np.testing.assert_array_equal(batch["decoder_token_ids"][row], [0] + batch["target_ids"][row, :-1].tolist())
    assert "sequence_ids" not in batch
    cut = sum(len(TOKENIZER.encode(target)) > 5 for _, target in PAIRS)
    assert (manifest.counts["truncated_sources"], manifest.counts["truncated_targets"]) == (0, cut)
    lines = report(manifest.counts, manifest.sequence_length, manifest.target_length)
    assert f"40 pairs; truncated: sources 0 (0.0 %), targets {cut} ({100 * cut / 40:.1f} %)" in lines


def packed_port(rows, source_length, target_length):
    """seqio's greedy packing: list of rows, each a list of pairs of ids."""
    packed, room = [], None
    for source, target in rows:
        source, target = ended(source, source_length), ended(target, target_length)
        if room is None or len(source) > room[0] or len(target) > room[1]:
            packed.append([])
            room = [source_length, target_length]
        packed[-1].append((source, target))
        room = [room[0] - len(source), room[1] - len(target)]
    return packed


def test_packed_rows_equal_a_port(tmp_path):
    manifest, reader, batch = written(tmp_path, sequence_length=24, target_length=20)
    expected = packed_port(PAIRS, 24, 20)
    assert reader.num_examples == len(expected) < 30 and manifest.counts["pairs"] == 40
    for row, texts in enumerate(expected):
        for side, names in enumerate((("token_ids", "sequence_ids", "position_ids"),
                                      ("target_ids", "decoder_sequence_ids", "decoder_position_ids"))):  # fmt: skip
            parts = [pair[side] for pair in texts]
            numbers = [number for number, part in enumerate(parts, 1) for _ in part]
            wanted = sum(parts, []), numbers, [position for part in parts for position in range(len(part))]
            for name, values in zip(names, wanted):
                found = batch[name][row]
                np.testing.assert_array_equal(found, values + [0] * (len(found) - len(values)), err_msg=name)
        inputs = sum(([0] + target[:-1] for _, target in texts), [])
        np.testing.assert_array_equal(batch["decoder_token_ids"][row][: len(inputs)], inputs)


def test_all_files_give_the_same_pairs(tmp_path):
    lines = [json.dumps({"target": target, "source": source, "id": 7}) for source, target in PAIRS]
    plain = table(tmp_path / "plain.tsv")
    table(tmp_path / "header.tsv", header=True)
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    checksums = set()
    for number, file in enumerate(sorted(tmp_path.iterdir())):
        manifest = write(file, tmp_path / str(number), TOKENIZER, ShardsConfig(format="text_pairs", sequence_length=16))
        checksums.add(manifest.shards[0].sha256)
    assert len(checksums) == 1


@pytest.mark.parametrize(("name", "text", "message"), [
    ("a.tsv", "w1\tw2\nw3\n", "a.tsv:2: 1 column instead of 2; a line is the source, a tab and the target"),
    ("a.tsv", "w1\tw2\tw3\n", "a.tsv:1: 3 columns instead of 2"),
    ("a.tsv", "w1\tw2\n\nw1\t \n", "a.tsv:3: the target is empty; remove the line"),
    ("a.jsonl", '{"source": "w1"}\n', r"a.jsonl:1: no field 'target'; known: source; a line is "),
    ("a.jsonl", '{"source": "w1", "target": 3}\n', "a.jsonl:1: the field 'target' is int, not a string"),
    ("a.jsonl", '{"source": "w1", "target": "w\\u0000"}\n', r"a.jsonl:1: the target holds the character U\+0000"),
    ("a.txt", "w1\tw2\n", r"a.txt: text_pairs are read from .tsv \(source<TAB>target\) and .jsonl"),
])  # fmt: skip
def test_damaged_files(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        write(tmp_path / name, tmp_path / "out", TOKENIZER, ShardsConfig(format="text_pairs"))


def test_settings_that_contradict_each_other():
    with pytest.raises(
        ConfigError, match="target_length does not apply to the format segment_pair, only to text_pairs"
    ):
        ShardsConfig(target_length=8)
    with pytest.raises(ConfigError, match="text_field does not apply to the format text_pairs"):
        ShardsConfig(format="text_pairs", text_field="body")


def test_the_baseline_guesses_targets(tmp_path):
    rows = [("w1 w1 w1", "w2 w3")] * 16
    _, reader, _ = written(tmp_path, rows, pack_pairs=False)
    found = unigram(reader.dataset(16, seed=0, epochs=1), TOKENIZER)
    assert found["masked_lm_loss"] == pytest.approx(np.log(2))
    assert found["tokens_per_example"] == 4 + 3


def test_commands(tmp_path, capsys):
    table(tmp_path / "a.tsv")
    TOKENIZER.save(tmp_path / "tokenizer")
    shards = ["shards", str(tmp_path / "a.tsv"), "--tokenizer", str(tmp_path / "tokenizer"), "--format", "text_pairs"]
    assert main([*shards, "--output", str(tmp_path / "out"), "--sequence-length", "24"]) == 0
    assert "40 pairs; truncated: sources 0 (0.0 %), targets 0 (0.0 %)" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "out"), "--objective", "text_to_text", "--examples", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    first = packed_port(PAIRS, 24, 24)[0]
    assert f"pairs in this row: {len(first)}" in shown
    assert "writes " + " ".join(TOKENIZER.id_to_token(i) for _, target in first for i in target) in shown
