"""Whether the TensorFlow Model Garden restores the BERTs that we write with `format="garden"`, and computes the same.

    PEER_PYTHON=other/bin/python python tests/checks/model_garden_opens.py

This Python has bert_tf, the other one tf-models-official 2.20. A tiny BERT with random weights and a masked LM head is
written; the other Python makes the Garden's models from bert_config.json, restores them as its tasks do, with
`assert_existing_objects_matched`, and compares hidden states, pooled outputs and logits.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def write(folder):
    import bert_tf
    from bert_tf.models import build_backbone, build_config
    from bert_tf.objectives import MaskedLM

    sizes = {"hidden_size": 16, "num_layers": 3, "num_heads": 4, "intermediate_size": 24, "max_positions": 16}
    model = MaskedLM(build_backbone(build_config({"family": "bert"} | sizes, 40), pooler=True))
    generator = np.random.default_rng(0)
    for variable in model.weights:
        variable.assign(np.asarray(variable) + 0.3 * generator.normal(size=variable.shape))
    bert_tf.save(model, None, folder / "bert", format="garden")
    ids = generator.integers(1, 40, (2, 7), "int32")
    ids[1, 4:] = 0
    inputs = {"token_ids": ids, "padding_mask": ids > 0, "segment_ids": np.array([[0] * 3 + [1] * 4] * 2, "int32")}
    inputs["mask_positions"] = np.tile(np.arange(7, dtype="int32"), (2, 1))
    outputs = dict(model.backbone(model.backbone.select(inputs))) | {"logits": model(inputs)["masked_lm_logits"]}
    np.savez(folder / "expected.npz", **inputs, **{key: np.asarray(value) for key, value in outputs.items()})


def compare(folder):
    import tensorflow as tf
    from official.modeling import tf_utils
    from official.nlp.modeling import models, networks

    with np.load(folder / "expected.npz") as file:
        expected = dict(file)
    config = json.loads((folder / "bert" / "bert_config.json").read_text())
    gelu = tf_utils.get_activation(config["hidden_act"])
    settings = {
        "vocab_size": config["vocab_size"],
        "hidden_size": config["hidden_size"],
        "num_layers": config["num_hidden_layers"],
        "num_attention_heads": config["num_attention_heads"],
        "max_sequence_length": config["max_position_embeddings"],
        "type_vocab_size": config["type_vocab_size"],
        "inner_dim": config["intermediate_size"],
        "inner_activation": gelu,
    }
    names = {"input_word_ids": "token_ids", "input_mask": "padding_mask", "input_type_ids": "segment_ids"}
    inputs = {theirs: expected[ours].astype("int32") for theirs, ours in names.items()}
    inputs["masked_lm_positions"] = expected["mask_positions"]
    real, failed = expected["padding_mask"], False
    print("\n| model | restored as | hidden states | pooled output | logits |\n|---|---|---|---|---|")
    for encoder_class in (networks.BertEncoder, networks.BertEncoderV2):
        for items in ("encoder", "model", "checkpoint_items"):
            form = {"dict_outputs": True} if encoder_class is networks.BertEncoder else {}
            encoder = encoder_class(**settings, **form)
            model = models.BertPretrainerV2(encoder_network=encoder, mlm_activation=gelu)
            logits = model(inputs)["mlm_logits"]  # which makes the variables
            given = model.checkpoint_items if items == "checkpoint_items" else {items: encoder}
            status = tf.train.Checkpoint(**given).read(str(folder / "bert" / "bert_model.ckpt"))
            status.expect_partial().assert_existing_objects_matched()
            outputs, logits = encoder({name: inputs[name] for name in names}), model(inputs)["mlm_logits"]
            row = [_difference(expected["sequence_output"][real], np.asarray(outputs["sequence_output"])[real])]
            row.append(_difference(expected["pooled_output"], np.asarray(outputs["pooled_output"])))
            if items == "checkpoint_items":
                row.append(_difference(expected["logits"][real], np.asarray(logits)[real]))
            failed = failed or max(row) > 1e-6
            cells = [f"{value:.1e}" for value in row]
            print(f"| {encoder_class.__name__} | {items} | " + " | ".join([*cells, "", ""][:3]) + " |")
    return failed


def _difference(ours, theirs):
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compare"]:
        sys.exit(compare(Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        peer = [os.environ["PEER_PYTHON"], __file__, "--compare", folder]
        own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        sys.exit(subprocess.run(peer, env=own | {"TF_USE_LEGACY_KERAS": "1"}).returncode)
