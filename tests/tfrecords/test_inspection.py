import numpy as np
import pytest
import tensorflow as tf
from shard_fixtures import as_arrays, as_tensors, batch_of, write_shards

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer, train_byte_level_bpe
from bert_tf.tokenizers.layout import build_layout
from tfrecords import schema
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.corruption.permutation import PermutationConfig, PermutationCorruption
from tfrecords.inspection import explain, inspect_shards
from tfrecords.reading.reader import ShardReader

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat rock ##et ##s fly .".split()
PAIR = "[CLS] the cat sat [SEP] rock ##et ##s fly . [SEP]".split()
SINGLE = "[CLS] the rock ##s fly [SEP]".split()
WHOLE = MaskingConfig(rate=0.5, strategy="whole_word")


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    def ids(tokens):
        return np.array([VOCABULARY.index(token) for token in tokens])

    folder = tmp_path_factory.mktemp("inspected")
    tokenizer.save(folder / schema.TOKENIZER_FOLDER)
    pair, single = ids(PAIR), ids(SINGLE)
    examples = [(pair, 5, 6, schema.RANDOM_NEXT), (single, 6, 0, schema.NO_PAIR), (pair, 5, 6, schema.NEXT)]
    return write_shards(folder, examples, [2, 1], 12, len(VOCABULARY), fingerprint=tokenizer.fingerprint)


def explanations(folder, tokenizer, config, epochs=1, seed=0):
    reader, corrupt = ShardReader(folder, tokenizer), MaskedLMCorruption(tokenizer, config)
    for epoch in range(epochs):
        yield from explain(reader.examples(range(3), epoch), tokenizer, corrupt, seed)


def test_what_is_said_of_an_example(folder, tokenizer):
    random_pair, single, pair = explanations(folder, tokenizer, WHOLE)
    assert random_pair.tokens == PAIR and single.tokens == SINGLE
    assert random_pair.segments == [0] * 5 + [1] * 6 and single.segments == [0] * 6
    assert random_pair.texts == [tokenizer.decode(tokenizer.encode(text)) for text in ("the cat sat", "rockets fly .")]
    assert single.texts == ["the rocks fly"]
    for explanation, candidates in zip((random_pair, single, pair), (8, 4, 8)):
        assert f"tokens in words: 50 % of the {candidates} that may be predicted" in explanation.corruption.rule
    assert [e.example_index for e in (random_pair, single, pair)] == [0, 1, 2]


def test_actions_and_words_are_those_of_the_features(folder, tokenizer):
    corrupt = MaskedLMCorruption(tokenizer, WHOLE)
    reader = ShardReader(folder, tokenizer)
    seen = set()
    for epoch in range(14):
        batch = reader.examples(range(3), epoch)
        features = as_arrays(corrupt(batch, 0))
        for row, explanation in enumerate(explain(batch, tokenizer, corrupt, 0)):
            assert explanation.epoch == epoch
            real = features["mask_weights"][row] > 0
            positions = features["mask_positions"][row][real].tolist()
            assert [p.position for p in explanation.corruption.predictions] == positions
            for prediction in explanation.corruption.predictions:
                assert prediction.token == explanation.tokens[prediction.position]
                shown = VOCABULARY[features["token_ids"][row, prediction.position]]
                assert prediction.shown == shown
                action, _, unit = prediction.why.partition("; drawn with its word: ")
                assert (shown == "[MASK]") == (action == "masked")
                assert (shown == prediction.token) == (action == "kept")
                word = "rock ##s" if row == 1 else "rock ##et ##s"
                assert unit == (word if prediction.token in word.split() else "")
                seen.add((action, unit))
    assert {("masked", "rock ##et ##s"), ("masked", "rock ##s")} < seen
    assert {action for action, _ in seen} == {"masked", "random token", "kept"}


def test_lines(folder, tokenizer):
    for explanation in explanations(folder, tokenizer, WHOLE, epochs=10):
        if any(p.why.endswith("rock ##et ##s") for p in explanation.corruption.predictions):
            break
    text = "\n".join(explanation.lines())
    assert text.startswith(f"example {explanation.example_index}, epoch {explanation.epoch} ---")
    assert f"length     11 of 12 tokens\npair       {explanation.pair_label}\n" in text
    assert "text A     the cat sat\n" in text and "input A    [CLS] " in text
    count = len(explanation.corruption.predictions)
    assert f"predicted  {count} tokens in words: 50 % of the 8 that may be predicted\n" in text
    for prediction in explanation.corruption.predictions:
        arrow = "" if prediction.why.startswith("kept") else f" -> {prediction.shown}"
        assert f"{{{prediction.token}{arrow}}}" in text and prediction.why in text


def test_lines_stay_narrow_and_say_when_cut(folder, tokenizer):
    config = MaskingConfig(rate=0.5, max_predictions=2)
    first = next(explanations(folder, tokenizer, config))
    lines = list(first.lines(width=60))
    assert max(map(len, lines)) <= 70
    assert "2 tokens: 50 % of the 8 that may be predicted, cut to max_predictions" in " ".join(" ".join(lines).split())


def test_random_tokens_of_the_shards(folder):
    """Only tokens that the shards hold are drawn: neither "on" nor "mat"."""
    config = MaskingConfig(rate=0.9, mask_token_rate=0, random_token_rate=1, random_tokens="corpus")
    text = "\n".join(line for epoch in range(3) for line in inspect_shards(folder, config, epoch=epoch))
    drawn = {part.split()[0].rstrip("}") for part in text.split("-> ")[1:]}
    assert drawn <= {*PAIR, *SINGLE} - {"[CLS]", "[SEP]"} and len(drawn) > 4


