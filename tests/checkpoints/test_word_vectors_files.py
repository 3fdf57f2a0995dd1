"""Files of word vectors: as gensim writes them, round trips, and files that are damaged."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.formats import VECTOR_FILES
from bert_tf.checkpoints.word_vectors import read_vectors, write_vectors
from bert_tf.cli.main import main
from bert_tf.errors import DataError, RunDirectoryError

GOLDEN = Path(__file__).parent.parent / "fixtures" / "word_vectors"
WORDS = ["the", "café", "한국"]
VECTORS = np.load(GOLDEN / "vectors.npy")


def test_files_of_gensim_are_read_and_binary_is_written_byte_for_byte_as_there(tmp_path):
    for name in ("gensim.txt", "gensim.bin", "gensim_glove.txt"):
        words, vectors = read_vectors(GOLDEN / name)
        assert words == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)
    write_vectors(tmp_path / "ours.bin", WORDS, VECTORS, "word2vec_binary")
    ours, theirs = ((path).read_bytes().replace(b"\n", b"") for path in (tmp_path / "ours.bin", GOLDEN / "gensim.bin"))
    assert ours == theirs  # word2vec.c ends each word with a line end, gensim does not always


@pytest.mark.parametrize("format", VECTOR_FILES)
def test_round_trip(format, tmp_path):
    extremes = np.array([[1e-38, -3.4e38], [1 / 3, 16777217], [0, -0.0]], np.float32)
    write_vectors(tmp_path / "vectors", ["a", "b.c", "</s>"], extremes, format)
    words, vectors = read_vectors(tmp_path / "vectors")
    assert words == ["a", "b.c", "</s>"]
    np.testing.assert_array_equal(vectors, extremes)
    with pytest.raises(RunDirectoryError, match="exists already"):
        write_vectors(tmp_path / "vectors", ["a"], extremes[:1], format)


def test_words_with_spaces_are_read_and_not_written(tmp_path):
    (tmp_path / "glove.txt").write_text("the 1 2\n. . . 3 4\n")  # as in glove.840B
    assert read_vectors(tmp_path / "glove.txt")[0] == ["the", ". . ."]
    with pytest.raises(DataError, match="'. . .' cannot be written"):
        write_vectors(tmp_path / "out", [". . ."], np.ones((1, 2)), "glove")


HEAD = b"2 2\n"
ROW = np.float32([1, 2]).tobytes()


@pytest.mark.parametrize("content, message", [
    (b"", "holds no word vectors"),
    (b"\x00\x01\x02", "holds no word vectors"),
    (b"\x1f\x8b\x08", "compressed with gzip"),
    (b"a 1 2\nb 1\n", "line 2: 1 numbers after the word, but the first line says 2"),
    (b"a 1 2\nb 1 2 3\nc d\n", "line 3: 1 numbers"),
    (b"a 1 2\nb 1 x\n", "line 2: 'x' is not a number"),
    (b"a 1 2\nb 1 nan\n", "line 2: the vector of 'b' has a number that is not finite"),
    (b"a 1 2\nb 1 2\na 3 4\n", "line 3: 'a' stands twice, first in line 1"),
    (b"a 1 2\n\xff\xfe 1 2\n", "line 2: the word is not UTF-8"),
    (HEAD + b"a 1 2\n", "promises 2 words, but 1 follow"),
    (HEAD + b"a 1 2\na 1 2\n", "line 3: 'a' stands twice, first in line 2"),
    (b"9999999999 300\n" + b"x", "line 1: 9,999,999,999 words"),
    (b"99999999 300\nxyz", "is truncated or damaged"),
    (HEAD + b"a " + ROW + b"\nb " + ROW[:7], "is truncated or damaged"),
    (HEAD + b"a " + ROW + b"\n" + b"b" * 20, "the file ends, or there is no word"),
    (HEAD + b"a " + ROW + b"\na " + ROW, "word 2 of 2 .*: 'a' stands twice, first as word 1"),
    (HEAD + b"a " + ROW + b"\n\xff " + ROW, "word 2 of 2 .* is not UTF-8"),
    (HEAD + b"a " + np.float32([1, np.inf]).tobytes() + b"\nb " + ROW, "word 1 of 2 .* not finite"),
    (HEAD + b"a " + ROW + b"\nb " + ROW + b"\nc " + ROW, "bytes after the last of its 2 words"),
])  # fmt: skip
def test_damaged_files(content, message, tmp_path):
    path = tmp_path / "vectors.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        read_vectors(path)
    assert str(path) in str(error.value)


def test_a_run_of_a_file_and_back(tmp_path, capsys):
    run, out = str(tmp_path / "run"), tmp_path / "out.txt"
    assert main(["convert", str(GOLDEN / "gensim.bin"), run]) == 0
    loaded = bert_tf.load(run)
    assert (loaded.family, loaded.tokenizer.vocabulary[5:]) == ("word_vectors", WORDS)
    assert loaded.tokenizer.tokenize(["The CAFÉ 한국 cafe"]).to_list() == [[5, 6, 7, loaded.tokenizer.unk_id]]
    np.testing.assert_array_equal(loaded.encoder.embedding_table, np.concatenate([np.zeros((5, 4)), VECTORS]))
    assert main(["convert", run, str(out), "--to", "word2vec"]) == 0
    assert [line.split()[0] for line in out.read_text().splitlines()] == ["3", *WORDS]
    np.testing.assert_array_equal(read_vectors(out)[1], VECTORS)


def test_special_tokens_of_a_file_and_capital_letters(tmp_path):
    (tmp_path / "v.txt").write_text("Paris 1 2\n[UNK] 3 4\n")
    loaded = bert_tf.load(tmp_path / "v.txt")
    assert not loaded.tokenizer.lowercase and loaded.tokenizer.vocabulary[5:] == ["Paris"]
    np.testing.assert_array_equal(loaded.encoder.embedding_table[1], [3, 4])


@pytest.mark.parametrize("text", ["the 1 2\nlaw 3 4\n", "2 2\nthe 1 2\nlaw 3 4\n"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(text, tmp_path):
    (tmp_path / "vectors.txt").write_text(text, encoding="utf-8-sig")
    words, table = read_vectors(tmp_path / "vectors.txt")
    assert words == ["the", "law"] and table.tolist() == [[1, 2], [3, 4]]
