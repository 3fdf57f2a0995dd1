"""mT5's tokenizer as published: pieces of bytes, and the sentinels among the pieces; against the `sentencepiece` package."""

import io
import json

import pytest
import sentencepiece
import tensorflow as tf

from bert_tf.tokenizers import load_tokenizer
from bert_tf.tokenizers.sentencepiece.model_file import SPACE, parse_model

KOREAN = [
    "모든 국민은 법 앞에 평등하다.", "대한민국의 주권은 국민에게 있고, 모든 권력은 국민으로부터 나온다.", "누구든지 차별을 받지 아니한다.",
]  # fmt: skip
# Of google/mt5-small, without the paths of its author.
CONFIG = {
    "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "extra_ids": 0, "additional_special_tokens": None,
    "tokenizer_class": "T5Tokenizer", "name_or_path": "google/mt5-small", "sp_model_kwargs": {},
    "special_tokens_map_file": "special_tokens_map.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small model of mT5's form: <pad>, </s>, <unk>, 256 bytes, pieces, ▁<extra_id_99> to ▁<extra_id_0>."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(KOREAN * 20), model_writer=model, vocab_size=340, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        pad_piece="<pad>", byte_fallback=True, hard_vocab_limit=False, num_threads=1, minloglevel=2,
    )  # fmt: skip
    proto = parse_model(model.getvalue())
    for number in reversed(range(100)):
        proto.pieces.add(piece=f"{SPACE}<extra_id_{number}>", score=0.0, type=proto.SentencePiece.USER_DEFINED)
    folder = tmp_path_factory.mktemp("mt5")
    (folder / "spiece.model").write_bytes(proto.SerializeToString())
    (folder / "tokenizer_config.json").write_text(json.dumps(CONFIG))
    return folder


@pytest.fixture(scope="module")
def mt5(folder):
    return load_tokenizer(folder)


def test_korean_there_and_back(mt5, folder):
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    texts = [*KOREAN, "법 앞에 😀 뷁", "<extra_id_0> 국민은 <extra_id_99> 평등하다.", ""]
    ids = mt5.tokenize(tf.constant(texts)).to_list()
    assert ids == model.encode(texts)
    assert mt5.token_to_id("<0xF0>") in ids[3]  # of 😀, which is no piece
    assert [text.decode() for text in mt5.detokenize(tf.ragged.constant(ids, tf.int32)).numpy()] == texts
    assert [mt5.decode(row) for row in ids] == texts
    assert mt5.decode(ids[4], skip_special_tokens=True) == "국민은 평등하다."
    assert mt5.decode(mt5.encode("😀")[:-1]) == "\ufffd"  # bytes that are no character
    assert mt5.pack(mt5.tokenize(KOREAN[:1]), sequence_length=64)["token_ids"][0, len(ids[0])] == 1


def test_the_sentinels_are_the_last_pieces(mt5):
    last = mt5.vocabulary_size - 1
    assert mt5.sentinel_ids == list(range(last, last - 100, -1)) and set(mt5.sentinel_ids) <= set(mt5.special_ids)
    assert not set(mt5.random_ids.tolist()) & set(mt5.sentinel_ids)


def test_it_is_written_as_it_was(mt5, folder, tmp_path):
    mt5.save(tmp_path / "again")
    assert (tmp_path / "again" / "spiece.model").read_bytes() == (folder / "spiece.model").read_bytes()
    again = load_tokenizer(tmp_path / "again")
    assert again.fingerprint == mt5.fingerprint and again.extra_ids == 0
    written = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())
    assert (written["tokenizer_class"], written["extra_ids"]) == ("PreTrainedTokenizerFast", 0)
