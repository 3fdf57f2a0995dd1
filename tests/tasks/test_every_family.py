"""Every kind of task on every family: evaluate, predict and the served model give the same answers to the same inputs.

Inputs come as a list, one by one, in a file, and, where a kind has such a form, as JSON or as words; the model that is
served gets texts.
"""

import dataclasses
import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import learned

from bert_tf.errors import ConfigError
from bert_tf.export.served import SERVED
from bert_tf.models import FAMILIES, build_backbone, build_config
from bert_tf.tasks import TASKS, build_task
from bert_tf.tokenizers.kinds import trainers

pytestmark = pytest.mark.slow

CORPUS = ["The mayor of the town wrote to the baker in Oslo.", "we meet on the bridge in the evening, not in 1905"] * 9
LENGTH = 64
TEXTS = [
    "the mayor met xu in oslo", "The Mayor!", "  spaced \t text\n", "in", "xyz qqq", "naïve café", "北京 in", "e\u0301x",
    "a-b c/d", "12,000.5", "😀 in 🙂🙂", "(the) [mayor]", "...", "it's the baker's", "in\u200bin", "MAYOR mayor",
    "wrote, wrote; wrote", "in the evening we meet on the bridge", "¿qué?", "the " * 6,
]  # fmt: skip
SENTENCES = [
    "xu met the mayor in oslo", "The", "q", "in xu", "naïve café in", "北 in", "e\u0301x the", "a - b", "12 , 5", "😀 in",
    "( the )", ". . .", "it ' s", "MAYOR mayor", "wrote , wrote", "we meet on the bridge", "xu xu xu", "the q the", "z", "in the",
]  # fmt: skip
#: Family -> its tokenizer, and the settings in which it is not BERT's.
T5 = {"num_layers": 2, "head_size": 6, "num_buckets": 8, "max_distance": 6}
MODELS = {
    "bert": ("wordpiece", {}), "spanbert": ("wordpiece", {}), "distilbert": ("wordpiece", {}),
    "electra": ("wordpiece", {"embedding_size": 10}), "roberta": ("byte_level_bpe", {}),
    "modernbert": ("byte_level_bpe", {"num_layers": 3, "local_attention": 4}),
    "albert": ("unigram", {"embedding_size": 10}), "xlnet": ("unigram_xlnet", {}),
    "t5_encoder": ("byte", T5), "t5_decoder": ("unigram_t5", T5), "gpt1": ("bpe", {}),
    "gpt2": ("byte_level_bpe_gpt2", {}), "lstm_lm": ("words", {"embedding_size": 10}), "transformer_bilm": ("words", {}),
    "bilstm": ("words", {"embedding_size": 10}), "word_vectors": ("words", {}),
    "elmo": ("characters", {"units": 20, "character_size": 6, "filters": ((1, 8), (3, 8))}),
    "t5": ("unigram_t5", T5 | {"num_decoder_layers": 1}), "transformer": ("byte_level_bpe", {"num_decoder_layers": 1}),
}  # fmt: skip
SIZES = {"hidden_size": 24, "num_layers": 1, "num_heads": 2, "intermediate_size": 40, "max_positions": LENGTH}
# So wide that answers differ by more than rounding.
SIZES |= {"initializer_range": 0.4, "dropout": 0.0, "attention_dropout": 0.0}


@functools.cache
def tokenizer_of(name):
    sizes = {"byte_level_bpe": 290, "byte_level_bpe_gpt2": 290, "unigram_t5": 150}
    return trainers()[name].train(CORPUS, sizes.get(name, 60))


