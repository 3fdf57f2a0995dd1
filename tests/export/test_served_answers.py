"""What each export answers, against an independent computation from token ids packed by hand."""

import re

import numpy as np
import pytest
from exports import LABELS, LENGTH, TAGS, TEXTS, VOCABULARY, ask, load
from numeric import softmax

from bert_tf.errors import ConfigError
from bert_tf.export import ServedClassifier, ServedMaskedLM, ServedTagger

pytestmark = pytest.mark.slow


def served(exports, name, signature="serving_default", **inputs):
    """The answer of the SavedModel itself."""
    return ask(load(exports[name].path).signatures[signature], **inputs)


def row(tokenizer, first, second=None):
    """Features [1, S] of one text or pair, in plain Python."""
    ids = tokenizer.encode(first)[: LENGTH - 2]
    token_ids = [tokenizer.cls_id, *ids, tokenizer.sep_id]
    segment_ids = [0] * len(token_ids)
    if second is not None:
        ids = tokenizer.encode(second)
        token_ids += [*ids, tokenizer.sep_id]
        segment_ids += [1] * (len(ids) + 1)
    ids, segments = np.array([token_ids], np.int32), np.array([segment_ids], np.int32)
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones(ids.shape, bool)}


def decoded(strings):
    return [s.decode() for s in strings]


def test_pairs(exports, models, tokenizer):
    pairs = [("The cat sat", "on the mat."), ("", "Paris"), ("Paris", ""), ("in France", "un[SEP]able")]
    first, second = map(list, zip(*pairs))
    answer = served(exports, "pairs", text=first, text_pair=second)
    for i, pair in enumerate(pairs):
        wanted = softmax(models.classifier(row(tokenizer, *pair))["logits"].numpy())[0]
        np.testing.assert_allclose(answer["probabilities"][i], wanted, atol=1e-6)
        assert answer["label"][i].decode() == LABELS[int(np.argmax(wanted))]
        assert decoded(answer["labels"][i]) == list(LABELS)
    exchanged = served(exports, "pairs", text=second, text_pair=first)
    assert np.abs(exchanged["probabilities"] - answer["probabilities"]).max() > 1e-3


def test_choices_are_those_of_rows_packed_by_hand(exports, models, tokenizer):
    context, question = ["The cat", "", "Paris is"], ["sat on the _", "Paris", "un"]
    options = [["mat.", "", "漢字 _"], ["in\n France", "small", "the cat"], ["", " ", ""]]
    pairs = [[("The cat", "sat on the mat."), None, ("The cat", "sat on the 漢字 _")]]
    pairs.append([("Paris", option) for option in ("in France", "small", "the cat")])
    answer = served(exports, "choices", context=context, question=question, options=options)
    for i, some in enumerate(pairs):
        logits = [models.choices.outputs(row(tokenizer, *pair)).numpy()[0, 0] for pair in some if pair]
        wanted = iter(softmax(np.array([logits]))[0])
        wanted = [next(wanted) if pair else 0 for pair in some]
        np.testing.assert_allclose(answer["probabilities"][i], wanted, atol=1e-6)
        best = int(np.argmax(answer["probabilities"][i]))
        assert (answer["label"][i], answer["answer"][i].decode()) == (best, options[i][best])
    assert (answer["label"][2], answer["answer"][2], answer["probabilities"][2].tolist()) == (-1, b"", [0, 0, 0])


def test_regression_is_in_the_unit_of_the_labels_and_padded_to_the_full_length(exports, models, tokenizer):
    answer = served(exports, "regressor", text=list(TEXTS))
    outputs = [models.regressor.outputs(row(tokenizer, text)).numpy()[0, 0] for text in TEXTS]
    np.testing.assert_allclose(answer["score"], np.array(outputs) * 1.5 + 2.5, atol=1e-5)
    inputs = load(exports["regressor"].path).signatures["ids"].structured_input_signature[1]
    assert inputs["token_ids"].shape.as_list() == [None, LENGTH]


def test_tagging_finds_every_word_where_it_stands(exports, models, tokenizer):
    texts = ["The cat sat, unable.", "naïve Café!", "", "smaller 漢字 un-paris"]
    words = [["The", "cat", "sat", ",", "unable", "."], ["naïve", "Café", "!"], []]
    words.append(["smaller", "漢", "字", "un", "-", "paris"])
    long = served(exports, "tagger", text=["cat " * 100])
    assert long["tags"].shape == (1, LENGTH - 2) and long["ends"][0, -1] == 4 * (LENGTH - 3) + 3
    answer = served(exports, "tagger", text=texts)
    assert answer["tags"].shape == (4, 6)
    for i, text in enumerate(texts):
        real = answer["starts"][i] >= 0
        spans = list(zip(answer["starts"][i][real], answer["ends"][i][real]))
        assert [text[start:end] for start, end in spans] == words[i]
        assert np.all(answer["ends"][i][~real] == -1) and np.all(answer["probabilities"][i][~real] == 0)
        assert decoded(answer["tags"][i][~real]) == [""] * (6 - len(words[i]))
        # The tag of a word is what the model says at its first piece.
        tokens = [tokenizer.id_to_token(int(t)) for t in row(tokenizer, text)["token_ids"][0]]
        heads = [j for j, t in enumerate(tokens) if not t.startswith("##") and t not in ("[CLS]", "[SEP]")]
        wanted = softmax(models.tagger(row(tokenizer, text))["logits"].numpy())[0][heads]
        assert decoded(answer["tags"][i][real]) == [TAGS[k] for k in wanted.argmax(-1)]
        np.testing.assert_allclose(answer["probabilities"][i][real], wanted.max(-1, initial=0), atol=1e-6)


