"""Every task in the list passes the public check, its export included."""

import json

import keras
import pytest

from bert_tf.models import BertConfig, BertEncoder
from bert_tf.tasks import TASKS, Classifier, TaskModel
from bert_tf.testing import check_task
from bert_tf.tokenizers import WordPieceTokenizer

ENTITIES = [{"start": start, "end": end} for start, end in ((0, 3), (9, 12), (17, 21))]
QUERIES = [
    {"query": "@placeholder met paul", "answers": [{"text": "anna"}]},
    {"query": "in @placeholder", "answers": [{"text": "paris"}]},
]
#: Kind -> lines of a file, or objects of a .jsonl file.
FILES = {
    "classification": "text\tlabel\na good film\tpos\nbad\tneg\ngood , good\tpos\na bad bad film\tneg\n",
    "regression": "text\tlabel\na good film\t3\nbad\t1.5\ngood , good\t5\n",
    "tagging": "Anna B-PER\nmet O\nPaul B-PER\n\nin O\nParis B-LOC\n\ngood O\n",
    "multi_label": [
        {"text": "a good film", "labels": ["joy", "love"]}, {"text": "bad", "labels": []},
        {"text": "good , good", "labels": "joy"}, {"text": "paul", "labels": None},
    ],
    "multiple_choice": [
        {"context": "a good", "options": ["film", "bad , bad"], "label": 0},
        {"question": "anna met", "options": ["paul", "one", "a film in paris"], "label": "2"},
        {"context": "paul", "question": "in", "options": ["good", "paris ,"], "label": 1},
    ],
    "record": [
        {"passage": {"text": "anna met paul in paris", "entities": ENTITIES}, "qas": QUERIES},
        {"passage": "a good film", "entities": ["film", "one"], "query": "a @placeholder", "answers": ["film"]},
    ],
    "word_pair": [
        {"sentence1": "a good film", "start1": 2, "end1": 6, "sentence2": "good , bad", "start2": 0, "end2": 4, "label": True},
        {"sentence1": "bad one", "start1": 0, "end1": 3, "sentence2": "a film in paris", "start2": 2, "end2": 6, "label": "false"},
        {"sentence1": "paul met anna", "start1": 5, "end1": 8, "sentence2": "anna met", "start2": 5, "end2": 8, "label": True},
    ],
}  # fmt: skip
FROZEN = {"name": "scalar_mix", "lstm_layers": 1, "lstm_units": 4, "mix_at": "both", "mix_l2": 0.1}
#: What stands between the model and the head of some; the plain heads of these kinds have their tests of exports.
BETWEEN = {"multiple_choice": {"frozen_layers": FROZEN}, "regression": {"head": {"name": "bilstm", "dropout": 0.0}}}
SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
# Wider than the published initializer_range of 0.02: answers must differ by more than rounding.
SETTINGS = SIZES | {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2}


def write(name, folder):
    content = FILES[name]
    path = folder / {"tagging": "a.conll"}.get(name, "a.tsv" if isinstance(content, str) else "a.jsonl")
    path.write_text(content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content))
    return path


def check(name, folder, **settings):
    words = "a good bad film in paris anna paul met one ,".split()
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    keras.utils.set_random_seed(0)
    encoder = BertEncoder(BertConfig(tokenizer.vocabulary_size, **SETTINGS))
    check_task(TASKS[name], write(name, folder), encoder, tokenizer, folder, **settings)


# Of tasks that another test registered in this process there are no files here.
@pytest.mark.slow_except("classification")
@pytest.mark.parametrize("name", FILES)
def test_tasks(name, tmp_path):
    check(name, tmp_path, **BETWEEN.get(name, {}))


def test_a_model_that_forgets_an_argument_in_its_settings_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(Classifier, "get_config", TaskModel.get_config)
    with pytest.raises(AssertionError, match="embeddings/"):  # the next update is without the weights of the labels
        check("classification", tmp_path, loss={"class_weights": [1.0, 3.0]})


def test_every_task_of_the_library_is_checked():
    own = {name for name, record in TASKS.items() if not isinstance(record.task, type)}
    # Two in tests/tasks; multirc is classification with files and scores of its own, which test_multirc.py tests.
    assert own == FILES.keys() | {"text_to_text", "question_answering", "multirc"}
