"""Writing a model in another library's format."""

import os
import shutil
from pathlib import Path

from bert_tf.checkpoints import hugging_face, tensorflow1
from bert_tf.checkpoints.families import HF, TF1
from bert_tf.config import nearest
from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.files import explain_disk_errors
from bert_tf.models.building import describe
from bert_tf.models.weights import export_weights

FORMATS = {"hf": HF, "tf1": TF1}


def write_checkpoint(model, encoder, tokenizer, path, format="hf"):
    """Writes a folder that the originals' loaders open; whole, or not at all.

    Args:
        model: what is written: the encoder itself, or an objective around it with its heads.
        encoder: the encoder in it.
        tokenizer: is saved in the same folder; None for none.
        path: a folder that does not exist yet, or is empty.
        format: "hf" (config.json, model.safetensors) or "tf1" (the original authors' checkpoint and
            configuration).

    Raises:
        ConfigError: an unknown format, or a family or setting that the format does not have.
        DataError: a variable without a name in that format, such as the span boundary head's.
        RunDirectoryError: the folder holds something, or cannot be written.
    """
    if format not in FORMATS:
        raise ConfigError(f"there is no format '{format}'{nearest(format, FORMATS)}")
    family = describe(encoder.config)["family"]
    if family not in FORMATS[format]:
        raise ConfigError(f"'{family}' has no checkpoints of format '{format}'{nearest(family, FORMATS[format])}")
    weights = export_weights(model, FORMATS[format][family].weights)
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunDirectoryError(f"{path} exists and is not an empty folder; choose another")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explain_disk_errors(path):
        try:
            temporary.mkdir(parents=True)
            if format == "hf":
                parts = {v.path.split("/", 1)[0] for v in model.weights}
                hugging_face.write(temporary, family, encoder.config, weights, parts, tokenizer)
            else:
                tensorflow1.write(temporary, family, encoder.config, weights, tokenizer)
            os.replace(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return path
