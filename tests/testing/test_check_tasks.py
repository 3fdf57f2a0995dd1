"""Every task in the list passes the public check, its export included."""

import keras
import pytest

from bert_tf.models import BertConfig, BertEncoder, GPT1Config, GPT1Decoder
from bert_tf.tasks import TASKS
from bert_tf.testing import check_task
from bert_tf.tokenizers import WordPieceTokenizer, train_bpe
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES

FILES = {
    "classification": ("a.tsv", "text\tlabel\na good film\tpos\nbad\tneg\ngood , good\tpos\na bad bad film\tneg\n"),
    "multi_label": (
        "a.jsonl",
        """{"text": "a good film", "labels": ["joy", "love"]}
{"text": "bad", "labels": []}
{"text": "good , good", "labels": "joy"}
{"text": "paul", "labels": null}
""",
    ),
    "regression": ("a.tsv", "text\tlabel\na good film\t3\nbad\t1.5\ngood , good\t5\n"),
    "multiple_choice": (
        "a.jsonl",
        """{"context": "a good", "options": ["film", "bad , bad"], "label": 0}
{"question": "anna met", "options": ["paul", "one", "a film in paris"], "label": "2"}
{"context": "paul", "question": "in", "options": ["good", "paris ,"], "label": 1}
""",
    ),
    "multirc": (
        "a.jsonl",
        '{"passage": {"text": "anna met paul in paris", "questions": [{"question": "in", "answers": [{"text": "paris", '
        '"label": 1}, {"text": "a film", "label": 0}]}, {"question": "met", "answers": [{"text": "paul", "label": 1}]}]}}\n',
    ),
    "record": (
        "a.jsonl",
        '{"passage": {"text": "anna met paul in paris", "entities": [{"start": 0, "end": 3}, {"start": 9, "end": 12}, {"start": 17, '
        '"end": 21}]}, "qas": [{"query": "@placeholder met paul", "answers": [{"text": "anna"}]}, {"query": "in @placeholder", '
        '"answers": [{"text": "paris"}]}]}\n{"passage": "a good film", "entities": ["film", "one"], "query": "a @placeholder", '
        '"answers": ["film"]}\n',
    ),
    "word_pair": (
        "a.jsonl",
        """{"sentence1": "a good film", "start1": 2, "end1": 6, "sentence2": "good , bad", "start2": 0, "end2": 4, "label": true}
{"sentence1": "bad one", "start1": 0, "end1": 3, "sentence2": "a film in paris", "start2": 2, "end2": 6, "label": "false"}
{"sentence1": "paul met anna", "start1": 5, "end1": 8, "sentence2": "anna met", "start2": 5, "end2": 8, "label": true}
""",
    ),
    "tagging": ("a.conll", "Anna B-PER\nmet O\nPaul B-PER\n\nin O\nParis B-LOC\n\ngood O\n"),
}


SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
# Wider than the published initializer_range of 0.02: answers must differ by more than rounding.
SETTINGS = SIZES | {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2}


# Of tasks that another test registered in this process there are no files here.
@pytest.mark.slow_except("classification", "tagging")
@pytest.mark.parametrize("name", FILES)
def test_tasks(name, tmp_path):
    check(name, tmp_path)


FEATURES = {"features": "scalar_mix", "lstm_layers": 1, "lstm_units": 4, "mix_at": "both", "mix_l2": 0.1}


@pytest.mark.slow_except("multiple_choice")
@pytest.mark.parametrize("name", FILES)
def test_tasks_on_features_of_a_frozen_model(name, tmp_path):
    check(name, tmp_path, **FEATURES)


def check(name, tmp_path, **settings):
    path = tmp_path / FILES[name][0]
    path.write_text(FILES[name][1])
    words = "a good bad film in paris anna paul met one ,".split()
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    keras.utils.set_random_seed(0)
    encoder = BertEncoder(BertConfig(tokenizer.vocabulary_size, **SETTINGS))
    check_task(TASKS[name], path, encoder, tokenizer, tmp_path, **settings)


@pytest.mark.slow
def test_tagging_on_a_decoder(tmp_path):
    path = tmp_path / FILES["tagging"][0]
    path.write_text(FILES["tagging"][1])
    tokenizer = train_bpe(
        ["a good bad film in paris anna paul met one ,"] * 3, 40, cleaning="gpt1", role_tokens=GPT1_ROLES, layout="none"
    )
    keras.utils.set_random_seed(0)
    decoder = GPT1Decoder(GPT1Config(tokenizer.vocabulary_size, **SETTINGS))
    check_task(TASKS["tagging"], path, decoder, tokenizer, tmp_path, lm_weight=0.5)


def test_every_task_of_the_library_is_checked():
    own = {name for name, record in TASKS.items() if isinstance(record.task, str)}
    assert own == FILES.keys() | {"text_to_text", "question_answering"}  # in tests/tasks
