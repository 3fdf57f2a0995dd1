"""Every published format: weights and outputs of what is loaded from it, and the files that are written in it."""

import json
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf.models import FAMILIES
from reference_parts import library
from reference_parts.model_cases import MODELS, inputs, load

#: (family, format) -> the model that is written in that format, too; other formats are those of `models`.
WRITTEN = {("bert", "tf1"): "bert", ("albert", "tf1"): "albert", ("xlnet", "tf1"): "xlnet"}
WRITTEN |= {(family, "keras_hub"): family for family in ("bert", "roberta", "albert", "distilbert", "electra", "gpt2")}
#: Folders of tests/fixtures that other libraries wrote: (folder, whether it has pretraining heads).
FIXTURES = (
    ("checkpoints/bert", True), ("checkpoints/bert_sharded", True), ("checkpoints/bert_bare", False),
    ("checkpoints/distilbert", True), ("checkpoints/electra", True), ("checkpoints/electra_generator", True),
    ("checkpoints/roberta", True), ("checkpoints/albert", True), ("checkpoints/xlnet", True),
    ("checkpoints/modernbert", True), ("checkpoints/gpt2", True), ("checkpoints/gpt2_bare", False),
    ("checkpoints/gpt1", True), ("checkpoints/garden_encoder", False), ("checkpoints/garden_pretrainer", True),
    ("elmo", False),
)  # fmt: skip
#: Formats of families whose cases are fixtures, here or in tests/checkpoints/test_keras_hub.py.
FROM_FIXTURES = {("bert", "garden"), ("t5", "keras_hub"), ("xlnet", "keras_hub")}
VECTORS = ("word2vec", "word2vec_binary", "glove")
#: Families with fine-tuned classes in tests/fixtures/finetuned.
FINETUNED = ("bert", "roberta", "albert", "electra", "distilbert", "xlnet", "modernbert", "gpt2", "gpt1")
SENTENCE = "the people of the united states, and the government"


def missing():
    own = {(model.family, model.format) for model in MODELS.values() if model.format}
    for name, record in FAMILIES.items():
        for format in record.formats():
            if (name, format) not in own | WRITTEN.keys() | FROM_FIXTURES:
                yield f"format {format} of {name}"


def cases(room):
    for (family, format), name in WRITTEN.items():
        yield f"{family}_{format}", lambda name=name, format=format: opened(room, name, format)
    for format in VECTORS:
        yield f"vectors_{format}", lambda format=format: vectors(room, format)
    for folder, heads in FIXTURES:
        yield f"fixtures/{folder.rpartition('/')[2]}", lambda folder=folder, heads=heads: fixture(room, folder, heads)
    for family in FINETUNED:
        with np.load(room.copied(f"finetuned/{family}.npz")) as file:
            names = sorted({key.partition("/")[0] for key in file.files if key.endswith("/config")})
        for name in names:
            yield f"finetuned/{name}", lambda family=family, name=name: finetuned(room, family, name)
    for name, model in MODELS.items():
        if model.format:
            yield f"written/{name}", lambda name=name: written(room, name)
    yield "run", lambda: run(room)


def weights_of(encoder, source):
    arrays = {path: np.asarray(variable) for path, variable in library.by_path(encoder).items()}
    found = library.published(source, arrays)
    return {name: library.sha256(found[name]) for name in sorted(found)}


def opened(room, name, format):
    """A model in another format than that of `models`: the weights under that format's names, and its outputs."""
    model = MODELS[name]

    def make(path):
        encoder, tokenizer, objective, _ = load(room, name, pretraining=bool(model.objective))
        if format == "keras_hub":
            bert_tf.save(encoder, tokenizer, path, format, approximate=True)
        else:
            bert_tf.save(objective or encoder, tokenizer, path, format)

    folder = room.made(f"formats/{name}_{format}", make)
    encoder, tokenizer, _, source = library.load(folder)
    rows = inputs(room, name, encoder)["padded"]
    return {
        "weights": weights_of(encoder, source),
        "fingerprint_of_ids": tokenizer.encode(SENTENCE),
        "outputs": library.numpy(encoder(rows)),
    }


