import numpy as np
import pytest
from shard_fixtures import write_shards

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import WordPieceTokenizer
from tfrecords import schema
from tfrecords.inspection import explain, inspect_shards
from tfrecords.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.masking_explained import KEPT, MASKED, RANDOM
from tfrecords.reader import ShardReader

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat rock ##et ##s fly .".split()
PAIR = "[CLS] the cat sat [SEP] rock ##et ##s fly . [SEP]".split()
SINGLE = "[CLS] the rock ##s fly [SEP]".split()
WHOLE = MaskingConfig(rate=0.5, unit="whole_word")


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    def ids(tokens):
        return np.array([VOCABULARY.index(token) for token in tokens])

    folder = tmp_path_factory.mktemp("inspected")
    tokenizer.save(folder / schema.TOKENIZER_FOLDER)
    examples = [
        (ids(PAIR), 5, 6, schema.RANDOM_NEXT),
        (ids(SINGLE), 6, 0, schema.NO_PAIR),
        (ids(PAIR), 5, 6, schema.NEXT),
    ]
    return write_shards(
        folder, examples, [2, 1], 12, len(VOCABULARY), fingerprint=tokenizer.fingerprint
    )


def explanations(folder, tokenizer, config, epochs=1, seed=0):
    reader, corrupt = ShardReader(folder, tokenizer), MaskedLMCorruption(tokenizer, config)
    for epoch in range(epochs):
        yield from explain(reader.examples(range(3), epoch), tokenizer, corrupt, seed)


def test_what_is_said_of_an_example(folder, tokenizer):
    random_pair, single, pair = explanations(folder, tokenizer, WHOLE)
    assert random_pair.tokens == PAIR and single.tokens == SINGLE
    assert random_pair.segment_ids == [0] * 5 + [1] * 6 and single.segment_ids == [0] * 6
    assert [e.pair_label for e in (random_pair, single, pair)] == [1, None, 0]
    assert random_pair.texts == [
        tokenizer.decode(tokenizer.encode(text)) for text in ("the cat sat", "rockets fly .")
    ]
    assert single.texts == ["the rocks fly"]
    for explanation, budget in zip((random_pair, single, pair), ("4, which is 50 % of the 8", "2, which is 50 % of the 4", "4, which")):
        assert budget in explanation.corruption.rule
    assert [e.example_index for e in (random_pair, single, pair)] == [0, 1, 2]


def test_actions_and_words_are_those_of_the_features(folder, tokenizer):
    corrupt = MaskedLMCorruption(tokenizer, WHOLE)
    reader = ShardReader(folder, tokenizer)
    seen = set()
    for epoch in range(40):
        batch = reader.examples(range(3), epoch)
        features = {name: value.numpy() for name, value in corrupt(batch, 0).items()}
        for row, explanation in enumerate(explain(batch, tokenizer, corrupt, 0)):
            assert explanation.epoch == epoch
            real = features["mask_weights"][row] > 0
            positions = features["mask_positions"][row][real].tolist()
            assert [p.position for p in explanation.predictions] == positions
            for prediction in explanation.predictions:
                assert prediction.token == explanation.tokens[prediction.position]
                shown = VOCABULARY[features["token_ids"][row, prediction.position]]
                assert prediction.shown == shown
                bounds = {MASKED: (0, 0.8), RANDOM: (0.8, 0.9), KEPT: (0.9, 1)}
                low, high = bounds[prediction.action]
                assert low <= prediction.draw < high
                assert (shown == "[MASK]") == (prediction.action == MASKED)
                assert prediction.action != KEPT or shown == prediction.token
                word = ("rock", "##s") if row == 1 else ("rock", "##et", "##s")
                in_word = prediction.token in word
                assert prediction.unit == (word if in_word else (prediction.token,))
                seen.add((prediction.action, prediction.unit))
    assert (MASKED, ("rock", "##et", "##s")) in seen and (MASKED, ("rock", "##s")) in seen
    assert {action for action, _ in seen} == {MASKED, RANDOM, KEPT}


def test_lines(folder, tokenizer):
    for explanation in explanations(folder, tokenizer, WHOLE, epochs=10):
        words = {len(p.unit): p for p in explanation.predictions}
        if explanation.example_index == 0 and 3 in words:
            break
    text = "\n".join(explanation.lines())
    assert text.startswith(f"example 0, epoch {explanation.epoch} ---")
    assert "length     11 of 12 tokens\npair       label 1: B is from elsewhere\n" in text
    assert "text A     the cat sat\n" in text and "input A    [CLS] " in text
    assert (
        f"predicted  {len(explanation.predictions)} tokens: whole words of together at most 4, "
        "which is 50 % of the 8 that are not special\n"
    ) in text
    assert "chosen with its word: rock ##et ##s" in text
    for prediction in explanation.predictions:
        arrow = "" if prediction.action == KEPT else f" -> {prediction.shown}"
        assert f"{{{prediction.token}{arrow}}}" in text
        assert f"drew {prediction.draw:.3f}" in text


def test_lines_stay_narrow_and_say_when_cut(folder, tokenizer):
    config = MaskingConfig(rate=0.5, max_predictions=2)
    first = next(explanations(folder, tokenizer, config))
    lines = list(first.lines(width=60))
    assert max(map(len, lines)) <= 70
    assert "exactly 2" in " ".join(lines) and "cut to max_predictions 2" in " ".join(
        " ".join(lines).split()
    )


def test_the_command(folder):
    lines = list(inspect_shards(folder, WHOLE, examples=2))
    assert lines[1] == "holds      3 examples of length 12"
    assert [line.split(",")[0] for line in lines if line.startswith("example")] == [
        "example 0",
        "example 1",
    ]
    alone = list(inspect_shards(folder, WHOLE, example_index=1))
    assert alone[4:] == lines[[line[:9] for line in lines].index("example 1") :]
    assert alone != list(inspect_shards(folder, WHOLE, example_index=1, epoch=1))
    assert len([x for x in inspect_shards(folder, examples=99) if x.startswith("example")]) == 3


def test_refusals(folder, tmp_path):
    with pytest.raises(DataError, match="manifest.json"):
        list(inspect_shards(tmp_path))
    with pytest.raises(DataError, match="no example 3: .* holds examples 0 to 2"):
        list(inspect_shards(folder, example_index=3))
    with pytest.raises(ConfigError, match="examples 0"):
        list(inspect_shards(folder, examples=0))
