"""The command that trains vocabularies: what is in its way, what is its corpus, what it notes."""

import os

import pytest
from typed_command import error_of, output_of, run

from bert_tf.tokenizers import load_tokenizer


def test_a_tokenizer_in_the_way(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the quick brown fox jumps over the lazy dog " * 9)
    (tmp_path / "b.txt").write_text("pack my box with five dozen liquor jugs " * 9)
    output = tmp_path / "tokenizer"
    run(f"vocab {tmp_path}/a.txt --output {output} --size 100")
    before = load_tokenizer(output).fingerprint
    log = capsys.readouterr().err
    assert "reading  0.000396/0.000396 MB (100 %)" in log and "training the vocabulary (wordpiece)  0:0" in log
    other = f"vocab {tmp_path}/b.txt --output {output} --size 60 --kind bpe"
    assert f"{output} holds a tokenizer; choose another folder, or add --overwrite" in error_of(other)
    assert load_tokenizer(output).fingerprint == before
    run(f"{other} --overwrite")
    assert "vocab.txt" not in os.listdir(output) and load_tokenizer(output).fingerprint != before
    (output / "model.safetensors").write_text("precious")
    assert "holds model.safetensors, which is not of a tokenizer" in error_of(f"{other} --overwrite")
    error = error_of(f"vocab {tmp_path}/a.txt --output {tmp_path}")
    assert f"{tmp_path} is not empty; choose another folder\n" in error


@pytest.mark.parametrize(("kind", "enough"), [("wordpiece", 24), ("unigram", 24), ("words", 7)])
def test_fewer_tokens_than_asked_for_are_noted(tmp_path, kind, enough):
    (tmp_path / "a.txt").write_text("the law of the people\n" * 30)
    for size, noted in ((900, True), (enough, False)):
        printed = output_of(f"vocab {tmp_path}/a.txt --output {tmp_path}/{kind}-{size} --size {size} --kind {kind}")
        assert ("these are fewer than 900" in printed) == noted


@pytest.mark.parametrize("kind", ["wordpiece", "words", "byte_level_bpe", "bpe"])
def test_sentinels(tmp_path, kind):
    (tmp_path / "a.txt").write_text("the law of the people\n" * 30)
    run(f"vocab {tmp_path}/a.txt --output {tmp_path}/{kind} --size 300 --kind {kind} --sentinels 3")
    tokenizer = load_tokenizer(tmp_path / kind)
    assert [tokenizer.id_to_token(i) for i in tokenizer.sentinel_ids] == [f"<extra_id_{i}>" for i in range(3)]
    assert set(tokenizer.sentinel_ids) <= set(tokenizer.special_ids)
    first, second = tokenizer.sentinel_ids[:2]
    assert [i for i in tokenizer.encode("the <extra_id_0> law <extra_id_1>") if i in (first, second)] == [first, second]


def test_sentinels_that_are_there_anyway_or_cannot_be(tmp_path):
    (tmp_path / "a.txt").write_text("the law of the people\n" * 30)
    command = f"vocab {tmp_path}/a.txt --output {tmp_path}/x"
    message = "--sentinels is for wordpiece, words, byte_level_bpe, byte_level_bpe_gpt2 and bpe, not for unigram_t5"
    assert message in error_of(f"{command} --kind unigram_t5 --sentinels 3")
    assert "--sentinels is 10001; it must be at most 10,000" in error_of(f"{command} --sentinels 10001")


def test_a_full_disk_leaves_no_half_of_a_tokenizer(tmp_path, monkeypatch):
    from bert_tf.tokenizers import WordPieceTokenizer

    def half(self, folder):
        (folder / "vocab.txt").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WordPieceTokenizer, "save", half)
    (tmp_path / "a.txt").write_text("the quick brown fox " * 9)
    assert "tokenizer: the disk is full" in error_of(f"vocab {tmp_path}/a.txt --output {tmp_path}/tokenizer --size 100")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_same_command_twice_reads_the_same_corpus(tmp_path, monkeypatch, caplog):
    (tmp_path / "a.txt").write_text("the quick brown fox jumps over the lazy dog " * 9)
    monkeypatch.chdir(tmp_path)
    run("vocab . --output tokenizer --size 100")
    first = load_tokenizer("tokenizer").fingerprint
    assert not caplog.messages
    run("vocab . --output tokenizer --size 100 --overwrite")
    assert load_tokenizer("tokenizer").fingerprint == first
    assert "left out of the corpus: tokenizer (a tokenizer)" in caplog.text


@pytest.mark.parametrize("cased", [False, True])
def test_decomposed_hangul_is_noted(tmp_path, cased):
    text = "모든 국민은 법 앞에 평등하다 이 영화는 정말 재미있었고 배우들의 연기도 훌륭했다 " * 9
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    printed = output_of(f"vocab {tmp_path}/a.txt --output {tmp_path}/tokenizer --size 150 {'--cased' * cased}")
    assert ("--cased keeps whole syllables" in printed) == (not cased)