def vectors(room, format):
    """A file of word vectors: its words, and their vectors."""

    def make(path):
        encoder, tokenizer, *_ = load(room, "word_vectors", pooler=False)
        bert_tf.save(encoder, tokenizer, path, format)

    encoder, tokenizer, *_ = library.load(room.made(f"formats/vectors_{format}", make))
    ids = np.arange(min(200, tokenizer.vocabulary_size), dtype="int32")[None]
    outputs = encoder({"token_ids": ids})
    return {"words": list(tokenizer.vocabulary), "vectors": np.asarray(outputs["sequence_output"])}


def fixture(room, folder, heads):
    """What another library wrote: all that `load` makes of it."""
    path = room.copied(folder)
    encoder, tokenizer, objective, source = library.load(path, pretraining=heads)
    if folder == "elmo":
        rows = {"token_ids": tokenizer.tokenize([SENTENCE]).to_tensor().numpy()}
    else:
        with np.load(path / "expected.npz") as file:
            rows = {key: file[key] for key in ("token_ids", "segment_ids", "padding_mask")}
    rows = {key: rows[key] if key == "padding_mask" else rows[key].astype("int32") for key in rows}
    outputs = encoder(rows)
    found = {
        "ids": np.asarray(tokenizer.encode(SENTENCE)),
        "weights": weights_of(objective or encoder, source),
        "outputs": library.numpy(outputs),
    }
    if hasattr(encoder, "output_logits"):
        found["logits"] = np.asarray(encoder.output_logits(outputs["sequence_output"]))
    elif heads and objective.settings.name == "masked_lm":
        positions = np.tile(np.arange(4, dtype="int32"), (len(rows["token_ids"]), 1))
        found["logits"] = library.numpy(objective(rows | {"mask_positions": positions}))
    return found


def finetuned(room, family, name):
    """A fine-tuned class of Hugging Face: its task, and its answers."""

    def make(path):
        base = room.copied(f"checkpoints/{family}")
        with np.load(room.copied(f"finetuned/{family}.npz")) as file:
            arrays = dict(file)
        shutil.copytree(base, path)
        tensors = load_file(base / "model.safetensors")
        tensors |= {key.split("/")[2]: array for key, array in arrays.items() if key.startswith(f"{name}/head/")}
        save_file({key: tensors[key] for key in arrays[f"{name}/names"].tolist()}, path / "model.safetensors")
        (path / "config.json").write_text(str(arrays[f"{name}/config"]))

    opened = bert_tf.load(room.made(f"finetuned/{name}", make))
    task, model = opened.task, opened.model
    first, second = ["the people of the united states", "a tax"], ["tax", "law"]
    given = {
        "multiple_choice": [{"context": a, "options": second} for a in first],
        "question_answering": list(zip(second, [f"{text} of the states" for text in first])),
    }
    answers = task.predict(model, given.get(task.kind, first))
    head = {path: v for path, v in library.by_path(model).items() if path not in library.by_path(model.backbone)}
    return {
        "kind": task.kind,
        "labels": list(task.labels or ()),
        "answers": answers,
        "head": library.named({path: np.asarray(variable) for path, variable in head.items()}),
    }


def written(room, name):
    """The folder that `save` writes: each array, the configuration and the files of the tokenizer."""
    from reference_parts.tokenizers import files

    model = MODELS[name]
    encoder, tokenizer, objective, _ = load(room, name, pretraining=bool(model.objective))
    folder = room.scratch / "written" / name
    bert_tf.save(objective or encoder, None if model.format == "bilm" else tokenizer, folder, model.format)
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        arrays = load_file(path)
        where = str(path.parent.relative_to(folder))
        found[f"arrays/{where}"] = {key: library.sha256(arrays[key]) for key in sorted(arrays)}
        config = json.loads((path.parent / "config.json").read_text())
        found[f"config/{where}"] = json.dumps(config, sort_keys=True)
        path.unlink()
        (path.parent / "config.json").unlink()
    for path in folder.rglob("*.hdf5"):  # holds the time at which it was written
        path.unlink()
    return found | {"files": files(folder)}


def run(room):
    """A run directory that is made of a published checkpoint and loaded again."""
    load(room, "bert")
    folder = room.scratch / "run"
    loaded = bert_tf.load(room.inputs / "models/bert")
    loaded.save(folder, format="run")
    *_, source = library.load(room.inputs / "models/bert")
    return {"weights": weights_of(loaded.objective, source), "ids": loaded.tokenizer.encode(SENTENCE)}
