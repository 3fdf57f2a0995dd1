"""A tokenizer, an encoder and files of question answering, small enough for a test."""

import copy
import functools
import json

import keras

from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.tokenizers.layout import build_layout

WORDS = "where who was is the in a born film paris london anna bert john of he she met and ##s ##ville . , ? '".split()
CONTEXTS = (
    "Anna was born in Paris. Bert met Anna in London.",
    "The film of John is in Londonville, and naïve 漢 Bert is in Paris.",
)
#: (id, number of the context, question, answers)
QUESTIONS = (
    ("a", 0, "Where was Anna born?", ["Paris", "in Paris"]), ("b", 0, "Who met Anna?", ["Bert"]),
    ("c", 1, "Where is Bert?", ["Paris"]), ("d", 0, "Who is John?", []),
)  # fmt: skip
SETTINGS = {"kind": "question_answering", "sequence_length": 32, "max_query_length": 6, "stride": 4}


@functools.cache
def tokenizer(layout="bert"):
    """One for all tests, since nothing changes it and its graphs are slow to make; with another layout a copy of it."""
    if layout == "bert":
        return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=True)
    other = copy.copy(tokenizer())
    other.layout_name, other.layout = layout, build_layout(layout, other.cls_id, other.sep_id)
    return other


def encoder(**sizes):
    keras.utils.set_random_seed(0)
    # Wider than the published initializer_range of 0.02: spans must differ by more than rounding.
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.3}
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32} | sizes
    return BertEncoder(BertConfig(tokenizer().vocabulary_size, **rates, **sizes), pooler=False)


def task(layout="bert", **settings):
    return build_task(SETTINGS | settings, tokenizer(layout))


def squad(questions=QUESTIONS, contexts=CONTEXTS):
    """The content of a SQuAD 2.0 file."""
    paragraphs = [{"context": context, "qas": []} for context in contexts]
    for name, number, question, answers in questions:
        starts = [contexts[number].index(text) for text in answers]
        given = [{"text": text, "answer_start": start} for text, start in zip(answers, starts)]
        row = {"id": name, "question": question, "answers": given, "is_impossible": not given}
        paragraphs[number]["qas"].append(row)
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}


def write_squad(path, **content):
    path.write_text(json.dumps(squad(**content), ensure_ascii=False), encoding="utf-8")
    return path
