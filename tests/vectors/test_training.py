"""From a corpus to a run: vocabulary, resuming, several processes, the run in other commands."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from opened import task_and_model

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, DataError, NonFiniteError, RunDirectoryError
from bert_tf.models.families import build_backbone
from bert_tf.tokenizers import train_words
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning
from bert_tf.training.finetuning import finetune
from bert_tf.training.starting import copy_token_table, new_config
from bert_tf.vectors import GloveConfig, SkipGramConfig, train_vectors
from bert_tf.vectors import training as module
from bert_tf.vectors.corpus import EncodedCorpus, encode
from bert_tf.vectors.vectors_config import VectorsConfig, VectorsTrainConfig, VocabularyConfig
from bert_tf.vectors.word_similarity import WordTable, read_pairs, similarity

SETTINGS = VectorsConfig(
    SkipGramConfig(size=8, epochs=2, window=2, subsample=0), VocabularyConfig(min_count=2),
    VectorsTrainConfig(workers=1, block_words=300),
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    random = np.random.default_rng(0)
    words = [f"{a}{b}" for a in "bdfgk" for b in ("a", "e", "i", "o")]
    lines = [" ".join(words[i] for i in (random.integers(0, 10, 30) + 10 * (n % 2))) for n in range(40)]
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n\n".join(lines) + " Once.\n")
    return path


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    run, metrics = train_vectors(SETTINGS, corpus, tmp_path_factory.mktemp("runs") / "run")
    return run, metrics


def table(run):
    return np.asarray(bert_tf.load(run.path).encoder.embedding_table)


def test_the_vocabulary_is_sorted_by_count(tmp_path):
    texts = ["The cat, the dog.", "The cat saw 한국 한국"]
    assert train_words(texts, 7).vocabulary[5:] == ["the", "cat"]
    cased = train_words(texts, None, lowercase=False, min_frequency=2)
    assert cased.vocabulary[5:] == ["The", "cat", "한국"]
    with pytest.raises(DataError, match="no word is 9 times in the corpus"):
        train_words(texts, None, min_frequency=9)
    encode(texts, cased, tmp_path / "words", row_words=2)
    stored = EncodedCorpus.open(tmp_path / "words", block_words=3)
    assert stored.ids.tolist() == [0, 1, 0, 1, 2, 2] and stored.counts.tolist() == [2, 2, 2]
    assert stored.rows.tolist() == [0, 2, 4, 6]  # a row ends with its document, or after two words
    assert [stored.block(i)[0].tolist() for i in range(stored.num_blocks)] == [[0, 1, 0, 1], [2, 2]]
    assert stored.block(0)[1].tolist() == [0, 0, 1, 1]


def test_the_run(trained):
    run, metrics = trained
    loaded = bert_tf.load(run.path)
    assert loaded.family == "word_vectors" and loaded.tokenizer.vocabulary_size == 25  # "once" is rare
    assert [line["step"] for line in run.metrics()] == [1, 2] and metrics["loss"] < run.metrics()[0]["loss"]
    assert not table(run)[:5].any() and table(run)[5:].all(1).all()
    assert not (run.path / "training").exists()
    ids = loaded.tokenizer.pack(loaded.tokenizer.tokenize(["ba once"]))["token_ids"]
    assert loaded.tokenizer.vocabulary[int(ids[0, 1])] == "ba" and int(ids[0, 2]) == loaded.tokenizer.unk_id


def test_words_of_one_kind_of_text_are_near(corpus, tmp_path):
    skip_gram = SkipGramConfig(size=8, window=4, epochs=40, learning_rate=0.05, subsample=0, update_words=8)
    run, _ = train_vectors(dataclasses.replace(SETTINGS, algorithm=skip_gram), corpus, tmp_path / "run")
    vectors, words = table(run)[5:], bert_tf.load(run.path).tokenizer.vocabulary[5:]
    kinds = np.array([word[0] in "bd" or word in ("fa", "fe") for word in words])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, same = vectors @ vectors.T, kinds[:, None] == kinds
    assert cosines[same & ~np.eye(20, dtype=bool)].mean() > cosines[~same].mean() + 0.5


def test_a_rate_that_is_too_high(corpus, tmp_path):
    settings = dataclasses.replace(SETTINGS, algorithm=dataclasses.replace(SETTINGS.algorithm, learning_rate=1000.0))
    with pytest.raises(NonFiniteError, match="algorithm.learning_rate=1000.0 is too high"):
        train_vectors(settings, corpus, tmp_path / "run")


def test_glove_fits_the_counts(corpus, tmp_path):
    settings = dataclasses.replace(SETTINGS, algorithm=GloveConfig(size=8, window=4, epochs=30, x_max=10))
    run, metrics = train_vectors(settings, corpus, tmp_path / "glove")
    assert metrics["loss"] < run.metrics()[0]["loss"] / 4 and table(run).shape == (25, 8)


def test_a_run_stopped_while_it_is_prepared_resumes(corpus, trained, tmp_path, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "encode", stop)
        with pytest.raises(KeyboardInterrupt):
            train_vectors(SETTINGS, corpus, tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="corpus=.*has text_field 'body', the data of the run had 'text'"):
        train_vectors(SETTINGS, corpus, tmp_path / "run", text_field="body")
    run, _ = train_vectors(SETTINGS, corpus, tmp_path / "run")
    np.testing.assert_array_equal(table(run), table(trained[0]))


def test_after_a_corpus_that_is_too_small_the_folder_is_free(corpus, tmp_path):
    (tmp_path / "words.txt").write_text("one\n\ntwo\n\n" * 5)
    for algorithm in (GloveConfig(size=8), SkipGramConfig(size=8)):
        settings = dataclasses.replace(SETTINGS, algorithm=algorithm)
        with pytest.raises(DataError, match="no document has two words of the vocabulary"):
            train_vectors(settings, tmp_path / "words.txt", tmp_path / "run")
        assert not (tmp_path / "run").exists()
    train_vectors(SETTINGS, corpus, tmp_path / "run")


def test_judged_pairs(tmp_path):
    """Those that cannot be used, and the columns of SimLex."""
    for lines, message in (
        ("a\tb\t1\nc\td\n", "line 2: expected two words and a number"),
        ("a\tb\t1\nc\td\t1_0\n", "line 2: expected two words and a number"),
        ("a,b,1\nb,c,1\n", "all 2 pairs have the score 1"),
    ):
        (tmp_path / "pairs").write_text(lines)
        with pytest.raises(DataError, match=message):
            similarity(WordTable(["a", "b", "c", "d"], np.eye(4, dtype="float32")), tmp_path / "pairs")
    (tmp_path / "s.txt").write_text("word1\tword2\tPOS\tSimLex999\tconc\nold\tnew\tA\t1.58\t2.7\n")
    assert read_pairs(tmp_path / "s.txt") == [("old", "new", 1.58)]


def test_words_are_looked_up_as_the_corpus_was_read(tmp_path):
    (tmp_path / "corpus.txt").write_text("왕이 café 왕이 café one\n" * 10)
    run, _ = train_vectors(SETTINGS, tmp_path / "corpus.txt", tmp_path / "run")
    table = WordTable.load(run.path)
    assert table.words == ["cafe", "왕이", "one"]
    assert [table.find(word) for word in ("왕이", "Café", "one", "two")] == [1, 0, 2, None]
    assert {word for word, _ in table.neighbours("café")} == {"왕이", "one"}


def test_a_killed_run_resumes_bit_for_bit(corpus, trained, tmp_path, monkeypatch):
    often = dataclasses.replace(SETTINGS, train=dataclasses.replace(SETTINGS.train, checkpoint_seconds=1e-9))
    save, calls = module.save_state, []

    def save_and_die(*arguments, **progress):
        save(*arguments, **progress)
        calls.append(progress)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "save_state", save_and_die)
    with pytest.raises(KeyboardInterrupt):
        train_vectors(often, corpus, tmp_path / "run")
    monkeypatch.setattr(module, "save_state", save)
    assert [(call["epoch"], call["block"]) for call in calls] == [(0, 1), (0, 2), (0, 3)]
    run, _ = train_vectors(SETTINGS, corpus, tmp_path / "run")
    np.testing.assert_array_equal(table(run), table(trained[0]))
    assert [line["loss"] for line in run.metrics()] == [line["loss"] for line in trained[0].metrics()]
    assert train_vectors(SETTINGS, corpus, run.path)[1]["step"] == 2  # a finished run returns at once

    larger = dataclasses.replace(SETTINGS, algorithm=dataclasses.replace(SETTINGS.algorithm, size=9))
    with pytest.raises(RunDirectoryError, match="algorithm.size"):
        train_vectors(larger, corpus, run.path)
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text() + "more\n")
    with pytest.raises(RunDirectoryError, match="trained on other data"):
        train_vectors(SETTINGS, other, run.path)


def test_two_processes(corpus, trained, tmp_path):
    two = dataclasses.replace(SETTINGS, train=dataclasses.replace(SETTINGS.train, workers=2))
    run, metrics = train_vectors(two, corpus, tmp_path / "run")
    assert metrics["loss"] == pytest.approx(trained[1]["loss"], rel=0.1)
    assert np.abs(table(run)[5:]).min() > 0


def test_commands(corpus, trained, tmp_path, capsys):
    judged = tmp_path / "pairs.csv"
    judged.write_text("word1,word2,score\nba,be,1\nba,ka,2\nBA,ke,3\nba,nothing,3\n")
    changed = ["algorithm.size=4", "algorithm.epochs=1", "vocabulary.min_count=2"]
    flags = [flag for setting in changed for flag in ("--set", setting)]
    run = str(tmp_path / "run")
    assert main(["vectors", str(corpus), "--output", run, "--workers", "1", "--similarity", str(judged), *flags]) == 0
    printed = capsys.readouterr().out
    assert "25 vectors of 4 numbers" in printed and "of 3 pairs; 1 have a word without a vector" in printed
    nearest = ["probe", "neighbours", run, "--output", f"{run}.html", "--set", "count=3"]
    assert main([*nearest, "ba"]) == 0
    assert "ba" in capsys.readouterr().out
    (cosines,) = json.loads(Path(f"{run}.json").read_text())["model"]["cosines"].values()
    assert len(cosines) == 3 and cosines == sorted(cosines, key=lambda pair: -pair[1])
    assert main([*nearest, "baa"]) == 1
    assert "'baa' has no vector; did you mean 'ba'?" in capsys.readouterr().err


def test_fine_tuning_above_the_vectors(trained, tmp_path):
    rows = ["ba be bi ba\t1", "ka ke ki ka\t0"] * 16
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    settings = {
        "task": {"kind": "classification", "sequence_length": 8}, "init_from": str(trained[0].path),
        "data": {"train": str(tmp_path / "a.tsv"), "dev": str(tmp_path / "a.tsv")},
        "encoder": {"family": "bilstm", "hidden_size": 6, "dropout": 0.0}, "optimizer": {"learning_rate": 0.05},
        "train": {"epochs": 5, "batch_size": 8, "strategy": "one", "trainable": {"freeze": 0}, "xla": False},
    }  # fmt: skip
    summary = finetune(bert_tf.config.build(FinetuneConfig, settings), tmp_path / "task")
    assert summary["dev"]["mean"]["accuracy"] == 1.0
    task, model = task_and_model(tmp_path / "task")
    assert (model.backbone.name, model.backbone.config.embedding_size) == ("bilstm", 8)
    np.testing.assert_array_equal(model.backbone.embedding_table, table(trained[0]))
    assert [answer["label"] for answer in task.predict(model, ["ba be bi ba", "ka ke ki ka"])] == ["1", "0"]


def test_a_transformer_above_the_vectors(trained):
    sizes = {"family": "bert", "num_layers": 1, "num_heads": 2, "intermediate_size": 8}
    source = open_source(trained[0].path)
    encoder = build_backbone(new_config(source, sizes | {"hidden_size": 8}))
    copy_token_table(encoder, source, "encoder")
    np.testing.assert_array_equal(encoder.embedding_table, table(trained[0]))
    with pytest.raises(ConfigError, match=r"is \(25, 8\), that of the new encoder \(25, 4\); set encoder.hidden_size"):
        copy_token_table(build_backbone(new_config(source, sizes | {"hidden_size": 4})), source, "encoder")


def test_settings_that_a_new_encoder_cannot_have():
    def check(**train):
        settings = {"init_from": "run", "data": {"train": "a", "dev": "b"}, "task": {"kind": "classification"}}
        encoder = {"family": "bilstm", "hidden_size": 6}
        check_finetuning(bert_tf.config.build(FinetuneConfig, settings | {"encoder": encoder, "train": train}))

    check(trainable={"freeze": 0})
    with pytest.raises(ConfigError, match="train.dropout is for the encoder of init_from, .*; set encoder.dropout"):
        check(dropout=0.3)
    with pytest.raises(ConfigError, match="random weights, which train.trainable.name=head would keep"):
        check(trainable={"name": "head"})
