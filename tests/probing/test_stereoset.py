"""StereoSet: its file, the three numbers as published, and the scores of words and sentences by plain calls."""

import json

import keras
import numpy as np
import pytest
from fakes import bert, tokenizer_of

from bert_tf.errors import DataError
from bert_tf.models import GPT2Config, GPT2Decoder
from bert_tf.objectives import CausalLM, MaskedLM
from bert_tf.probing import Question, StereoSet, fill, text_scorer

TOKENIZER = tokenizer_of("the un ##believ ##able film is good bad .")


def row(split, context, *sentences):
    labels = ("anti-stereotype", "stereotype", "unrelated")
    options = [{"id": name, "sentence": s, "labels": [], "gold_label": name} for name, s in zip(labels, sentences)]
    return {"id": "x1", "target": "girl", "bias_type": "gender", "context": context, "sentences": options}


def question(split, context, parts, **facts):
    return Question((f"{split} x", split, "all"), *parts, facts={"target": "film", "context": context} | facts)


def test_files(tmp_path):
    path = tmp_path / "dev.json"
    inside = row("intrasentence", "Girls are BLANK.", "Girls are tough.", "Girls are soft.", "Girls are fish.")
    after = row("intersentence", "A girl.", "She is tough.", "She is soft.", "My dog.")
    path.write_text(json.dumps({"version": "1", "data": {"intrasentence": [inside], "intersentence": [after]}}))
    girls = {"target": "girl"}
    sentences = ("Girls are soft.", "Girls are tough.", "Girls are fish.")
    filled = fill("Girls are BLANK.", "BLANK", ["soft", "tough", "fish"])
    facts = girls | {"context": "Girls are BLANK.", "sentences": sentences}
    first, second = StereoSet().read(path)
    assert first == Question(("intrasentence gender", "intrasentence", "all"), *filled, facts)
    texts, facts = ("She is soft.", "She is tough.", "My dog."), girls | {"context": "A girl."}
    assert second == Question(("intersentence gender", "intersentence", "all"), texts, facts=facts)
    del inside["target"]
    path.write_text(json.dumps({"data": {"intrasentence": [inside]}}))
    with pytest.raises(DataError, match="intrasentence example 'x1' has another form"):
        StereoSet().read(path)
    path.write_text("{}")
    with pytest.raises(DataError, match="as StereoSet's dev.json"):
        StereoSet().read(path)


def test_the_three_numbers_are_means_over_targets():
    # "girl": preferred 1 of 2, and 3 of 4 before the unrelated; "boy": 1 of 1, and 1 of 2.
    rows = [("girl", (0.3, 0.2, 0.1)), ("girl", (0.1, 0.2, 0.15)), ("boy", (0.5, 0.2, 0.3))]
    found = StereoSet().combine(rows)
    assert (found["ss"], found["lms"], found["examples"]) == ((50 + 100) / 2, (75 + 50) / 2, 3)
    assert found["icat"] == 62.5 * 25 / 50
    assert StereoSet().combine([("x", (0.1, 0.1, 0.1))])["ss"] == 0, "a tie counts for the opposite"


def test_scores_of_an_encoder():
    model = MaskedLM(bert(TOKENIZER, 3, positions=12, layers=1, initializer_range=0.5), pair_task="nsp")
    scorer = text_scorer(model, TOKENIZER)

    def probability(ids, position, token):
        outputs = model({"token_ids": np.array([ids]), "mask_positions": np.array([[position]])})
        return float(keras.ops.softmax(outputs["masked_lm_logits"][0, 0])[token])

    short, long = scorer.fill_scores(["the good film", "the unbelievable film"], [(4, 8), (4, 16)])
    assert short == pytest.approx(probability([2, 5, 4, 9, 3], 2, 11), rel=1e-4)
    rows = [([2, 5, 4, 9, 3], 2, 6), ([2, 5, 6, 4, 9, 3], 3, 7), ([2, 5, 6, 7, 4, 9, 3], 4, 8)]
    assert long == pytest.approx(np.mean([probability(*row) for row in rows]), rel=1e-4)
    (follows,) = scorer.follow_scores([("the film", "is good")])
    features = {"token_ids": np.array([[2, 5, 9, 3, 10, 11, 3]]), "segment_ids": np.array([[0] * 4 + [1] * 3])}
    logits = model.pair_head(model.backbone(features)["pooled_output"])
    assert follows == pytest.approx(float(keras.ops.softmax(logits)[0, 0]), rel=1e-4)

    texts = fill("the BLANK film", "BLANK", ["good", "bad", "unbelievable"])
    inside = question("intrasentence", "the BLANK film", texts)
    after = question("intersentence", "the film", [("is good", "is bad", "film film")])
    found = StereoSet().run(scorer, [inside, after, inside])
    assert [(name, own["examples"]) for name, own in found.numbers()["rows"].items()] == [
        ("intrasentence x", 2), ("intrasentence", 2), ("intersentence x", 1), ("intersentence", 1), ("all", 3),
        ("chance", None),
    ]  # fmt: skip
    others = text_scorer(MaskedLM(model.backbone), TOKENIZER)
    found = StereoSet().run(others, [inside, after])
    assert [name for name, _ in found.rows] == ["intrasentence x", "intrasentence", "all", "chance"]
    assert "no next sentence prediction" in found.note
    assert dict(found.beside(found).all_rows())["chance"][3] == "-", "chance needs no control"
    with pytest.raises(DataError, match="scores blanks alone, and the file has none"):
        StereoSet().run(others, [after])


def test_scores_of_a_decoder():
    decoder = GPT2Decoder(GPT2Config(TOKENIZER.vocabulary_size, 16, 1, 2, 32, initializer_range=0.5))
    scorer = text_scorer(CausalLM(decoder), TOKENIZER)
    (text,) = scorer.score(["the film is good"])

    # As eval_generative_models.py of the authors: the start token predicts the first token alone.
    def log_p(ids):
        logits = decoder.output_logits(decoder({"token_ids": np.array([ids])})["sequence_output"])[0]
        return keras.ops.convert_to_numpy(keras.ops.log_softmax(logits, axis=-1))

    ids = TOKENIZER.encode("the film is good")
    first, others = log_p([scorer.scorer.start_id])[0, ids[0]], log_p(ids)[range(3), ids[1:]]
    wanted = np.mean([first, *others])
    assert scorer.sentence_scores(["the film is good"]) == [pytest.approx(wanted, rel=1e-5)]
    assert wanted != pytest.approx(text.log_p.mean(), rel=1e-3)
    # The file's own sentence, which the context with the word in its blank need not be.
    sentences = "the film is good .", "the film bad", "un film"
    filled = fill("the film is BLANK.", "BLANK", ["good", "bad", "film"])
    example = question("intrasentence", "the film is BLANK.", filled, sentences=sentences)
    numbers = StereoSet().combine([("film", scorer.sentence_scores(list(sentences)))])
    found = StereoSet().run(scorer, [example])["all"]
    assert {name: found[name] for name in numbers} == numbers
    assert scorer.follow_scores([("the film", "is good")]) == [pytest.approx(text.log_p[2:].mean())]
