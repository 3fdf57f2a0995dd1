"""An LSTM language model from text to a classifier: pretraining, generation, scoring, fine-tuning."""

import numpy as np
import pytest
from opened import task_and_model

import bert_tf
from bert_tf import config
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer
from bert_tf.tokenizers import train_words
from bert_tf.training.finetuning import FinetuneConfig, finetune
from bert_tf.training.pretraining import PretrainConfig, pretrain
from tfrecords import ShardsConfig, write_shards


@pytest.mark.slow
def test_the_whole_road(tmp_path):
    text = "the good film was fine . the bad film was awful . "
    (tmp_path / "corpus.txt").write_text("\n\n".join([text * 4] * 8))
    tokenizer = train_words([text], 40)
    shards = ShardsConfig(sequence_length=16, format="token_blocks")
    write_shards(tmp_path / "corpus.txt", tmp_path / "shards", tokenizer, shards, workers=1)
    run, metrics = pretrain(config.build(PretrainConfig, {
        "model": {"family": "lstm_lm", "hidden_size": 16, "embedding_size": 12, "embedding_dropout": 0.2},
        "data": {"shards": str(tmp_path / "shards")},
        "objective": {"name": "causal_lm", "sampled_softmax": 10, "documents": {"separate": True}},
        "optimizer": {"learning_rate": 0.03},
        "train": {"steps": 400, "batch_size": 8, "log_every": 20, "strategy": "one"},
    }), tmp_path / "run")  # fmt: skip
    assert metrics["causal_lm_loss"] < run.metrics()[0]["causal_lm_loss"]
    opened = bert_tf.load(run.path)
    model, tokenizer = opened.backbone, opened.tokenizer
    (answer,) = TextGenerator(model, tokenizer)(["the bad film"], GenerationConfig(max_new_tokens=2))[0]
    assert answer.text.split() == ["was", "awful"]
    scores = TextScorer(model, tokenizer)
    texts = ("the good film was fine .", "film the . fine was good")
    likely, unlikely = (scores.perplexity([text]).per_token for text in texts)
    assert likely < unlikely

    rows = [f"the {word} film\t{label}" for word, label in (("good", 1), ("bad", 0))] * 8
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    finetune(config.build(FinetuneConfig, {
        "init_from": str(run.path), "task": {"sequence_length": 8, "decoder": {"linear_gain": True}, "head": {"dropout": 0.0}},
        "data": {"train": str(tmp_path / "a.tsv"), "dev": str(tmp_path / "a.tsv")},
        "optimizer": {"learning_rate": 0.02}, "train": {"epochs": 40, "batch_size": 8, "strategy": "one"},
    }), tmp_path / "task")  # fmt: skip
    task, fine_tuned = task_and_model(tmp_path / "task")
    assert [answer["label"] for answer in task.predict(fine_tuned, ["the good film", "the bad film"])] == ["1", "0"]
    assert fine_tuned.head.hidden.units == 512
    # The output layer is kept as it was pretrained, for an auxiliary loss and for generation.
    np.testing.assert_array_equal(fine_tuned.backbone.output_layer.kernel, model.output_layer.kernel)