def test_tagging_by_white_space(exports):
    texts = ["The cat sat , unable.", "in U.S. 漢字", "Paris"]
    answer = served(exports, "tagger_whitespace", text=texts)
    by_marks = served(exports, "tagger", text=texts)
    for i, text in enumerate(texts):
        real = answer["starts"][i] >= 0
        spans = [(m.start(), m.end()) for m in re.finditer(r"\S+", text)]
        assert list(zip(answer["starts"][i][real], answer["ends"][i][real])) == spans
        # The same first pieces, of which this export leaves some out.
        tags = dict(zip(by_marks["starts"][i], by_marks["tags"][i]))
        assert [tags[start] for start, _ in spans] == list(answer["tags"][i][real])


def test_ids_of_a_tagger_give_every_label_of_every_token(exports, models, tokenizer):
    features = row(tokenizer, "The cat sat.")
    answer = served(exports, "tagger", "ids", **features)
    wanted = softmax(models.tagger(features)["logits"].numpy())
    np.testing.assert_allclose(answer["label_probabilities"], wanted, atol=1e-6)
    assert decoded(answer["tags"][0]) == [TAGS[k] for k in wanted[0].argmax(-1)]


def test_fill_mask(exports, models, tokenizer):
    texts = ["The [MASK] sat on 漢 [MASK].", "no mask here", "[MASK]"]
    without = served(exports, "masked_lm", text=["no mask", ""])
    assert without["tokens"].shape == (2, 0, 4) and without["starts"].shape == (2, 0)
    answer = served(exports, "masked_lm", text=texts)
    assert answer["tokens"].shape == (3, 2, 4)
    for i, text in enumerate(texts):
        masks = [(m.start(), m.end()) for m in re.finditer(re.escape("[MASK]"), text)]
        features = row(tokenizer, text)
        positions = np.flatnonzero(features["token_ids"][0] == tokenizer.mask_id)
        features["mask_positions"] = positions[None].astype(np.int32)
        # The model has three rows more than the vocabulary: they are no tokens.
        wanted = softmax(models.masked_lm(features)["masked_lm_logits"].numpy()[0, :, : len(VOCABULARY)])
        for j in range(2):
            if j < len(masks):
                best = np.argsort(-wanted[j])[:4]
                assert decoded(answer["tokens"][i, j]) == [VOCABULARY[k] for k in best]
                np.testing.assert_allclose(answer["probabilities"][i, j], wanted[j][best], atol=1e-6)
                assert (answer["starts"][i, j], answer["ends"][i, j]) == masks[j]
            else:
                assert decoded(answer["tokens"][i, j]) == [""] * 4
                assert not answer["probabilities"][i, j].any()
                assert answer["starts"][i, j] == answer["ends"][i, j] == -1


def test_embedding(exports, models, tokenizer):
    texts = ["The cat.", "", "in Paris, France"]
    answer = served(exports, "embedding", text=texts)
    tokens = served(exports, "embedding", "tokens", text=texts)
    for i, text in enumerate(texts):
        features = row(tokenizer, text)
        wanted = models.masked_lm.backbone(features)["sequence_output"].numpy()[0]
        length = len(wanted)
        np.testing.assert_allclose(answer["mean"][i], wanted.astype(np.float64).mean(0), atol=1e-6)
        np.testing.assert_allclose(answer["cls"][i], wanted[0], atol=1e-6)
        np.testing.assert_allclose(tokens["sequence_output"][i, :length], wanted, atol=1e-6)
        assert not tokens["sequence_output"][i, length:].any()
        names = [tokenizer.id_to_token(int(t)) for t in features["token_ids"][0]]
        assert decoded(tokens["tokens"][i]) == names + [""] * (tokens["tokens"].shape[1] - length)
    assert list(zip(tokens["starts"][0], tokens["ends"][0])) == [(-1, -1), (0, 3), (4, 7), (7, 8)] + [(-1, -1)] * 2


@pytest.mark.parametrize("make, message", [
    (lambda m, t: ServedClassifier(m, t, LABELS, sequence_length=33), "sequence_length=33 is beyond the model's 32"),
    (lambda m, t: ServedTagger(m, t, TAGS, 16, words="whitspace"), "did you mean 'whitespace'"),
    (lambda m, t: ServedMaskedLM(m, t, 16, top_k=0), "top_k=0 must be a whole number between 1 and"),
])  # fmt: skip
def test_settings_that_cannot_be(make, message, models, tokenizer):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make(models.classifier, tokenizer)
