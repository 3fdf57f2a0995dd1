"""The notebooks run from top to bottom, at small size and with the first lines of each file."""

import itertools
import json
import os
import re
from pathlib import Path

import keras
import nbformat
import pytest
from keep_outputs import FOLDER, MARKER, fingerprint
from nbclient import NotebookClient
from stand_in_server import serving

import bert_tf
from bert_tf import samples
from bert_tf.models import BertConfig, BertEncoder, GPT2Config, GPT2Decoder
from bert_tf.objectives import CausalLM, MaskedLM
from bert_tf.tokenizers import train_byte_level_bpe, train_wordpiece
from bert_tf.tokenizers.special_tokens import GPT2_ROLES
from tfrecords import read_texts

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32, "max_positions": 128}


@pytest.fixture(scope="module")
def texts():
    return [text[:20_000] for text in read_texts(samples.STATE_OF_THE_UNION)][:3]


@pytest.fixture(scope="module")
def bert(texts, tmp_path_factory):
    """A directory as Hugging Face has it, of a BERT with its masked LM head."""
    tokenizer = train_wordpiece(texts, 300, lowercase=True)
    keras.utils.set_random_seed(0)
    model = MaskedLM(BertEncoder(BertConfig(tokenizer.vocabulary_size, **SIZES), pooler=False))
    bert_tf.save(model, tokenizer, folder := tmp_path_factory.mktemp("bert"))
    return folder


@pytest.fixture(scope="module")
def gpt2(texts, tmp_path_factory):
    tokenizer = train_byte_level_bpe(texts, 300, role_tokens=GPT2_ROLES, layout="none", normalization=None)
    model = CausalLM(GPT2Decoder(GPT2Config(tokenizer.vocabulary_size, **SIZES | {"num_layers": 1})))
    bert_tf.save(model, tokenizer, folder := tmp_path_factory.mktemp("gpt2"))
    return folder


@pytest.fixture(scope="module")
def kernel():
    """One process for all notebooks, since each would import TensorFlow again."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=300)
    with client.setup_kernel():
        yield client


@pytest.fixture
def execute(kernel, tmp_path):
    """Function that runs a notebook with environment variables, and a cell after the one that names the data."""

    def run(name, extra="", kernel=kernel, **settings):
        settings = {"OUTPUT": tmp_path / "out", "EPOCHS": 1} | settings
        environment = {f"BERT_TF_{setting}": str(value) for setting, value in settings.items()}
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        if extra:
            for split, path in samples.REVIEWS.items():
                lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:33]
                (tmp_path / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
            texts = (json.dumps({"text": text[:8000]}) + "\n" for text in read_texts(samples.STATE_OF_THE_UNION))
            (tmp_path / "corpus.jsonl").write_text("".join(itertools.islice(texts, 4)), encoding="utf-8")
            (after,) = (i for i, cell in enumerate(notebook.cells) if "import samples" in cell["source"])
            notebook.cells.insert(after + 1, nbformat.v4.new_code_cell(extra))
        # As in a process of its own: no names, and the settings of this notebook alone.
        start = f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})\n"
        start += "for name in [name for name in os.environ if name.startswith('BERT_TF_')]:\n    del os.environ[name]\n"
        notebook.cells.insert(0, nbformat.v4.new_code_cell(f"{start}os.environ |= {environment}\ndel os"))
        kernel.nb = notebook
        kernel.reset_execution_trackers()
        for index, cell in enumerate(notebook.cells):
            kernel.execute_cell(cell, index)
        return notebook.cells[1:]

    return run


def shown(cell):
    """What a cell shows last, its value or what it has printed, as text."""
    data = cell["outputs"][-1].get("data", {})
    printed = "".join(output["text"] for output in cell["outputs"] if output.get("name") == "stdout")
    return data.get("text/markdown") or data.get("text/plain") or printed


FEW_TEXTS = "CORPUS = [Path('corpus.jsonl')]"
FEW_LABELS = "LABELLED = {split: Path(f'{split}.tsv') for split in LABELLED}"


@pytest.mark.slow
def test_quickstart(execute, tmp_path):
    cells = execute("quickstart", f"{FEW_TEXTS}; {FEW_LABELS}", STEPS=10)
    assert "probabilities" in shown(cells[-1]) and "label" in shown(cells[-1])
    assert sorted(os.listdir(tmp_path / "out")) == ["pretrained", "reviews.txt", "sentiment", "shards", "tokenizer"]


@pytest.mark.slow
def test_pretraining(execute, tmp_path):
    few = f"{FEW_TEXTS}; RECIPE = 'pretrain/bert_tiny'"
    cells = execute("pretraining", few, STEPS=4, VOCABULARY=300)
    assert shown(cells[-2]).count("('") == 5  # tokens for the mask
    assert (tmp_path / "out" / "pretrained" / "report.html").exists()


@pytest.mark.slow
def test_pretraining_on_jax(execute, monkeypatch, tmp_path):
    """As on a TPU, in a process of its own: a backend is chosen once."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=300)
    with client.setup_kernel():
        few = f"{FEW_TEXTS}; RECIPE = 'pretrain/bert_tiny'"
        cells = execute("pretraining", few, client, STEPS=4, VOCABULARY=300)
    assert shown(cells[-2]).count("('") == 5
    assert shown(cells[6]) == "Strategy with 1 replica(s)\n"  # TensorFlow's have longer names


