"""Whether KerasHub opens the presets that we write, and computes the same.

    PEER_PYTHON=other/bin/python python tests/checks/keras_hub_opens.py [family ...]

This Python has bert_tf, the other one keras-hub 0.32, TensorFlow and tensorflow-text. Every family that KerasHub has is
written with its tokenizer as tiny models with random weights: the pretrained one in the task that KerasHub has for it, the
encoder alone, and a classifier. The other Python opens each with `from_preset`. Printed is a table: the relative
difference of the last hidden states and of the logits, and of how many texts the ids are the same. "approximate" rows are
of models whose activation or epsilon KerasHub does not have; the difference that we logged stands in brackets.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from transformers_opens import PAIRS, TEXTS

#: Family -> (name of its trainer, settings of it, our configuration's settings that KerasHub has fixed otherwise than we).
FAMILIES = {
    "bert": ("wordpiece", {}, {}),
    "distilbert": ("wordpiece", {"cased": True}, {}),
    "electra": ("wordpiece", {}, {"embedding_size": 10, "activation": "gelu_tanh"}),
    "roberta": ("byte_level_bpe", {}, {}),
    "albert": ("unigram", {}, {"embedding_size": 10, "num_groups": 2, "inner_groups": 2}),
    "gpt2": ("byte_level_bpe_gpt2", {}, {}),
    "t5": ("unigram_t5", {"special_tokens": [f"<extra_id_{i}>" for i in range(4)]}, {"head_size": 10, "tied": False}),
    "xlnet": ("unigram_xlnet", {}, {"activation": "gelu_erf"}),
}
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24}
HEADS = {"bert": ("gelu_erf", 1e-5), "albert": ("gelu_tanh", 1e-5), "distilbert": ("gelu_erf", 1e-5)}
LENGTH = 32


# -- with bert_tf ----------------------------------------------------------------------------------------------------


def write(root, families):
    from absl import logging
    from reference_parts import library
    from reference_parts.texts import documents

    from bert_tf.models import build_backbone, build_config
    from bert_tf.models.families import FAMILIES as RECORDS
    from bert_tf.tasks import build_task
    from bert_tf.tokenizers.kinds import trainers

    said = []
    logging.get_absl_handler().setFormatter(None)
    logging.get_absl_logger().addFilter(lambda record: said.append(record.getMessage()) or True)
    for family in families:
        trainer, settings, own = FAMILIES[family]
        tokenizer = trainers()[trainer].train(documents(), 600, **settings)
        tokenizer = _plain(tokenizer)
        record, sizes = RECORDS[family], SIZES | own
        sizes |= {} if family in ("t5", "xlnet") else {"max_positions": LENGTH}
        config = build_config({"family": family} | sizes, tokenizer.vocabulary_size, tokenizer.pad_id)
        pooler = {"pooler": True} if family in ("bert", "albert") else {}
        backbone = build_backbone(config, **pooler)
        whole = backbone
        if record.objective in ("masked_lm", "causal_lm", "denoising"):
            activation, epsilon = HEADS.get(family, (None, None))
            head = {"head_activation": activation, "head_epsilon": epsilon} if activation else {}
            given = {"pair_task": "none"} | head if record.objective == "masked_lm" else {}
            whole = library.objective_around(backbone, record.objective, given)
        _write(root / family / "pretrained", whole, backbone, tokenizer)
        if whole is not backbone:
            _write(root / family / "backbone", backbone, backbone, tokenizer)
        if family in ("bert", "roberta", "albert", "distilbert"):
            head = {"name": "hugging_face", "dropout": 0.1}
            task = build_task(
                {"kind": "classification", "labels": ["a", "b", "c"], "head": head, "sequence_length": LENGTH},
                tokenizer,
            )
            encoder = build_backbone(config, **({"pooler": True} if pooler else {"pooler": False}))
            _write(root / family / "classifier", task.model(encoder), encoder, task.tokenizer, task)
            other = {
                "activation": "gelu_erf" if config.activation == "gelu_tanh" else "gelu_tanh",
                "layer_norm_epsilon": 1e-3,
            }
            config = build_config({"family": family} | sizes | other, tokenizer.vocabulary_size, tokenizer.pad_id)
            encoder = build_backbone(config, **pooler)
            model = library.objective_around(encoder, "masked_lm", {"pair_task": "none"})
            said.clear()
            _write(root / family / "approximate", model, encoder, tokenizer, approximate=True)
            logged = next(text for text in said if "the outputs differ by" in text)
            (root / family / "approximate" / "logged.txt").write_text(logged.split("differ by ")[1].split()[0])


def _plain(tokenizer):
    """The tokenizer without what KerasHub's do not have: NFC; of ALBERT lower case and accents that are stripped."""
    if tokenizer.kind == "byte_level_bpe":
        roles = {"role_tokens": tokenizer.role_tokens, "layout": tokenizer.layout_name}
        return type(tokenizer)(tokenizer.vocabulary, tokenizer.merges, **roles)
    if tokenizer.kind == "sentencepiece" and tokenizer.family == "albert":
        return type(tokenizer)(tokenizer.model, "albert", False, keep_accents=True, split_digit_commas=False)
    if tokenizer.kind == "wordpiece":
        return type(tokenizer)(tokenizer.vocabulary, tokenizer.lowercase, tokenizer.strip_accents)
    return tokenizer


