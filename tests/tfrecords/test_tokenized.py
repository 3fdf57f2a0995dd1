"""A corpus kept as tokens: the same shards as from its text, in every format, without tokenizing again."""

import json

import numpy as np
import pytest
from test_writer import SMALL, VOCABULARY, contents, documents, examples, write, write_text

from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.tokenizers import WordPieceTokenizer
from tfrecords.corpus.tokens import DocumentTokenizer
from tfrecords.reading.reader import ShardReader
from tfrecords.shards import schema
from tfrecords.shards.config import CorpusConfig, ShardsConfig
from tfrecords.shards.manifest import Manifest
from tfrecords.writing.jobs import TokenJob
from tfrecords.writing.statistics import report
from tfrecords.writing.writer import tokenize_corpus, write_shards

CORPUS = CorpusConfig(shard_bytes=SMALL.shard_bytes)
FORMATS = [
    ("segment_pair", "nsp"), ("segment_pair", "none"), ("sentence_pair", "sop"), ("electra", "none"),
    ("full_sentences", "none"), ("doc_sentences", "none"), ("token_blocks", "none"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("corpus") / "corpus.txt", documents(300))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory, corpus, tokenizer):
    folder = tmp_path_factory.mktemp("tokens") / "tokens"
    tokenize_corpus(corpus, folder, tokenizer, CORPUS, workers=1, progress=False)
    return folder


def config(format, pair=None, **settings):
    defaults = {"sequence_length": 32, "shard_bytes": SMALL.shard_bytes}
    return ShardsConfig(**defaults | {"format": format, "pair_task": pair} | settings)


@pytest.mark.parametrize("format, pair", FORMATS)
def test_shards_are_the_same_as_from_text(tmp_path, corpus, tokens, tokenizer, monkeypatch, format, pair):
    direct = write(corpus, tmp_path / "direct", tokenizer, config(format, pair))
    with monkeypatch.context() as patch:
        patch.setattr(DocumentTokenizer, "__call__", lambda *_: pytest.fail("tokenized again"))
        large = config(format, pair, shard_bytes=4 << 20)
        packed = write_shards(tokens, tmp_path / "packed", config=large, workers=1, progress=False)
    assert contents(tmp_path / "direct") == contents(tmp_path / "packed")
    assert packed == direct and packed.pair_task == pair and packed.corpus[0]["file"] == "corpus.txt"

    labels, lengths, pairs = [], [], 0
    for first, second, label in examples(tmp_path / "packed", tokenizer.vocabulary_size):
        labels.append(label)
        pairs += bool(second)
        lengths.append(len(first) + len(second) + (3 if second else 2))
        assert label == schema.NO_PAIR or second
        assert not second or format.endswith("pair") or format == "electra"
    counts = packed.counts
    assert counts["example_tokens"] == sum(lengths)
    assert counts["without_pair"] == labels.count(schema.NO_PAIR)
    assert counts["random_next"] == (labels.count(1) if pair == "nsp" else 0)
    assert counts["next"] == (labels.count(0) if pair == "nsp" else 0)
    assert 0 < counts["random_next_ends"] < counts["random_next"] or pair != "nsp"
    assert counts["exchanged"] == (labels.count(1) if pair == "sop" else 0)
    assert counts["in_order"] == (labels.count(0) if pair == "sop" else 0)
    assert counts["two_segments"] == pairs and bool(pairs) == (format in ("segment_pair", "sentence_pair", "electra"))
    assert counts["lone_segments"] == (len(labels) - pairs if pairs else 0)
    # The reader says where something is asked.
    batch = ShardReader(tmp_path / "packed", tokenizer).examples(range(len(labels)))
    if pair == "none":  # where nothing is, a model with a pair head is to stop
        assert "pair_weights" not in batch and "pair_labels" not in batch
    else:
        np.testing.assert_array_equal(batch["pair_weights"], [label != schema.NO_PAIR for label in labels])
    assert Manifest.load(tmp_path / "packed").pair_task == pair


def test_two_workers_and_an_interruption_give_the_same_bytes(tmp_path, corpus, tokens, tokenizer, monkeypatch):
    tokenize_corpus(corpus, tmp_path / "two", tokenizer, CORPUS, workers=2, progress=False)
    assert contents(tmp_path / "two") == contents(tokens)
    call = TokenJob.write
    with monkeypatch.context() as patch:
        patch.setattr(TokenJob, "write", lambda s, chunk: pytest.fail("stop") if chunk.index == 3 else call(s, chunk))
        with pytest.raises(pytest.fail.Exception):
            tokenize_corpus(corpus, tmp_path / "broken", tokenizer, CORPUS, workers=1, progress=False)
    assert not (tmp_path / "broken" / "tokens.json").exists()
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "broken").glob("tokens-*.npz")}
    tokenize_corpus(corpus, tmp_path / "broken", tokenizer, CORPUS, workers=1, progress=False)
    assert len(kept) == 3 and all(p.stat().st_mtime_ns == at for p, at in kept.items())
    assert contents(tmp_path / "broken") == contents(tokens)