@pytest.mark.slow
def test_fine_tuning_and_serving(execute, bert, tmp_path):
    with serving(tmp_path / "out" / "export", "sentiment") as (rest, grpc):
        cells = execute("fine_tuning_and_serving", FEW_LABELS, CHECKPOINT=bert, REST=rest, GRPC=grpc)
    by_rest, by_grpc = shown(cells[-2]), shown(cells[-1])
    assert by_rest == by_grpc and by_rest.count("'") == 4
    (predicted,) = (cell for cell in cells if "model.predict" in cell["source"])
    assert [f"'label': {label}" in shown(predicted) for label in set(by_rest.strip("[]").split(", "))]


@pytest.mark.slow
def test_distillation(execute, bert):
    cells = execute("distillation", FEW_LABELS, CHECKPOINT=bert, LAYERS="[0]")
    (table,) = (cell for cell in cells if "Markdown" in cell["source"])
    rows = [line.split("|")[1].strip() for line in shown(table).splitlines()[2:]]
    assert rows == ["teacher", "student", "student alone"]


@pytest.mark.slow
def test_generation(execute, gpt2, tmp_path):
    cells = execute("generation", CHECKPOINT=gpt2, NEW_TOKENS=3)
    (ways,) = (cell for cell in cells if "ways.items()" in cell["source"])
    written = dict(line.split(": ", 1) for line in shown(ways).splitlines())
    assert list(written) == ["greedy", "sample", "beam_search"]
    assert shown(cells[-1]) == written["greedy"]  # served
    assert (tmp_path / "out" / "1" / "saved_model.pb").exists()


@pytest.mark.slow
def test_ladder(execute, tmp_path):
    rows = ["gpt"]
    cells = execute("ladder", f"{FEW_TEXTS}; {FEW_LABELS}", STEPS=2, VOCABULARY=500, ROWS=" ".join(rows))
    rungs, bank = (shown(cell).splitlines()[2:] for cell in cells if "Markdown" in cell["source"])
    assert [line.split(" | ")[0] for line in rungs] == [f"| {row}" for row in rows]
    assert [line.split(" | ")[0] for line in bank] == [f"| {row}" for row in rows]
    assert (tmp_path / "out" / "study" / "report.html").exists()


@pytest.mark.slow
def test_probing(execute, bert, tmp_path):
    cells = execute("probing", CHECKPOINT=bert, QUESTIONS=10)
    assert "median rank" in "".join(shown(cell) for cell in cells if cell["cell_type"] == "code" and cell["outputs"])
    assert (tmp_path / "out" / "attention.html").stat().st_size > 10_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_is_tested_listed_and_installs_alike(path):
    cells = nbformat.read(path, as_version=4).cells
    quickstart = nbformat.read(FOLDER / "quickstart.ipynb", as_version=4).cells
    assert path.stem == "pretraining" or cells[2]["source"] == quickstart[2]["source"]
    assert f"test_{path.stem}" in globals() and f"({path.name})" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_in_the_file_are_of_this_code(path):
    notebook = nbformat.read(path, as_version=4)
    again = f"run tests/colab/keep_outputs.py FOLDER {path.stem}"
    assert notebook.metadata.get("outputs_of") == fingerprint(notebook), again
    assert MARKER in notebook.cells[0]["source"], again
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert outputs and not any(output.output_type == "error" or output.get("name") == "stderr" for output in outputs)
    assert not re.search(r"(^|[\s'\"(])/(\w+/)+", json.dumps(outputs)), "a path of the machine where it ran"


def test_on_a_tpu_it_installs_around_tensorflow_tpu_or_jax(monkeypatch):
    cell = nbformat.read(FOLDER / "quickstart.ipynb", as_version=4).cells[2]
    commands = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("glob.glob", lambda pattern: ["/dev/accel0"] if "accel" in pattern else [])
    monkeypatch.setattr("subprocess.run", lambda command, check: commands.append(command[command.index("-q") + 1 :]))
    root = FOLDER.parent
    monkeypatch.setenv("BERT_TF_SOURCE", str(root))
    exec(cell["source"], {})
    lists = [str(root / "requirements" / name) for name in ("tpu.txt", "tpu-no-deps.txt")]
    assert commands == [["-r", lists[0]], ["--no-deps", "-r", lists[1], str(root)]]
    assert all(Path(path).is_file() for path in lists)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    commands.clear()
    exec(nbformat.read(FOLDER / "pretraining.ipynb", as_version=4).cells[2]["source"], {})
    assert commands == [[f"{root}[tpu]"]] and os.environ["KERAS_BACKEND"] == "jax"