def _write(folder, model, backbone, tokenizer, task=None, **options):
    import numpy as np
    from reference_parts import library

    import bert_tf

    for path, variable in library.by_path(model).items():
        variable.assign(library.draw(path, tuple(variable.shape)))
    bert_tf.save(model, None if task else tokenizer, folder / "preset", format="keras_hub", task=task, **options)
    generator, rows = np.random.default_rng(7), 1 if "xlnet" in str(folder) else 2
    ids = generator.integers(6, tokenizer.vocabulary_size, (rows, 12), "int32")
    mask = np.ones(ids.shape, bool)
    mask[1:, 8:] = False
    ids[~mask] = tokenizer.pad_id
    features = {"token_ids": ids, "padding_mask": mask, "segment_ids": np.array([[0] * 5 + [1] * 7] * rows, "int32")}
    features |= {"mask_positions": np.tile(np.arange(12, dtype="int32"), (rows, 1)), "decoder_token_ids": ids[:, :7]}
    features["decoder_padding_mask"] = mask[:, :7]
    found = {"sequence_output": np.asarray(backbone(backbone.select(features))["sequence_output"])}
    if model is not backbone:
        outputs = model(features)
        found["logits"] = np.asarray(next(value for key, value in outputs.items() if key.endswith("logits")))
    np.savez(folder / "expected.npz", **features, **found)
    pairs = tokenizer.pack(*(tokenizer.tokenize(list(part)) for part in zip(*PAIRS)), sequence_length=LENGTH)
    ids = tokenizer.tokenize(TEXTS).to_list()
    (folder / "ids.json").write_text(json.dumps({"texts": ids, "pairs": np.asarray(pairs["token_ids"]).tolist()}))


# -- with KerasHub ---------------------------------------------------------------------------------------------------


def compare(root):
    import keras_hub
    import numpy as np

    print("\n| family | written | opened as | hidden states | logits | ids of texts | ids of pairs |\n|" + "---|" * 7)
    failed = False
    for folder in sorted(path.parent for path in root.glob("*/*/preset")):
        family, part = folder.parent.name, folder.name
        with np.load(folder / "expected.npz") as file:
            expected = dict(file)
        described = folder / "preset" / "task.json"
        name = json.loads(described.read_text())["class_name"] if described.exists() else None
        config = json.loads((folder / "preset" / "config.json").read_text())["class_name"]
        model = getattr(keras_hub.models, name or config).from_preset(str(folder / "preset"))
        body = model.backbone if name else model
        given = {f"encoder_{key}": expected[key] for key in ("token_ids", "padding_mask")} | expected
        outputs = body({key: given[key].astype("int32") for key in body.input})
        outputs = outputs if isinstance(outputs, dict) else {"sequence_output": outputs}
        real = expected["decoder_padding_mask" if family == "t5" else "padding_mask"]
        key = "decoder_sequence_output" if family == "t5" else "sequence_output"
        states = _difference(expected["sequence_output"][real], np.asarray(outputs[key])[real])
        logits = None
        if name and "logits" in expected:
            theirs = np.asarray(model({key: given[key].astype("int32") for key in model.input}))
            rows = real if theirs.ndim == 3 else slice(None)
            logits = _difference(expected["logits"][rows], theirs[rows])
        largest = max(states, logits or 0)
        own = [f"{states:.1e}", "" if logits is None else f"{logits:.1e}", *_ids(keras_hub, folder, model)]
        if part == "approximate":
            own[1] += f" (logged: {(folder / 'logged.txt').read_text()})"
        elif largest > 1e-6:
            failed = True
            own[0] += " FAILED"
        print(f"| {family} | {part} | {name or config} | " + " | ".join(own) + " |", flush=True)
    return failed


def _difference(ours, theirs):
    import numpy as np

    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def _ids(keras_hub, folder, model):
    """Of how many texts and pairs the ids are equal, as texts."""
    import numpy as np

    if not (folder / "preset" / "tokenizer.json").exists():
        return "no tokenizer there", ""
    expected = json.loads((folder / "ids.json").read_text())
    tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(str(folder / "preset"))
    found = [np.asarray(tokenizer(text)).tolist() for text in TEXTS]
    same = [ours == theirs for ours, theirs in zip(expected["texts"], found)]
    wrong = [text for text, equal in zip(TEXTS, same) if not equal]
    print(f"{folder.parent.name}: other ids of {wrong}", file=sys.stderr)
    reader, pairs = getattr(model, "preprocessor", None), ""
    if folder.name == "classifier":
        reader.sequence_length = LENGTH
        packed = [np.asarray(reader(([a], [b]), y=None)["token_ids"])[0].tolist() for a, b in PAIRS]
        pairs = f"{sum(ours == theirs for ours, theirs in zip(expected['pairs'], packed))} of {len(PAIRS)}"
    return f"{sum(same)} of {len(TEXTS)}", pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help="all by default")
    parser.add_argument("--compare", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(arguments.compare)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), arguments.families or FAMILIES)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        command = [os.environ["PEER_PYTHON"], __file__, "--compare", folder]
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
