"""The files of a run directory, damaged: every reader of runs gives an answer or a UserError."""

import json
import shutil
from pathlib import Path

import pytest
from damage import answer_or_user_error, as_json, cases, damaged, damaged_bytes
from hypothesis import given
from hypothesis import strategies as st

import bert_tf
from bert_tf.models.families import build_config
from bert_tf.tasks import load_task
from bert_tf.tasks.build import build_task
from bert_tf.training.run_directory import RunDirectory

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with every small file that a run may have."""
    run = tmp_path_factory.mktemp("whole") / "run"
    bert_tf.load(FIXTURE).save(run, format="run")
    tokenizer = RunDirectory.open(run).tokenizer()
    (run / "metrics.jsonl").write_text('{"step": 3, "loss": 2.5}\n{"step": 6, "loss": 2.25}\n')
    build_task({"labels": ["0", "1"]}, tokenizer).save(run)
    summary = {"metric": "accuracy", "best": ".", "seeds": [], "dev": {"mean": {"accuracy": 0.5}}, "warnings": []}
    (run / "summary.json").write_text(json.dumps(summary))
    read(run)
    return run


def read(path):
    """What evaluate, export and finetune --init-from read of a run before its weights."""
    run = RunDirectory.open(path)
    build_config(run.section("model"))
    assert all("step" in line for line in run.metrics())
    run.checkpoints.latest()
    load_task(path, run.tokenizer())


@cases(100)
@given(st.data())
def test_files_of_a_run(whole, tmp_path_factory, data):
    files = [path for path in whole.rglob("*") if path.suffix in (".json", ".jsonl", ".yaml", ".txt")]
    names = [path.relative_to(whole) for path in files if path.is_file()]
    name = data.draw(st.sampled_from(sorted(names)))
    run = tmp_path_factory.getbasetemp() / "damaged_run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(whole, run)
    content = (whole / name).read_bytes()
    if name.suffix == ".json" and data.draw(st.booleans()):
        content = as_json(data.draw(damaged(json.loads(content)))).encode()
    else:
        content = data.draw(damaged_bytes(content))
    (run / name).write_bytes(content)
    with answer_or_user_error():
        read(run)
