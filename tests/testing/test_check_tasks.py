"""Every task in the list passes the public check, its export included."""

import pytest

from bert_tf.tasks import TASKS
from bert_tf.testing import check_task, small_encoder, small_tokenizer

FILES = {
    "classification": ("a.tsv", "text\tlabel\na good film\tpos\nbad\tneg\ngood , good\tpos\na bad bad film\tneg\n"),
    "regression": ("a.tsv", "text\tlabel\na good film\t3\nbad\t1.5\ngood , good\t5\n"),
    "tagging": ("a.conll", "Anna B-PER\nmet O\nPaul B-PER\n\nin O\nParis B-LOC\n\ngood O\n"),
}


# Of tasks that another test registered in this process there are no files here.
@pytest.mark.parametrize("name", FILES)
def test_tasks(name, tmp_path):
    path = tmp_path / FILES[name][0]
    path.write_text(FILES[name][1])
    tokenizer = small_tokenizer("a good bad film in paris anna paul met one")
    check_task(TASKS[name], path, small_encoder(tokenizer), tokenizer, tmp_path)


def test_every_task_of_the_library_is_checked():
    own = {name for name, record in TASKS.items() if isinstance(record.task, str)}
    assert own == FILES.keys()
