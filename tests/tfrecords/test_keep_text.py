"""Text kept as it is: what a shard's tokens decode to is the corpus, byte for byte."""

import gzip
import json

import numpy as np
import pytest
from test_writer import write

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import train_byte_level_bpe
from tfrecords import CorpusConfig, ShardReader, ShardsConfig

CODE = 'def f(x):\n\tif x:\n        return "a  b"   \n\n\n    # Größe: 世界\r\n    return None\n'
TEXTS = [CODE, "  Leading spaces.\n\nA blank line between.\n", "no line end", "\n\n\tonly indented"]
OPTIONS = {"format": "token_blocks", "sequence_length": 16, "keep_text": True}


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_level_bpe(TEXTS * 3, 300, normalization=None, layout="none")


def stream(folder, tokenizer):
    """The documents that the shards hold, as token ids: list of lists."""
    batch = ShardReader(folder, tokenizer).examples(range(ShardReader(folder, tokenizer).num_examples))
    ids = batch["token_ids"].numpy()[batch["padding_mask"].numpy()]
    return [part.tolist() for part in np.split(ids, np.flatnonzero(ids == tokenizer.sep_id))]


def without_separator(documents, tokenizer):
    return [[i for i in ids if i != tokenizer.sep_id] for ids in documents]


def as_files(folder):
    for number, text in enumerate(TEXTS):
        (folder / f"{number}.txt").write_bytes(text.encode())


def as_json(folder):
    with gzip.open(folder / "all.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in TEXTS)


@pytest.mark.parametrize("as_corpus", [as_files, as_json])
def test_documents_come_back_byte_for_byte(as_corpus, tokenizer, tmp_path):
    (tmp_path / "corpus").mkdir()
    as_corpus(tmp_path / "corpus")
    write(tmp_path / "corpus", tmp_path / "shards", tokenizer, ShardsConfig(**OPTIONS))
    documents = without_separator(stream(tmp_path / "shards", tokenizer), tokenizer)
    assert documents == [tokenizer.encode(text) for text in TEXTS]
    assert [tokenizer.decode(ids) for ids in documents] == TEXTS


def test_a_document_that_is_cut_has_the_tokens_of_the_whole(tokenizer, tmp_path):
    """Parts of 1 KiB, in several shards: no separator and no other token is where the text was cut."""
    text = "\n".join(f"{' ' * (i % 9)}word{i} {'x' * (i % 5)}\t= {i}  " for i in range(600))
    (tmp_path / "a.txt").write_bytes(text.encode())
    manifest = write(tmp_path / "a.txt", tmp_path / "shards", tokenizer, ShardsConfig(**OPTIONS, shard_bytes=1 << 12))
    assert len(manifest.shards) > 2 and manifest.counts["documents"] == 1
    (ids,) = stream(tmp_path / "shards", tokenizer)
    assert ids == tokenizer.encode(text) and tokenizer.decode(ids) == text


def test_each_line_of_a_file_may_be_a_document(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"  one \r\n\ttwo\n")
    config = ShardsConfig(**OPTIONS, one_document_a_line=True)
    write(tmp_path / "a.txt", tmp_path / "shards", tokenizer, config)
    documents = without_separator(stream(tmp_path / "shards", tokenizer), tokenizer)
    assert [tokenizer.decode(ids) for ids in documents] == ["  one ", "\ttwo"]


def test_formats_that_need_sentences_refuse_it():
    with pytest.raises(ConfigError, match="segment_pair needs their sentences; use one of the formats full_sentences,"):
        ShardsConfig(keep_text=True)
    with pytest.raises(ConfigError, match="sentences=lines splits documents"):
        CorpusConfig(keep_text=True, sentences="lines")
