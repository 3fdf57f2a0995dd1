"""Every task in the list, and every served model, passes the public checks."""

import keras
import pytest

from bert_tf.export import ServedEmbedding, ServedMaskedLM
from bert_tf.models.bert import BertConfig, BertEncoder
from bert_tf.objectives import MaskedLM
from bert_tf.tasks import TASKS
from bert_tf.testing import check_export, check_task
from bert_tf.tokenizers import WordPieceTokenizer

FILES = {
    "classification": ("a.tsv", "text\tlabel\na good film\tpos\nbad\tneg\ngood , good\tpos\na bad bad film\tneg\n"),
    "regression": ("a.tsv", "text\tlabel\na good film\t3\nbad\t1.5\ngood , good\t5\n"),
    "tagging": ("a.conll", "Anna B-PER\nmet O\nPaul B-PER\n\nin O\nParis B-LOC\n\ngood O\n"),
}


@pytest.fixture(scope="module")
def tokenizer():
    words = "a good bad film in paris anna paul met one ,".split()
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])


@pytest.fixture
def encoder(tokenizer):
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
    none = {"dropout": 0.0, "attention_dropout": 0.0}
    # Wider than the published 0.02: answers must differ by more than rounding.
    return BertEncoder(BertConfig(tokenizer.vocabulary_size, **sizes, **none, initializer_range=0.2))


# Of tasks that another test registered in this process there are no files here.
@pytest.mark.parametrize("name", FILES)
def test_tasks(name, encoder, tokenizer, tmp_path):
    path = tmp_path / FILES[name][0]
    path.write_text(FILES[name][1])
    check_task(TASKS[name], path, encoder, tokenizer, tmp_path)


def test_every_task_of_the_library_is_checked():
    own = {name for name, record in TASKS.items() if isinstance(record.task, str)}
    assert own == FILES.keys()


def test_embeddings(encoder, tokenizer, tmp_path):
    check_export(ServedEmbedding(encoder, tokenizer, 32), tmp_path)


def test_masked_lm(encoder, tokenizer, tmp_path):
    texts = ("a [MASK] film", "", "[MASK] , [MASK]", "good")
    check_export(ServedMaskedLM(MaskedLM(encoder), tokenizer, 32), tmp_path, texts)