@functools.cache
def backbone_of(family, pooler):
    kind, own = MODELS[family]
    fields = {field.name for field in dataclasses.fields(FAMILIES[family].config)}
    sizes = {name: value for name, value in (SIZES | own).items() if name in fields}
    size = {"vocabulary_size": tokenizer_of(kind).vocabulary_size}
    keras.utils.set_random_seed(2)
    pooling = {} if FAMILIES[family].structure == "encoder_decoder" else {"pooler": pooler}
    return build_backbone(build_config({"family": family} | size | sizes), **pooling)


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a kind of task is asked.

    Attributes:
        inputs: what `predict` takes, 20 of them; `others`: functions from them to the same inputs in another form.
        rows: the objects of a file of them; None: no file has them.
        settings: of the task.
        labelled: function from an answer to the columns of a row that has it as its label.
        right: what `evaluate` gives for them: metric -> value.
        texts: function from the inputs to the arguments of the served `answer_text`.
        served: names of outputs of the served model -> function from an answer to the same value.
    """

    inputs: list
    labelled: object
    right: dict
    texts: object
    served: dict
    others: tuple = ()
    rows: list | None = None
    settings: dict = dataclasses.field(default_factory=dict)


def strings(values):
    return tf.constant([value.encode() for value in values])


def columns(pairs):
    return tuple(map(strings, zip(*pairs)))


PAIRS = list(zip(TEXTS, TEXTS[::-1]))
CHOICES = [{"context": text, "question": "in", "options": [text[:3] + "a", "the mayor", "q"]} for text in TEXTS]
QUERIES = [{"passage": text, "query": "the @placeholder", "entities": ["mayor", "xu", "in oslo"]} for text in TEXTS]
MARKED = [
    {"sentence1": f"{text} mayor", "start1": len(text) + 1, "end1": len(text) + 6, "sentence2": "in oslo", "start2": 3, "end2": 7}
    for text in TEXTS
]  # fmt: skip
ASKED = [("in the town?", f"we met {text} in oslo") for text in TEXTS]


def as_json(rows):
    return [json.dumps(row) for row in rows]


def marks(rows, side):
    return tf.constant([[row[f"{side}1"], row[f"{side}2"]] for row in rows])


KINDS = {
    "classification": Kind(
        TEXTS, lambda a: {"label": a["label"]}, {"accuracy": 1.0},
        lambda inputs: (strings(inputs),), {"label": lambda a: a["label"], "probabilities": lambda a: [*a["probabilities"].values()]},
        rows=[{"text": text} for text in TEXTS], settings={"labels": ["x", "y", "z"]},
    ),
    "regression": Kind(
        PAIRS, lambda a: {"label": a["score"]}, {"mean_absolute_error": 0.0}, columns, {"score": lambda a: a["score"]},
        rows=[{"text": one, "text_pair": two} for one, two in PAIRS],
    ),
    "multi_label": Kind(
        TEXTS, lambda a: {"label": a["labels"]}, {"exact_match": 1.0},
        lambda inputs: (strings(inputs),), {"probabilities": lambda a: [*a["probabilities"].values()]},
        rows=[{"text": text} for text in TEXTS], settings={"labels": ["x", "y", "z"]},
    ),
    "tagging": Kind(
        SENTENCES, lambda a: {"tags": [word["tag"] for word in a["words"]]},
        {"accuracy": 1.0}, lambda inputs: (strings(inputs),),
        {name: lambda a, key=key: [word[key] for word in a["words"]]
         for name, key in {"tags": "tag", "starts": "start", "ends": "end", "probabilities": "probability"}.items()},
        others=(lambda inputs: [text.split() for text in inputs],), rows=[{"words": text.split()} for text in SENTENCES],
        settings={"labels": ["X", "Y", "Z"]},
    ),
    "multiple_choice": Kind(
        CHOICES, lambda a: {"label": a["label"]}, {"accuracy": 1.0},
        lambda inputs: (*(strings([row[key] for row in inputs]) for key in ("context", "question")), [row["options"] for row in inputs]),
        {"answer": lambda a: a["answer"], "probabilities": lambda a: a["probabilities"]}, others=(as_json,), rows=CHOICES,
    ),
    "record": Kind(
        QUERIES, lambda a: {"answers": [a["answer"]]}, {"em": 1.0},
        lambda inputs: (*(strings([row[key] for row in inputs]) for key in ("passage", "query")), [row["entities"] for row in inputs]),
        {"answer": lambda a: a["answer"], "probabilities": lambda a: [a["probabilities"][name] for name in QUERIES[0]["entities"]]},
        others=(as_json,), rows=QUERIES,
    ),
    "word_pair": Kind(
        MARKED, lambda a: {"label": a["label"]}, {"accuracy": 1.0},
        lambda inputs: (strings([r["sentence1"] for r in inputs]), marks(inputs, "start"), marks(inputs, "end"),
                        strings([r["sentence2"] for r in inputs])),
        {"label": lambda a: a["label"], "probabilities": lambda a: [*a["probabilities"].values()]},
        others=(as_json,), rows=MARKED,
    ),
    "question_answering": Kind(
        ASKED, lambda a: {"answers": [(a["answer"], a["start"])]}, {"em": 1.0}, columns,
        {name: lambda a, name=name: a[name] for name in ("answer", "start", "end", "score", "null_score")},
        rows=[{"question": question, "context": context} for question, context in ASKED],
        settings={"impossible_questions": False, "max_query_length": 16, "stride": 16, "max_answer_length": 8},
    ),
    "text_to_text": Kind(
        TEXTS, lambda a: {"target": a["generated"]}, {"exact_match": 1.0},
        lambda inputs: (strings(inputs),), {"texts": lambda a: [a["generated"]]}, rows=[{"source": text} for text in TEXTS],
        settings={"text_metrics": [], "target_length": 8, "generation": {"max_new_tokens": 4}, "sequence_length": 48},
    ),
}  # fmt: skip


def tied(probabilities):
    """Whether two choices are equally probable, so that rounding decides between them."""
    if not isinstance(probabilities, list) or len(probabilities) < 2:
        return False
    second, first = sorted(probabilities)[-2:]
    return first - second < 1e-6


def same(found, wanted, tolerance=2e-4):
    """Whether two answers are the same up to rounding."""
    if isinstance(wanted, dict):
        decided = wanted.keys() - ({"label", "answer"} if tied(wanted.get("probabilities")) else set())
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in decided)
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return abs(found - wanted) <= tolerance * (1 + abs(wanted)) if isinstance(wanted, float) else found == wanted


def plain(value):
    """A row of a served output as `predict` has it: without padding."""
    value = value.decode() if isinstance(value, bytes) else value
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", MODELS)
def test_answers_are_the_same_however_they_are_asked_for(family, kind, tmp_path):
    case, tokenizer = KINDS[kind], tokenizer_of(MODELS[family][0])
    exact = {"head": {"dropout": 0.0}} if hasattr(TASKS[kind].config, "head") else {}
    backbone = backbone_of(family, False)
    task = build_task({"kind": kind, "sequence_length": LENGTH} | exact | case.settings, tokenizer, backbone=backbone)
    whole, pair = kind == "text_to_text", FAMILIES[family].structure == "encoder_decoder"
    if (whole and FAMILIES[family].structure == "encoder") or (pair and not whole):
        with pytest.raises(ConfigError):
            task.model(backbone)
        return
    inputs = list(case.inputs)
    if kind == "regression":
        task = task.with_state(mean=1.0, scale=2.0, pairs=True)
    pairs = {"classification": False, "multi_label": False, "word_pair": True}.get(kind, task.pairs)
    task = task.with_state(pairs=pairs)
    backbone = backbone_of(family, not pair and task.needs_pooler(backbone.config))
    keras.utils.set_random_seed(3)
    model = task.model(backbone)
    for variable in model.trainable_variables:  # the heads, too
        if len(variable.shape) > 1 and not any(variable is v for v in backbone.trainable_variables):
            variable.assign(np.random.default_rng(len(variable.path)).normal(0, 0.5, variable.shape))

    answers = task.predict(model, inputs)
    assert len(answers) == 20 and len({json.dumps(answer, sort_keys=True) for answer in answers}) > 10
    for number in (0, 9, 17):
        (alone,) = task.predict(model, inputs[number : number + 1])
        assert same(alone, answers[number]), (number, alone, answers[number])
    for other in case.others:
        text = lambda a: {"text": " ".join(a["text"].split())} if kind == "tagging" else {}  # noqa: E731
        assert same(task.predict(model, other(inputs)), [a | text(a) for a in answers])
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in case.rows))
    of_file = task.predict(model, task.read(path, labelled=False), batch_size=3)
    for found, wanted in zip(of_file, answers, strict=True):
        assert same({key: found[key] for key in wanted}, wanted)

    texts = [answer.get("generated", answer.get("answer", "a")) for answer in answers]
    kept = [number for number, text in enumerate(texts) if any(map(str.isalnum, text))]
    if kept:  # random bytes may be no text at all
        task, labelled = learned([case.rows[i] | case.labelled(answers[i]) for i in kept], task)
        measured = task.evaluate(model, labelled, batch_size=7)
        for name, value in case.right.items():
            assert measured[name] == pytest.approx(value, abs=1e-4), name

    module = SERVED[kind].of_task(task, model, sequence_length=task.config.sequence_length)
    ask = module.answer_question if kind == "question_answering" else module.answer_text
    served = {name: value.numpy() for name, value in ask(*case.texts(inputs)).items()}
    for name, value in case.served.items():
        for row, answer in zip(served[name], answers, strict=True):
            wanted = value(answer)
            found = plain(row)[: len(wanted)] if isinstance(wanted, list) else plain(row)
            assert same([plain(x) for x in found] if isinstance(found, list) else found, wanted), (name, answer)
