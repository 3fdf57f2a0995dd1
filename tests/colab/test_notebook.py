"""The notebook runs from top to bottom, at small size and with the first lines of each file."""

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from bert_tf import samples

NOTEBOOK = Path(__file__).parent.parent.parent / "colab" / "quickstart.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch):
    settings = {"OUTPUT": tmp_path / "out", "STEPS": 10, "EPOCHS": 1}
    for name, value in settings.items():
        monkeypatch.setenv(f"BERT_TF_{name}", str(value))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    files = {"corpus.jsonl": (samples.STATE_OF_THE_UNION, 4)} | {f"{s}.tsv": (p, 200) for s, p in samples.REVIEWS.items()}
    for name, (path, count) in files.items():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:count]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    after = [cell["id"] for cell in notebook.cells].index("cell-4") + 1
    few = "CORPUS, LABELLED = [Path('corpus.jsonl')], {split: Path(f'{split}.tsv') for split in LABELLED}"
    notebook.cells.insert(after, nbformat.v4.new_code_cell(few))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    last = notebook.cells[-1]["outputs"][-1]["data"]["text/plain"]
    assert "probabilities" in last and "label" in last
    assert sorted(os.listdir(tmp_path / "out")) == ["pretrained", "reviews.txt", "sentiment", "shards", "tokenizer"]


def test_it_is_committed_without_outputs():
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs"), cell["id"]


def test_on_a_tpu_it_installs_around_tensorflow_tpu(monkeypatch):
    (cell,) = (cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell["id"] == "cell-2")
    commands = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("glob.glob", lambda pattern: ["/dev/accel0"] if "accel" in pattern else [])
    monkeypatch.setattr("subprocess.run", lambda command, check: commands.append(command[command.index("-q") + 1 :]))
    monkeypatch.setenv("BERT_TF_SOURCE", str(NOTEBOOK.parent.parent))
    exec(cell["source"], {})
    root = NOTEBOOK.parent.parent
    lists = [str(root / "requirements" / name) for name in ("tpu.txt", "tpu-no-deps.txt")]
    assert commands == [["-r", lists[0]], ["--no-deps", "-r", lists[1], str(root)]]
    assert all(Path(path).is_file() for path in lists)
