"""Words to sequences: which piece carries the tag, and how sentences that are too long are cut."""

import numpy as np
import pytest
import tensorflow as tf
import tiny

from bert_tf.tasks import Examples, build_task
from bert_tf.tasks.tagging.sequences import cut_sequences, words_of_sentences, words_of_texts
from bert_tf.tokenizers import train_bpe, train_byte_level_bpe, train_unigram
from bert_tf.tokenizers.kinds import trainers
from bert_tf.tokenizers.layout import build_layout
from bert_tf.tokenizers.ops.word_spans import find_word_spans

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def tokens(tokenizer, ids):
    return [tokenizer.id_to_token(i) for i in ids]


def test_the_first_piece_carries_the_tag(tokenizer):
    words = ["Anna", "Johnson", "'s", "film", "in", "Bertville", "\x00"]
    tagged = {"words": [words], "tags": [["B-PER", "I-PER", "O", "O", "O", "B-LOC", "I-LOC"]]}
    task, examples = tiny.learned(tagged, kind="tagging", labels=LABELS, sequence_length=16)
    (features,) = task.dataset(examples, 4)
    # "'s" is two words to the tokenizer, and "\x00" none.
    assert tokens(tokenizer, features["token_ids"].numpy()[0]) == [
        "[CLS]", "anna", "john", "##son", "'", "[UNK]", "film", "in", "bert", "##ville", "[UNK]", "[SEP]",
        "[PAD]", "[PAD]", "[PAD]", "[PAD]",
    ]  # fmt: skip
    np.testing.assert_array_equal(features["label_weights"][0], [0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(features["labels"][0], [0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0])


def test_long_sentences_are_cut_between_words(tokenizer):
    words = ["anna", "johnson", "film", "johnsons", "in", "anna"]  # 1, 2, 1, 3, 1, 1 pieces
    pieces = words_of_sentences(tokenizer, [["film"], words])
    rows = cut_sequences(pieces, 6, tokenizer.layout, labels=[[9], [0, 1, 2, 3, 4, 5]])
    assert [tokens(tokenizer, row) for row in rows.first.to_list()] == [
        ["film"], ["anna", "john", "##son", "film"], ["john", "##son", "##s", "in"], ["anna"],
    ]  # fmt: skip
    assert rows.owners == [0, 1, 1, 1]
    np.testing.assert_array_equal(rows.lengths, [3, 6, 6, 3])
    assert [heads.tolist() for heads in rows.tagged_pieces] == [[1], [1, 2, 4], [1, 4], [1]]
    assert rows.labels.to_list() == [[9], [0, 1, 0, 2], [3, 0, 0, 4], [5]]
    assert rows.weights.to_list() == [[1], [1, 1, 0, 1], [1, 0, 0, 1], [1]]


def test_a_word_longer_than_a_row_keeps_its_first_pieces(tokenizer):
    (words,) = words_of_sentences(tokenizer, [["johnsonsonson", "film"]])
    rows = cut_sequences([words], 5, tokenizer.layout)
    assert [tokens(tokenizer, row) for row in rows.first.to_list()] == [["john", "##son", "##son"], ["film"]]


def check_words(tokenizer, expected):
    """That the words of each text are slices of it, with a piece each."""
    for (text, wanted), words in zip(expected.items(), words_of_texts(tokenizer, list(expected)), strict=True):
        assert [text[start:end] for start, end in zip(words.starts, words.ends)] == wanted
        assert len(words.pieces) == len(wanted) and all(words.pieces)


def test_words_of_raw_text_are_slices_of_it(tokenizer):
    words = {
        "The film, in London.": "The film , in London .", "  Ännä\u3000Johnsonson\t—x 北京": "Ännä Johnsonson — x 北 京",
        # The tokenizer drops an accent that is a character of its own; the word keeps it.
        "e\u0301 Anna 😀 Paris's": "e\u0301 Anna 😀 Paris ' s", "[MASK]Johnson": "[MASK] Johnson", "": "", " \n": "",
    }  # fmt: skip
    check_words(tokenizer, {text: of_text.split() for text, of_text in words.items()})


CORPUS = ["The film, it is in London (near Paris): a film of Anna's, a film."] * 4
TRAINERS = {"byte_level_bpe": train_byte_level_bpe, "bpe": train_bpe, "unigram": train_unigram}


@pytest.fixture(scope="module", params=TRAINERS)
def other_tokenizer(request):
    """Tokenizers that do not part punctuation from words, or do not show where words begin."""
    return TRAINERS[request.param](CORPUS, 300 if request.param == "byte_level_bpe" else 60)


def test_words_of_raw_text_are_the_same_for_every_tokenizer(other_tokenizer):
    expected = {
        "The film, in London.": ["The", "film", ",", "in", "London", "."],
        "  film  in (Paris)\t— a ": ["film", "in", "(", "Paris", ")", "—", "a"], "": [], " \n": [],
    }  # fmt: skip
    check_words(other_tokenizer, expected)
    text = next(iter(expected))  # and by white space alone
    _, places = find_word_spans(
        other_tokenizer, tf.constant([text]), *other_tokenizer.tokenize_with_offsets([text]), False
    )
    assert [text[start:end] for start, end in places.numpy()] == text.split()


@pytest.mark.parametrize("name", trainers())
def test_words_have_the_same_tokens_as_a_list_and_as_a_text(name):
    # Words of unknown letters, whose space is a token of its own ("▁", "Ġ"), in front of the text and in it.
    size = {"byte_level_bpe": 290, "byte_level_bpe_gpt2": 290, "unigram_t5": 150}.get(name, 60)
    tokenizer = trainers()[name].train(CORPUS, size)
    sentences = [["xu", "met", "film", "in", "Oslo", "."], ["xé", "in"], ['"', "q", "(", "12", ",", "😀"], []]
    texts = [" ".join(sentence) for sentence in sentences]
    for around in (str, lambda text: f"\n {text.replace(' ', chr(0x3000) + chr(9))}  "):
        texts = list(map(around, texts))
        for sentence, text, given, found in zip(
            sentences, texts, words_of_sentences(tokenizer, sentences), words_of_texts(tokenizer, texts), strict=True
        ):
            assert [text[start:end] for start, end in zip(found.starts, found.ends)] == sentence
            assert found.pieces == given.pieces
            assert (found.starts, found.ends) == (given.starts, given.ends) or around is not str
            assert sum(given.pieces, []) == tokenizer.encode(" ".join(sentence))


def test_text_that_is_no_utf8_does_not_stop_a_tagger(other_tokenizer):
    texts = [b"film \xff\xfe in\xc3", b"\xc3 film\xe2\x82 ", b"\xed\xa0\x80 b c", b"\x80\x80\x80\x80 film in", b""]
    text = tf.constant(texts)
    ids, starts, ends = other_tokenizer.tokenize_with_offsets(text)
    begins, places = find_word_spans(other_tokenizer, text, ids, starts, ends)
    assert begins.shape == ids.values.shape and places.shape == (int(tf.reduce_sum(tf.cast(begins, tf.int32))), 2)
    (words,) = words_of_texts(other_tokenizer, ["\ud800 film in"])  # as JSON can spell it
    assert (words.starts[-2:], words.ends[-2:]) == ([2, 7], [6, 9])


def test_what_a_tokenizer_drops_parts_no_word(other_tokenizer, tokenizer):
    texts = ["مُهَنْدِسٌ كبير", "अन्तर्राष्ट्रीय में", "re\u0301publiques re\u0301sume\u0301", "non\u200djoin film"]
    for each in (other_tokenizer, tokenizer):
        check_words(each, {text: text.split() for text in texts})


def test_long_texts_are_found_in_linear_time(tokenizer):
    words = ["film"] * 200_000
    (found,) = words_of_texts(tokenizer, [" ".join(words)])
    assert len(found.pieces) == len(words) and found.ends[-1] == 5 * len(words) - 1


def test_spans_of_given_words_are_slices_of_them_joined(tokenizer):
    sentence = ["New York", "is", "ὄ😀"]
    (words,) = words_of_sentences(tokenizer, [sentence])
    text = " ".join(sentence)
    assert [text[start:end] for start, end in zip(words.starts, words.ends)] == sentence


def test_an_empty_text_is_a_row_without_words(tokenizer):
    rows = cut_sequences(words_of_texts(tokenizer, ["", "film"]), 8, tokenizer.layout)
    assert rows.first.row_lengths().numpy().tolist() == [0, 1]
    task = build_task({"kind": "tagging", "labels": LABELS, "sequence_length": 16}, tokenizer)
    model = task.model(tiny.encoder())
    empty, film = task.predict(model, ["", "film"])
    assert empty == {"text": "", "words": [], "entities": []}
    assert len(film["words"]) == 1


def test_every_word_of_a_long_text_gets_a_tag_and_every_label_is_scored(tokenizer):
    task = build_task({"kind": "tagging", "labels": LABELS, "sequence_length": 16}, tokenizer)
    model = task.model(tiny.encoder())
    text = "Anna Johnson met Bert , " * 20
    (answer,) = task.predict(model, [text])
    assert [word["word"] for word in answer["words"]] == text.split()
    examples = Examples(words=[text.split()], labels=[["O"] * 100])
    scores = [task.evaluate(model, examples, batch_size) for batch_size in (1, 3, 100)]
    assert scores[0]["words"] == 100
    for other in scores[1:]:
        assert other == pytest.approx(scores[0], rel=1e-5)


def test_the_frame_of_a_row_is_the_tokenizers(tokenizer):
    # XLNet: nothing before the text, <sep> and <cls> behind it.
    words = words_of_sentences(tokenizer, [["film", "anna", "film"]])
    rows = cut_sequences(words, 4, build_layout("xlnet", 2, 3), labels=[[7, 8, 9]])
    assert [heads.tolist() for heads in rows.tagged_pieces] == [[0, 1], [0]]
    np.testing.assert_array_equal(rows.lengths, [4, 3])
    assert rows.labels.to_list() == [[7, 8], [9]]