def one_row(ids):
    ids = np.array([ids])
    return as_tensors(batch_of(ids, ids != 0) | {"segment_ids": np.zeros_like(ids)})


def test_byte_level_tokens_are_shown_as_characters():
    tokenizer = train_byte_level_bpe(["가장 좋은 영화다"] * 3, 400)
    batch = one_row([tokenizer.cls_id, *tokenizer.encode("가장 좋은 영화다"), tokenizer.sep_id])
    batch["padding_mask"] = tf.ones_like(batch["padding_mask"])
    corrupt = MaskedLMCorruption(tokenizer, MaskingConfig(rate=0.9, strategy="whole_word"))
    row = next(explain(batch, tokenizer, corrupt, 0))
    assert row.tokens == ["<s>", "가장", "Ġ좋은", "Ġ영화다", "</s>"]
    assert {p.token for p in row.corruption.predictions} <= set(row.tokens)


def test_the_command(folder):
    lines = list(inspect_shards(folder, WHOLE, examples=2))
    assert lines[1] == "holds      3 examples of length 12"
    assert [line.split(",")[0] for line in lines if line.startswith("example")] == ["example 0", "example 1"]
    alone = list(inspect_shards(folder, WHOLE, example_index=1))
    assert alone[4:] == lines[[line[:9] for line in lines].index("example 1") :]
    assert alone != list(inspect_shards(folder, WHOLE, example_index=1, epoch=1))
    assert len([x for x in inspect_shards(folder, examples=99) if x.startswith("example")]) == 3


def test_refusals(folder):
    with pytest.raises(DataError, match="no example 3: .* holds examples 0 to 2"):
        list(inspect_shards(folder, example_index=3))
    with pytest.raises(ConfigError, match="examples 0"):
        list(inspect_shards(folder, examples=0))


def test_spans_and_static_masks(folder, tokenizer):
    config = MaskingConfig(rate=0.6, strategy="span", static_duplicates=2)
    seen = set()
    for explanation in explanations(folder, tokenizer, config, epochs=12):
        text = "\n".join(explanation.lines(200))
        assert f"masks      static: set {explanation.epoch % 2} of 2, which repeat\n" in text
        assert "tokens in spans: 60 % of the" in explanation.corruption.rule
        for prediction in explanation.corruption.predictions:
            unit = prediction.why.partition("; drawn with its span: ")[2].split()
            assert prediction.token in unit or not unit
            seen.add(tuple(unit))
    assert max(map(len, seen)) > 3 and not any("[SEP]" in unit for unit in seen)


def test_what_pair_labels_mean(folder, tokenizer):
    reader, corrupt = ShardReader(folder, tokenizer), MaskedLMCorruption(tokenizer, WHOLE)
    for task, first, last in (
        ("nsp", "label 1: B is from elsewhere", "label 0: B follows A"),
        ("sop", "label 1: exchanged: in the document B comes before A", "label 0: A and B are in order"),
    ):
        explanations = explain(reader.examples(range(3)), tokenizer, corrupt, 0, task)
        pairs = [[line for line in each.lines() if line.startswith("pair")] for each in explanations]
        assert pairs == [[f"pair       {first}"], [], [f"pair       {last}"]]


def test_permutations(folder, tokenizer):
    config = PermutationConfig(alpha=2, permutation_size=6, segments=2, max_ngram=2)
    reader, corrupt = ShardReader(folder, tokenizer), PermutationCorruption(tokenizer, config)
    for epoch in range(4):
        batch = reader.examples(range(3), epoch)
        features = as_arrays(corrupt(batch, 0))
        for row, explanation in enumerate(explain(batch, tokenizer, corrupt, 0)):
            backward = (epoch + row) % 2 == 1
            forward = (PAIR, SINGLE, PAIR)[row]
            assert explanation.tokens == ([forward[0], *forward[-2:0:-1], forward[-1]] if backward else forward)
            segments = [0] * 5 + [1] * 6 if row != 1 else [0] * 6
            assert explanation.segments == ([segments[0], *segments[-2:0:-1], segments[-1]] if backward else segments)
            text = "\n".join(explanation.lines(200))
            assert f"direction  {'backward' if backward else 'forward'}" in text
            order = features["permutation_order"][row]
            length = len(forward)
            for prediction in explanation.corruption.predictions:
                seen = sum(order[i] < order[prediction.position] for i in range(length))
                assert prediction.why == f"predicted from {seen} tokens" and prediction.shown is None
                assert prediction.token == explanation.tokens[prediction.position]
                assert f"{{{prediction.token}}}" in text
            assert len(explanation.corruption.predictions) == (features["mask_weights"][row] > 0).sum() > 0


def test_two_texts_that_share_a_segment_are_told_apart(folder, tokenizer, monkeypatch):
    ids = [VOCABULARY.index(t) for t in "[CLS] the cat [SEP] [SEP] rock ##s . [SEP]".split()]
    batch = one_row(ids + [0, 0, 0]) | {"pair_labels": tf.constant([0]), "pair_weights": tf.constant([1.0])}
    monkeypatch.setattr(tokenizer, "layout", build_layout("roberta", tokenizer.cls_id, tokenizer.sep_id))
    (explanation,) = explain(batch, tokenizer, MaskedLMCorruption(tokenizer, WHOLE), 0)
    assert explanation.texts == ["the cat", "rocks."] and explanation.segments == [0] * 4 + [1] * 5
