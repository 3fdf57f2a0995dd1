"""GPT-1's way of fine-tuning: its special tokens, both orders of a pair, and the auxiliary language modelling loss."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny
from opened import task_and_model
from scipy.special import log_softmax

from bert_tf import config as configuration
from bert_tf.errors import ConfigError
from bert_tf.export import ServedClassifier
from bert_tf.models import GPT1Config, GPT1Decoder, GPT2Config, GPT2Decoder
from bert_tf.tasks import TASKS, Classifier, build_task, load_task
from bert_tf.tasks.texts.pair_order import swap_texts
from bert_tf.tokenizers import load_tokenizer, train_byte_level_bpe
from bert_tf.tokenizers.layout import LAYOUTS, with_layout
from bert_tf.tokenizers.ops.model_rows import pack
from bert_tf.tokenizers.special_tokens import GPT2_ROLES
from bert_tf.training.finetuning import FinetuneConfig, finetune

GPT1 = Path(__file__).parent.parent / "fixtures" / "checkpoints" / "gpt1"
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
EXACT = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.3}
FIRST, SECOND = ["the people", "a state of the people", "it is"], ["state of it", "a", "the other states"]


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(GPT1)


def decoder(tokenizer):
    keras.utils.set_random_seed(1)
    return GPT1Decoder(GPT1Config(tokenizer.vocabulary_size, **SIZES, **EXACT))


def test_the_special_tokens_are_added_once_and_kept(tokenizer, tmp_path):
    task = build_task({"labels": ["0", "1"]}, tokenizer)
    assert task.tokenizer.vocabulary == [*tokenizer.vocabulary, "_start_", "_delimiter_", "_classify_"]
    assert build_task({"labels": ["0", "1"]}, task.tokenizer).tokenizer is task.tokenizer
    ids = task.tokenizer.tokenize(["the state", "it"])
    row = task.tokenizer.pack(ids[:1], ids[1:], sequence_length=16, dynamic=True)["token_ids"][0].numpy()
    tokens = [task.tokenizer.id_to_token(i) for i in row]
    assert tokens == ["_start_", "the</w>", "stat", "e</w>", "_delimiter_", "it</w>", "_classify_"]
    task.tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).fingerprint == task.tokenizer.fingerprint
    task.save(tmp_path)
    assert load_task(tmp_path, tokenizer).tokenizer.fingerprint == task.tokenizer.fingerprint


@pytest.mark.parametrize("layout", ["gpt1", "t5"])
def test_a_byte_level_tokenizer_with_another_layout_is_kept(layout, tmp_path):
    tokenizer = train_byte_level_bpe(["the law"] * 9, 300, role_tokens=GPT2_ROLES, layout="none", normalization=None)
    changed = with_layout(tokenizer, layout)
    changed.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint == changed.fingerprint and again.layout == changed.layout
    end = {"gpt1": "_classify_", "t5": "<|endoftext|>"}[layout]
    row = changed.pack(changed.tokenize(["law"]), sequence_length=8, dynamic=True)["token_ids"][0]
    assert changed.id_to_token(row[-1]) == end
    assert build_task({}, tokenizer).tokenizer.layout_name == "t5", "texts end with the separator that there is"


def test_new_rows_are_drawn_as_gpt1_draws_them(tokenizer):
    backbone = decoder(tokenizer)
    task = build_task({"labels": ["0", "1"], "sequence_length": 16}, tokenizer, backbone=backbone)
    model = task.model(backbone)
    old, new = backbone.get_weights(), model.backbone.get_weights()
    for a, b in zip(old, new):
        np.testing.assert_array_equal(b[: len(a)], a)
    rows = model.backbone.embedding_table.numpy()[tokenizer.vocabulary_size :]
    assert rows.shape == (3, 16) and 0 < np.abs(rows).max() < 0.1  # 5 standard deviations


@pytest.mark.parametrize("name", ["bert", "gpt1", "t5", "xlnet"])
def test_swapped_pairs_are_the_pairs_packed_the_other_way(name):
    layout = LAYOUTS[name](90, 91, 92)
    random = np.random.default_rng(0)
    first, second = (
        tf.ragged.constant([random.integers(1, 50, n).tolist() for n in lengths], dtype=tf.int32)
        for lengths in ((3, 1, 6, 2), (2, 5, 6, 1))
    )
    settings = {"layout": layout, "pad_id": 0, "sequence_length": 18}
    ours, packed = swap_texts(pack(first, second, **settings), layout), pack(second, first, **settings)
    for feature, value in packed.items():
        np.testing.assert_array_equal(ours[feature], value, err_msg=feature)


def expected_losses(model, task, labels, both):
    """The mean losses in float64, every text alone and without padding."""
    start, delimiter, classify = range(task.tokenizer.vocabulary_size - 3, task.tokenizer.vocabulary_size)
    table = np.float64(model.backbone.embedding_table)
    kernel, bias = (np.float64(w) for w in model.head.get_weights())
    label_losses, lm_losses = [], []
    for first, second, label in zip(FIRST, SECOND, labels):
        a, b = task.tokenizer.encode(first), task.tokenizer.encode(second)
        rows = [[start, *a, delimiter, *b, classify]] + [[start, *b, delimiter, *a, classify]] * both
        hidden = [np.float64(model.backbone({"token_ids": np.array([row])})["sequence_output"])[0] for row in rows]
        label_losses.append(-log_softmax(sum(x[-1] for x in hidden) @ kernel + bias)[label])
        logs = [log_softmax(x[:-1] @ table.T, -1)[np.arange(len(row) - 1), row[1:]] for x, row in zip(hidden, rows)]
        lm_losses.append(-np.mean([np.mean(each) for each in logs]))
    return np.mean(label_losses), np.mean(lm_losses)


@pytest.mark.parametrize("order", ["given", "both"])
def test_losses_are_those_of_the_paper(order, tokenizer):
    settings = {"sequence_length": 32, "head": {"dropout": 0.0}, "decoder": {"lm_weight": 0.5, "pair_order": order}}
    task = build_task(settings, tokenizer, backbone=decoder(tokenizer))
    task, examples = tiny.learned({"text": FIRST, "text_pair": SECOND, "label": ["0", "1", "1"]}, task)
    model = task.model(decoder(tokenizer))
    (features,) = task.dataset(examples, 3, static_shapes=True)
    with tf.GradientTape() as tape:
        sums, _ = model.loss_sums(features, training=True)
        total = sum(sums.values())
    weights = model.loss_weights(features)
    label, lm = expected_losses(model, task, [0, 1, 1], order == "both")
    np.testing.assert_allclose(float(sums["label"] / weights["label"]), label, rtol=1e-5)
    np.testing.assert_allclose(float(sums["language_model"] / weights["language_model"]), 0.5 * lm, rtol=1e-5)
    gradient = tf.convert_to_tensor(tape.gradient(total, model.backbone.embedding_table.value)).numpy()
    assert np.abs(gradient[tokenizer.vocabulary_size :]).max(axis=1).min() > 1e-4, "each new token learns"
    if order == "both":
        assert task.evaluate(model, examples)["loss"] == pytest.approx(label, rel=1e-5)
        orders = zip(FIRST, SECOND), zip(SECOND, FIRST)
        given, swapped_pair = (task.predict(model, list(pairs))[0]["probability"] for pairs in orders)
        assert given == pytest.approx(swapped_pair, rel=1e-5)


def test_words_are_tagged_at_their_last_piece():
    tokenizer = train_byte_level_bpe(["xx xx xx"], 259, role_tokens=GPT2_ROLES, layout="none", normalization=None)
    settings = {"kind": "tagging", "sequence_length": 16}
    examples = build_task(settings, tokenizer).read({"words": [["law", "of"]], "tags": [["X", "Y"]]})
    before = build_task(settings, tokenizer).learn(examples).sequences(examples)
    before = [positions.tolist() for positions in before.tagged_pieces]
    gpt = GPT2Decoder(GPT2Config(tokenizer.vocabulary_size, **SIZES))
    task = build_task(settings, tokenizer, backbone=gpt).learn(examples)
    assert (before, task.sequences(examples).tagged_pieces[0].tolist()) == ([[0, 3]], [2, 5])
    (features,) = task.dataset(examples, 1)
    assert features["label_weights"][0, :7].numpy().tolist() == [0, 0, 1, 0, 0, 1, 0]
    assert features["labels"][0, :7].numpy().tolist() == [0, 0, 0, 0, 0, 1, 0]
    message = "is for models of the structure .decoder., and BertEncoder has .encoder.; give build"
    with pytest.raises(ConfigError, match=message):
        task.model(tiny.encoder())


def test_a_prefix_lm_reads_the_whole_text_in_both_directions():
    settings = {"kind": "tagging", "labels": ["X", "Y"], "sequence_length": 16, "head": {"dropout": 0.0}}
    sizes, ids = SIZES | EXACT, np.array([[5, 6, 7, 8], [5, 6, 7, 9]])
    features = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.arange(4) < [[4], [4]]}
    for prefix in (True, False):
        decoder = GPT1Decoder(GPT1Config(tiny.tokenizer().vocabulary_size, **sizes, prefix=prefix), dtype="float32")
        task = build_task(settings, tiny.tokenizer(), backbone=decoder)
        first, second = np.asarray(task.model(decoder)(features)["logits"])
        assert (np.abs(first[0] - second[0]).max() > 1e-4) == prefix
    with pytest.raises(ConfigError, match="would predict tokens that model.prefix lets the model see"):
        Classifier(GPT1Decoder(GPT1Config(50, **sizes, prefix=True)), 2, lm_weight=0.5)


@pytest.mark.slow
def test_a_published_gpt1_fine_tunes_and_is_served(tmp_path):
    rows = [f"the people\tit is {word}\t{label}" for word, label in (("a state", 1), ("it", 0), ("the", 0), ("a", 1))]
    (tmp_path / "train.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]) + "\n")
    experiment = configuration.load(FinetuneConfig, "finetune/models/gpt1", {
        "init_from": GPT1, "data": dict.fromkeys(("train", "dev"), tmp_path / "train.tsv"),
        "task": {"sequence_length": 16, "decoder": {"pair_order": "both"}},
        "train": {"epochs": 1, "batch_size": 2, "strategy": "one"},
    })  # fmt: skip
    summary = finetune(experiment, tmp_path / "run")
    task, model = task_and_model(tmp_path / "run")
    assert task.tokenizer.layout_name == "gpt1" and model.backbone.config.vocabulary_size == 73
    task, examples = tiny.learned(tmp_path / "train.tsv", task)
    assert task.evaluate(model, examples)["loss"] == pytest.approx(summary["dev"]["mean"]["loss"], rel=1e-5)
    (answer,) = task.predict(model, [("the people", "it is a")])
    module = ServedClassifier.of_task(task, model, sequence_length=16)
    served = module.answer_text(tf.constant(["the people"]), tf.constant(["it is a"]))["probabilities"][0].numpy()
    assert dict(zip(task.labels, served)) == pytest.approx(answer["probabilities"], abs=1e-5)


def test_messages(tokenizer):
    for kind in TASKS.keys() - {"classification", "multirc", "text_to_text"}:
        with pytest.raises(ConfigError, match="unknown key 'task.decoder.linear_gain'"):
            build_task({"kind": kind, "decoder": {"linear_gain": True}}, tokenizer)
    task = build_task({"labels": ["0", "1"], "decoder": {"lm_weight": 0.5}, "sequence_length": 16}, tiny.tokenizer())
    message = "task.decoder.lm_weight=0.5 is for decoders .GPT., and BertEncoder is an encoder"
    with pytest.raises(ConfigError, match=message):
        task.model(tiny.encoder())
    with pytest.raises(ConfigError, match="only bpe and byte_level_bpe tokenizers can get another one, here 'gpt1'"):
        build_task({"decoder": {"layout": "gpt1"}}, tiny.tokenizer())
    settings = {"decoder": {"pair_order": "both"}, "sequence_length": 16}
    task = build_task(settings, tokenizer, backbone=decoder(tokenizer))
    task = task.learn(task.read({"text": ["a", "b"], "label": ["0", "1"]}))
    with pytest.raises(ConfigError, match="task.decoder.pair_order=both is for pairs, and the texts are single"):
        task.model(decoder(tokenizer))
    settings = {"labels": ["0", "1"], "decoder": {"pair_order": "both"}, "sequence_length": 16}
    gpt2 = GPT2Decoder(GPT2Config(300, **SIZES))
    roberta = build_task(settings, train_byte_level_bpe(["the law"] * 9, 300), backbone=gpt2).with_state(pairs=True)
    with pytest.raises(ConfigError, match="gives both texts segment 0; set task.decoder.pair_order=given"):
        roberta.model(gpt2)