def test_refusals(tmp_path, corpus, tokens, tokenizer):
    with pytest.raises(ConfigError, match="'sentences' is 'lines', but .* was tokenized with 'auto'"):
        write_shards(tokens, tmp_path / "out", config=ShardsConfig(sentences="lines"))
    with pytest.raises(ConfigError, match="was tokenized with another tokenizer"):
        write_shards(tokens, tmp_path / "out", WordPieceTokenizer([*VOCABULARY, "extra"]))
    with pytest.raises(ConfigError, match="a corpus of text needs a tokenizer"):
        write_shards(corpus, tmp_path / "out")
    with pytest.raises(RunDirectoryError, match="holds a tokenized corpus, not shards"):
        write_shards(tokens, tokens)
    with pytest.raises(RunDirectoryError, match=r"finished token files with other settings \(shard_bytes: 8192 there"):
        tokenize_corpus(corpus, tokens, tokenizer)


def test_damage_is_found(tmp_path, corpus, tokenizer):
    folder = tmp_path / "tokens"
    tokenize_corpus(corpus, folder, tokenizer, CORPUS, workers=1, progress=False)
    data = bytearray((folder / "tokens-00002.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "tokens-00002.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"tokens-00002\.npz is damaged: its checksum is not that in tokens\.json"):
        write_shards(folder, tmp_path / "out", config=SMALL, workers=1, progress=False)
    (folder / "tokens-00002.npz").unlink()
    with pytest.raises(DataError, match=r"cannot read .*tokens-00002\.npz: No such file"):
        write_shards(folder, tmp_path / "out", config=SMALL, workers=1, progress=False)
    values = json.loads((folder / "tokens.json").read_text())
    for change, message in (
        (lambda v: v.update(version=9), "has version 9, this library reads 1"),
        (lambda v: v.pop("files"), "is not a file that this library wrote: missing key 'files'; tokenize the corpus"),
        (lambda v: v["files"][0].update(file="../x.npz"), r"'files\[0\].file' is '../x.npz'; it must be the name of"),
        (lambda v: v.update(counts=v["counts"] | {"tokens": 1}, checksum="0"), "was changed since it was written"),
    ):
        changed = json.loads(json.dumps(values))
        del changed["checksum"]
        change(changed)
        (folder / "tokens.json").write_text(json.dumps(changed))
        with pytest.raises(DataError, match=message):
            write_shards(folder, tmp_path / "out", config=SMALL)


@pytest.mark.parametrize("settings, message", [
    (dict(format="full_sentences", pair_task="nsp"), "full_sentences makes examples of one; use segment_pair"),
    (dict(format="doc_sentences", pair_task="sop"), "pair_task: sop asks about two segments"),
    (dict(format="doc_sentences", duplicates=2), "duplicates > 1 would write the same examples again: doc_sentences"),
    (dict(format="sentence_pair", pair_task="none", duplicates=2), "duplicates > 1 would write the same"),
    (dict(format="electra", pair_task="nsp"), "pair_task: nsp asks about two segments, and electra has no label of"),
    (dict(format="full_sentences", short_sequence_probability=0.2), "makes no examples of a shorter length"),
    (dict(pair_task="nspp"), "'pair_task' is 'nspp'; did you mean 'nsp'"),
])  # fmt: skip
def test_senseless_formats_are_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        ShardsConfig(**settings)
    assert message in str(caught.value)


def test_short_examples_and_lone_sentences_are_reported(tmp_path, tokenizer):
    lone = write_text(tmp_path / "lone.txt", [text.split("\n")[0] for text in documents(200)])
    for format, pair, warned in (("segment_pair", "sop", True), ("doc_sentences", None, False)):
        manifest = write(lone, tmp_path / format, tokenizer, config(format, pair, sequence_length=64))
        lines = "\n".join(report(manifest.counts, 64))
        fill = manifest.counts["tokens_per_example"] / 64
        assert f"a batch of {1 / fill:.1f} times as many" in lines
        warning = "100 % of the examples have one segment, since their documents are short (1.0 sentences"
        assert (warning in lines) == warned
