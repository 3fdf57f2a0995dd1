"""Other versions of texts: what may stand for a word, drawn how often, and the file that holds them."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
from opened import objective_and_tokenizer
from tiny_distillation import BAD, GOOD, REST, make_tokenizer, write_files, write_pretrained

from bert_tf.cli.main import main
from bert_tf.distillation import AugmentConfig, Augmenter, augment_file, augmented_file
from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.objectives import MaskedLM
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.rows.opening import read_dicts
from bert_tf.vectors import WordTable

TOKENIZER = make_tokenizer(["sing", "##er", "##s", ",", "!"])
TEXT = "the good film ,  a Singer!"
#: Words of one token each, none of them a stop word of English.
LONG = " ".join((GOOD + BAD + [noun for noun in REST if len(noun) > 3]) * 2)


@pytest.fixture(scope="module")
def objective():
    keras.utils.set_random_seed(5)
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32, "max_positions": 64}
    config = BertConfig(TOKENIZER.vocabulary_size, **sizes, initializer_range=0.4)
    return MaskedLM(BertEncoder(config, pooler=False))


@pytest.fixture(scope="module")
def augmenter(objective):
    return Augmenter(objective, TOKENIZER, AugmentConfig(copies=3))


@pytest.fixture(scope="module")
def words():
    vectors = np.random.default_rng(1).normal(size=(5, 4)).astype("float32")
    return WordTable(["singer", "actor", "dancer", "good", "film"], vectors, spell=str.lower)


def probable(objective, text, word, count):
    """The tokens that fit best, by one plain call: the text without its word, and the whole text."""
    ids = TOKENIZER.encode(text)
    place = ids.index(TOKENIZER.token_to_id(word))
    hidden = [*ids[:place], TOKENIZER.mask_id, *ids[place + 1 :]]
    row = [TOKENIZER.cls_id, *hidden, TOKENIZER.sep_id, *ids, TOKENIZER.sep_id]
    segments = [0] * (len(ids) + 2) + [1] * (len(ids) + 1)
    features = {"token_ids": np.array([row]), "segment_ids": np.array([segments])}
    features["mask_positions"] = np.array([[place + 1]])
    logits = np.array(objective(features)["masked_lm_logits"])[0, 0]
    best = [TOKENIZER.id_to_token(i) for i in np.argsort(-logits)[:count]]
    return {token for token in best if token[0] not in "#["}


def test_words_are_replaced_by_what_fits(objective, words):
    augmenter = Augmenter(objective, TOKENIZER, AugmentConfig(copies=3000, rate=0.5, candidates=6), words)
    (versions,) = augmenter.versions([TEXT], [(0,)])
    assert len(set(versions)) == len(versions) > 20 and TEXT not in versions
    split = [version.split(" ") for version in versions]
    # The stop words "the" and "a", the comma, two spaces and the mark at the end stay.
    assert {(p[0], p[3], p[4], p[5], p[6][-1]) for p in split} == {("the", ",", "", "a", "!")}
    assert {p[1] for p in split} == probable(objective, TEXT, "good", 6) | {"good"}
    assert {p[2] for p in split} == probable(objective, TEXT, "film", 6) | {"film"}
    # Of several tokens: the nearest vectors, with a capital as the word has one.
    assert {p[6] for p in split} == {"Singer!", "Actor!", "Dancer!", "Good!", "Film!"}
    (without,) = Augmenter(objective, TOKENIZER, AugmentConfig(copies=200, stop_words="none")).versions([TEXT], [(0,)])
    assert without and all(version.endswith("Singer!") for version in without)
    assert {version.split(" ")[0] for version in without} > {"the"}


def test_words_are_replaced_at_the_rate(objective):
    augmenter = Augmenter(objective, TOKENIZER, AugmentConfig(copies=400, rate=0.3, candidates=4))
    (versions,) = augmenter.versions([LONG], [(0,)])
    parts = np.array([version.split(" ") for version in versions])
    changed = expected = variance = 0.0
    for column, word in enumerate(LONG.split(" ")[: len(set(LONG.split(" ")))]):
        fitting = probable(objective, LONG, word, 4)
        p = 0.3 * len(fitting - {word}) / max(len(fitting), 1)  # the word itself may be drawn
        changed += (parts[:, column] != word).sum()
        expected, variance = expected + p * len(versions), variance + p * (1 - p) * len(versions)
    assert abs(changed - expected) < 3 * np.sqrt(variance) and expected > 500


def test_versions_are_a_function_of_the_seed_and_the_key(objective, words):
    texts = [TEXT, LONG, "!", "bad plot"]
    keys = [(i, 0) for i in range(4)]
    first = Augmenter(objective, TOKENIZER, AugmentConfig(copies=5), words).versions(texts, keys)
    assert first[2] == []  # nothing may be replaced
    alone = Augmenter(objective, TOKENIZER, AugmentConfig(copies=5, batch_size=1), words)
    assert [alone.versions([text], [key])[0] for text, key in zip(texts, keys)] == first
    assert alone.versions([LONG], [(1, 1)])[0] != first[1]
    assert Augmenter(objective, TOKENIZER, AugmentConfig(copies=5, seed=1), words).versions(texts, keys) != first


@pytest.mark.parametrize(("family", "text", "first"), [("roberta", "he the a", 20), ("albert", "t a people", 2)])
def test_tokens_that_mark_spaces(family, text, first):
    """Byte-level BPE writes the first word without a space; in it and in SentencePiece a space may be a token of its own."""
    objective, tokenizer = objective_and_tokenizer(Path(__file__).parents[1] / "fixtures" / "checkpoints" / family)
    assert len(tokenizer.encode(text)) == 3 and {"Ġ", "▁"} & set(tokenizer.vocabulary)
    settings = AugmentConfig(copies=300, rate=0.5, candidates=tokenizer.vocabulary_size, stop_words="none")
    augmenter = Augmenter(objective, tokenizer, settings)
    (versions,) = augmenter.versions([text], [(0,)])
    split = [version.split(" ") for version in versions]
    assert len({words[0] for words in split}) > first
    assert all(len(words) == 3 and all(words) for words in split) and "\ufffd" not in "".join(versions)


def test_a_text_that_does_not_fit_twice_stands_alone(objective):
    long = " ".join(["good"] * 70)  # of a model with room for 62
    (versions,) = Augmenter(objective, TOKENIZER, AugmentConfig(copies=50, rate=1.0)).versions([long], [(0,)])
    parts = np.array([version.split(" ") for version in versions])
    assert (parts[:, 62:] == "good").all() and all((parts[:, i] != "good").any() for i in range(62))


def test_wrong_settings_are_refused(objective):
    for wrong in ({"copies": 0}, {"candidates": 1000}, {"rate": 0.0}, {"rate": 1.5}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Augmenter(objective, TOKENIZER, AugmentConfig(**wrong))


@pytest.fixture
def examples(tmp_path):
    (tmp_path / "train.tsv").write_text("what is augmented")
    firsts, seconds = (["good film"] * 70, [f"bad {noun}" for noun in REST] * 11 + ["!"] * 4)
    return Examples(texts=firsts, text_pairs=seconds, labels=["1", "0"] * 35, path=str(tmp_path / "train.tsv"))


def test_a_file_of_pairs(augmenter, examples, tmp_path):
    count = augment_file(augmenter, examples, tmp_path / "out.jsonl", {})
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(rows) == count > 2 * len(examples)
    number, original = -1, None

    def example(i):
        return {"text": examples.texts[i], "text_pair": examples.text_pairs[i], "label": examples.labels[i]}

    for row in rows:
        if number + 1 < len(examples) and row == example(number + 1):
            number, original = number + 1, row
        assert row["label"] == original["label"]
        # One text at a time.
        assert (row["text"] == original["text"]) + (row["text_pair"] == original["text_pair"]) >= 1
    assert number == len(examples) - 1
    with pytest.raises(RunDirectoryError, match="out.jsonl exists already"):
        augment_file(augmenter, examples, tmp_path / "out.jsonl", {})


def test_a_killed_process_is_continued(augmenter, examples, tmp_path, monkeypatch):
    monkeypatch.setattr(augmented_file, "CHUNK", 16)
    augment_file(augmenter, examples, tmp_path / "whole.jsonl", {"seed": 0})
    computed = []

    def killed_in_the_third(*arguments):
        computed.append(arguments)
        if len(computed) == 3:
            raise KeyboardInterrupt
        return Augmenter.versions(augmenter, *arguments)

    monkeypatch.setattr(augmenter, "versions", killed_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        augment_file(augmenter, examples, tmp_path / "out.jsonl", {"seed": 0})
    assert not (tmp_path / "out.jsonl").exists()
    with open(tmp_path / "out.jsonl.partial", "ab") as file:
        file.write(b'[{"text": "half a li')
    monkeypatch.setattr(augmenter, "versions", lambda *a: computed.append(a) or Augmenter.versions(augmenter, *a))
    augment_file(augmenter, examples, tmp_path / "out.jsonl", {"seed": 0})
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert len(computed) == 3 + 2 * 4  # the first 16 examples are not computed again
    assert not (tmp_path / "out.jsonl.partial").exists()
    # What a process with other settings left is begun again.
    (tmp_path / "other.jsonl.partial").write_text('{"seed": 1}\n[]\n')
    augment_file(augmenter, examples, tmp_path / "other.jsonl", {"seed": 0})
    assert (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_process_killed_after_the_file_was_written(augmenter, examples, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt):
            augment_file(augmenter, examples, output, {})
    whole = output.read_bytes()
    augment_file(augmenter, examples, output, {})
    assert output.read_bytes() == whole and not output.with_name("out.jsonl.partial").exists()


def interrupted(path, unlink=Path.unlink, **keywords):
    if path.name.endswith(".partial"):
        raise KeyboardInterrupt
    unlink(path, **keywords)


def test_two_processes_on_one_file(augmenter, examples, tmp_path, monkeypatch):
    def versions(*arguments):
        with pytest.raises(RunDirectoryError, match="out.jsonl.partial is in use by another process"):
            augment_file(augmenter, examples, tmp_path / "out.jsonl", {})
        return Augmenter.versions(augmenter, *arguments)

    monkeypatch.setattr(augmenter, "versions", versions)
    count = augment_file(augmenter, examples, tmp_path / "out.jsonl", {})
    assert count == len((tmp_path / "out.jsonl").read_text().splitlines())


@pytest.mark.slow
def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pretrained(tmp_path / "run")
    write_files(tmp_path)
    vectors = [f"{word} {i % 3} {i % 5}" for i, word in enumerate([*GOOD, *REST])]
    (tmp_path / "vectors.txt").write_text("\n".join(vectors) + "\n")
    common = ["--augment", "run", "--set", "vectors=vectors.txt", "--set", "copies=4"]
    assert main(["distill", "--train", "few.tsv", *common, "--output", "few.jsonl"]) == 0
    assert "examples in few.jsonl, of 24" in capsys.readouterr().out
    read = read_dicts("few.jsonl")
    assert len(read) > 3 * 24 and {row["label"] for row in read} == {"0", "1"}
    bare = ["--unlabelled", "few.tsv", "--set", "stop_words=none", "--output", "bare.jsonl"]
    assert main(["distill", *common, *bare]) == 0
    assert all(json.loads(line).keys() == {"text"} for line in open("bare.jsonl"))
    assert main(["distill", "--train", "texts.txt", *common, "--output", "texts.jsonl"]) == 0
    capsys.readouterr()
    for wrong, message in (
        (["--train", "few.tsv", "--output", "few.tsv"], "must end with .jsonl"),
        (["--train", "few.tsv", "--output", "few.jsonl"], "few.jsonl exists already"),
        (["--train", "few.tsv", "--output", "x.jsonl", "--set", "rate=2"], "'rate' is 2.0; it must be"),
        (["--output", "x.jsonl"], "give --train or --unlabelled"),
        (["--train", "few.tsv", "--output", "x.jsonl", "--teacher", "t"], "remove --teacher"),
    ):
        assert main(["distill", *common, *wrong]) == 1
        assert message in capsys.readouterr().err
