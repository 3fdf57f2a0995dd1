"""Special tokens where the tokenizer's layout puts them, from the text to the batch."""

import pytest
from test_writer import VOCABULARY, documents, write, write_text

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import ByteLevelBPETokenizer, WordPieceTokenizer
from bert_tf.tokenizers.bpe.training import train_byte_level_bpe
from bert_tf.tokenizers.layout import build_layout
from tfrecords.config import ShardsConfig
from tfrecords.corpus.tokens import DocumentTokenizer
from tfrecords.reading.reader import ShardReader
from tfrecords.shards.manifest import Manifest

CLS, SEP = 2, 3


class Framed(WordPieceTokenizer):
    """WordPiece with another layout; saved and loaded it would be BERT's again."""

    def __init__(self, layout):
        super().__init__(VOCABULARY)
        self.layout = build_layout(layout, CLS, SEP)


@pytest.mark.parametrize("name, format", [
    ("bert", "electra"), ("roberta", "segment_pair"), ("xlnet", "segment_pair"), ("xlnet", "full_sentences"),
    ("t5", "electra"), ("t5", "full_sentences"),
])  # fmt: skip
def test_batches_are_framed_as_pack_frames_texts(tmp_path, monkeypatch, name, format):
    tokenizer = Framed(name)
    monkeypatch.setattr("tfrecords.shards.jobs.load_tokenizer", lambda _: tokenizer)
    config = ShardsConfig(sequence_length=32, format=format, pair_task="none" if format == "full_sentences" else None)
    manifest = write(write_text(tmp_path / "a.txt", documents(30)), tmp_path / "shards", tokenizer, config)
    layout = tokenizer.layout
    assert Manifest.load(tmp_path / "shards").segment_ids == [0, layout.second_segment, layout.end_segment]
    reader = ShardReader(tmp_path / "shards", tokenizer)
    batch = {name: value.numpy() for name, value in reader.examples(range(manifest.examples)).items()}
    lengths = batch["padding_mask"].sum(1)
    assert lengths.max() == 32 and manifest.counts["example_tokens"] == lengths.sum()
    for ids, segments, length in zip(batch["token_ids"], batch["segment_ids"], lengths):
        assert not ids[length:].any() and not segments[length:].any()
        inner = ids[len(layout.before_first) : length - len(layout.at_end)].tolist()
        # Apart at the separators; across documents full sentences have one of their own.
        texts = [[]]
        for i in inner:
            texts[-1].append(i) if i != SEP else texts.append([])
        texts = [t for t in texts if t]
        if format == "full_sentences":
            texts = [inner[: len(inner) - len(layout.after_first)]]
        frame = [*layout.before_first, *texts[0], *layout.after_first]
        expected = [0] * len(frame)
        if len(texts) == 2:
            frame += [*layout.before_second, *texts[1], *layout.after_second]
            expected += [layout.second_segment] * (len(frame) - len(expected))
        frame += layout.at_end
        expected += [layout.end_segment] * len(layout.at_end)
        assert ids[:length].tolist() == frame and segments[:length].tolist() == expected


def test_full_sentences_need_a_separator(tmp_path, monkeypatch):
    tokenizer = Framed("none")
    tokenizer.sep_id = None
    (tmp_path / "a.txt").write_text("w1 w2.")
    with pytest.raises(ConfigError, match="puts a separator between documents, and the tokenizer has none"):
        write(tmp_path / "a.txt", tmp_path / "out", tokenizer, ShardsConfig(format="full_sentences"))


def test_sentences_of_byte_level_bpe_keep_the_blank_before_them():
    text = "The cat sat. The dog ran! The end."
    tokenizer = train_byte_level_bpe([text] * 20, 300)
    assert isinstance(tokenizer, ByteLevelBPETokenizer) and not tokenizer.add_prefix_space
    tokens = DocumentTokenizer(tokenizer, "split")([text.encode(), b"The end."])
    sentences = [tokens.token_ids[a:b].tolist() for a, b in zip(tokens.sentence_splits, tokens.sentence_splits[1:])]
    assert sum(sentences[:3], []) == tokenizer.encode(text)
    assert sentences[3] == tokenizer.encode("The end.") != sentences[2]
    begins = [not tokenizer.is_continuation[sentence[0]] for sentence in sentences]
    assert begins == [False, True, True, False]
