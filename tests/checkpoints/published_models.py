"""Folders of fine-tuned models as transformers saves them, put together from tests/fixtures (tests/golden/finetuned.py)."""

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

FIXTURES = Path(__file__).parents[1] / "fixtures"
SINGLE, PAIR = "the war", ("the war", "a tax")


def golden(family):
    with np.load(FIXTURES / "finetuned" / f"{family}.npz") as file:
        return dict(file)


def published(family, name, folder, **changes):
    """Writes the folder of the class `name` ("BertForSequenceClassification"); `changes` of its config.json."""
    arrays, base = golden(family), FIXTURES / "checkpoints" / family
    shutil.copytree(base, folder)
    tensors = load_file(base / "model.safetensors")
    tensors |= {key.split("/")[2]: array for key, array in arrays.items() if key.startswith(f"{name}/head/")}
    save_file({key: tensors[key] for key in arrays[f"{name}/names"].tolist()}, folder / "model.safetensors")
    config = json.loads(str(arrays[f"{name}/config"])) | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))
    return folder
