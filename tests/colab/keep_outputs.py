"""Runs notebooks of colab/ with real models and writes their outputs into the files:

    python tests/colab/keep_outputs.py FOLDER quickstart probing ...

FOLDER is where they run and what they write stays; their pretrained models lie there, see `MODELS`. The first cell says
with which settings the outputs were made. A test fails where a notebook was changed afterwards.
"""

import contextlib
import hashlib
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent.parent / "colab"
#: Published models, or runs, that have to lie in the folder.
MODELS = dict.fromkeys(("fine_tuning_and_serving", "distillation"), "all-MiniLM-L6-v2")
MODELS |= {"generation": "gpt", "probing": "quickstart/pretrained"}
#: What differs from the defaults, so that each is done in minutes on a CPU.
SETTINGS = {"quickstart": {}, "generation": {}, "probing": {}, "pretraining": {"STEPS": 150}}
SETTINGS |= {"fine_tuning_and_serving": {"EPOCHS": 1}, "distillation": {"EPOCHS": 1, "LAYERS": "[1, 3, 5]"}}
SETTINGS |= {"ladder": {"STEPS": 150, "EPOCHS": 1, "ROWS": "word_vectors lm_lstm gpt bert"}}
MARKER = "\n\n*The outputs below"


def fingerprint(notebook):
    """Of the code that was run: str."""
    return hashlib.sha256(
        "\n\n".join(c["source"] for c in notebook.cells if c["cell_type"] == "code").encode()
    ).hexdigest()


def kept(cell):
    """The outputs of a cell without TensorFlow's messages and without stderr, which has the paths of this machine."""
    outputs = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    return [output for output in outputs if not output.get("text", "").startswith("INFO:tensorflow:")]


@contextlib.contextmanager
def server(name, folder):
    """The addresses of a stand-in for TensorFlow Serving, for the notebook that asks one."""
    if name != "fine_tuning_and_serving":
        yield {}
        return
    import tensorflow_text  # noqa: F401  the operators in the SavedModel
    from stand_in_server import serving

    with serving(folder / "sentiment" / "export", "sentiment") as (rest, grpc):
        yield {"REST": rest, "GRPC": grpc}


def keep_outputs(name, folder):
    path, settings = FOLDER / f"{name}.ipynb", dict(SETTINGS[name])
    if name in MODELS:
        settings["CHECKPOINT"] = MODELS[name]
    notebook = nbformat.read(path, as_version=4)
    first, metadata = notebook.cells[0], dict(notebook.metadata)
    first["source"] = first["source"].partition(MARKER)[0]
    with server(name, folder) as addresses:
        os.environ |= {f"BERT_TF_{key}": str(value) for key, value in (settings | addresses).items()}
        NotebookClient(notebook, timeout=7200, resources={"metadata": {"path": str(folder)}}).execute()
    for key in settings | addresses:
        del os.environ[f"BERT_TF_{key}"]
    for cell in notebook.cells:
        cell["metadata"].pop("execution", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = kept(cell)
    changed = ", ".join(f"`BERT_TF_{key}={value}`" for key, value in settings.items())
    first["source"] += (
        f"{MARKER} are those of a CPU, {f'with {changed}' if changed else 'with the settings as they are'}.*"
    )
    notebook["metadata"] = metadata | {"outputs_of": fingerprint(notebook)}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    for name in sys.argv[2:]:
        keep_outputs(name, folder)
        print(name, flush=True)
