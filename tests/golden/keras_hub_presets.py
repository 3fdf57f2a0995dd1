"""Writes tests/fixtures/checkpoints/keras_hub/*.zip: tiny random presets as KerasHub saves them.

Run by hand, in an environment of its own with keras-hub 0.32, TensorFlow and tensorflow-text:

    python tests/golden/keras_hub_presets.py tests/fixtures/checkpoints

Each archive holds a preset, written by `save_to_preset`, and expected.npz: inputs, outputs of the backbone and of the
task, computed by KerasHub in float32; and the ids that its tokenizer gives the sentences. XLNet reads one
sequence: of a batch KerasHub mixes the positions and the padding of the sequences (`ops.reshape` where it must exchange
the axes, in `ContentAndQueryEmbedding` and `XLNetAttentionMaskLayer`).
"""

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import keras
import keras_hub
import numpy as np

SENTENCES = [
    "the people of the united states, and the government",
    "The Café of Naïve WAR.",
    "peace:  tax\n[MASK] 人生",
]
SIZES = dict(num_layers=2, num_heads=3, hidden_dim=12, intermediate_dim=20)
models = keras_hub.models


def backbone(name, vocabulary, **others):
    key = "vocab_size" if name == "Electra" else "vocabulary_size"
    length = {} if name in ("T5", "XLNet") else {"max_sequence_length": 16}
    return getattr(models, f"{name}Backbone")(**{key: vocabulary}, **(SIZES | length | others))


def task(name, kind, tokenizer, vocabulary=None, head={}, **others):  # noqa: B006
    body = backbone(name, vocabulary or tokenizer.vocabulary_size(), **others)
    preprocessor = tokenizer and getattr(models, f"{name}{kind}Preprocessor")(tokenizer, **(
        {"encoder_sequence_length": 16, "decoder_sequence_length": 16} if name == "T5" else {"sequence_length": 16}
    ))  # fmt: skip
    return getattr(models, f"{name}{kind}")(body, preprocessor=preprocessor, **head)


def presets(fixtures):
    """Name -> a task or backbone."""
    bert = [line.rstrip("\n") for line in open(fixtures / "bert" / "vocab.txt", encoding="utf-8")]

    def bpe(name, tokenizer):
        vocabulary = json.loads((fixtures / name / "vocab.json").read_text())
        merges = (fixtures / name / "merges.txt").read_text().splitlines()
        return tokenizer(vocabulary, [merge for merge in merges if not merge.startswith("#")])

    proto = (fixtures / "albert" / "spiece.model").read_bytes()
    return {
        "bert_masked_lm": task("Bert", "MaskedLM", models.BertTokenizer(bert, lowercase=True)),
        "bert_classifier": task("Bert", "TextClassifier", models.BertTokenizer(bert, lowercase=True, strip_accents=True),
                                head={"num_classes": 3}),
        "roberta_masked_lm": task("Roberta", "MaskedLM", bpe("roberta", models.RobertaTokenizer)),
        "roberta_classifier": task("Roberta", "TextClassifier", bpe("roberta", models.RobertaTokenizer),
                                   head={"num_classes": 3, "dropout": 0.2, "activation": "softmax"}),
        "albert_masked_lm": task("Albert", "MaskedLM", models.AlbertTokenizer(proto), embedding_dim=10, num_groups=2,
                                 num_inner_repetitions=2),
        "distilbert_classifier": task("DistilBert", "TextClassifier", models.DistilBertTokenizer(bert),
                                      head={"num_classes": 1}),
        "electra": backbone("Electra", 13, embedding_dim=10),
        "gpt2": task("GPT2", "CausalLM", bpe("gpt2", models.GPT2Tokenizer)),
        "t5": task("T5", "Seq2SeqLM", None, 13, key_value_dim=5, activation="gelu", tie_embedding_weights=False),
        "xlnet": backbone("XLNet", 13),
    }  # fmt: skip


def inputs(model, vocabulary):
    generator = np.random.default_rng(5)
    ids = generator.integers(5, vocabulary, (2, 8)).astype("int32")
    mask = np.ones((2, 8), "int32")
    mask[1, 5:] = 0
    given = {"token_ids": ids, "padding_mask": mask, "segment_ids": np.array([[0] * 3 + [1] * 5] * 2, "int32")}
    given |= {
        f"{part}_{name}": given[name] for part in ("encoder", "decoder") for name in ("token_ids", "padding_mask")
    }
    given["mask_positions"] = np.tile(np.arange(8, dtype="int32"), (2, 1))
    rows = 1 if "XLNet" in type(model).__name__ else 2
    return {name: given[name][:rows] for name in model.input}


def write(model, folder):
    generator = np.random.default_rng(3)
    for variable in model.weights:
        variable.assign(np.asarray(variable) + 0.3 * generator.normal(size=variable.shape))
    model.save_to_preset(folder)
    body = getattr(model, "backbone", model)
    expected = inputs(model, getattr(body, "vocabulary_size", 13))
    outputs = body({name: expected[name] for name in body.input})
    expected |= outputs if isinstance(outputs, dict) else {"sequence_output": outputs}
    if body is not model:
        expected["logits"] = model({name: expected[name] for name in model.input})
    tokenizer = body is not model and model.preprocessor and model.preprocessor.tokenizer
    if tokenizer:
        ids = [np.asarray(tokenizer(sentence)) for sentence in SENTENCES]
        expected |= {f"ids_{number}": each for number, each in enumerate(ids)} | {"sentences": SENTENCES}
    np.savez_compressed(folder / "expected.npz", **{name: np.asarray(value) for name, value in expected.items()})


def main(fixtures):
    (fixtures / "keras_hub").mkdir(exist_ok=True)
    for name, model in presets(fixtures).items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            write(model, folder)
            archive = fixtures / "keras_hub" / f"{name}.zip"
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
                for path in sorted(folder.rglob("*")):
                    if path.is_file():
                        file.writestr(
                            zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes(), zipfile.ZIP_DEFLATED, 9
                        )
        print(name, archive.stat().st_size)
        keras.backend.clear_session()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
