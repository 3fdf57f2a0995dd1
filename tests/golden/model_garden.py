"""Writes tests/fixtures/checkpoints/garden_*/: tiny random BERTs as the TensorFlow Model Garden saves them.

Run by hand, in an environment of its own with tf-models-official 2.20 (and tf_keras):

    TF_USE_LEGACY_KERAS=1 python tests/golden/model_garden.py tests/fixtures/checkpoints

`garden_pretrainer` is the checkpoint items of a `BertPretrainerV2` around a functional `BertEncoder`,
`garden_encoder` a `BertEncoderV2`: the two layouts of the object graph.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from official.modeling import tf_utils
from official.nlp.modeling import layers, models, networks

SIZES = dict(vocab_size=13, hidden_size=12, num_layers=2, num_attention_heads=3, type_vocab_size=2)
GELU = tf_utils.get_activation("gelu")


def randomized(model):
    generator = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(np.asarray(variable) + 0.3 * generator.normal(size=variable.shape))


def write(folder, items, **arrays):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tf.train.Checkpoint(**items).write(str(folder / "bert_model.ckpt"))
    config = dict(vocab_size=13, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
                  hidden_act="gelu", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
                  max_position_embeddings=16, type_vocab_size=2, initializer_range=0.02)  # fmt: skip
    (folder / "bert_config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text(
        "".join(f"{t}\n" for t in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])
    )
    np.savez_compressed(folder / "expected.npz", **{k: np.asarray(v) for k, v in arrays.items()})
    print(folder.name, sum(f.stat().st_size for f in folder.iterdir()))


def main(folder):
    ids = np.array([[2, 5, 6, 3, 7, 8, 3], [2, 9, 10, 3, 0, 0, 0]], "int32")
    segments = np.array([[0, 0, 0, 0, 1, 1, 1], [0] * 7], "int32")
    inputs = {"input_word_ids": ids, "input_mask": (ids > 0).astype("int32"), "input_type_ids": segments}
    shown = {"token_ids": ids, "padding_mask": ids > 0, "segment_ids": segments}

    encoder = networks.BertEncoderV2(**SIZES, inner_dim=20, inner_activation=GELU, max_sequence_length=16)
    encoder(inputs)
    randomized(encoder)
    out = encoder(inputs)
    write(folder / "garden_encoder", {"model": encoder}, **shown,
          sequence_output=out["sequence_output"], pooled_output=out["pooled_output"])  # fmt: skip

    encoder = networks.BertEncoder(**SIZES, inner_dim=20, inner_activation=GELU, max_sequence_length=16)
    head = layers.ClassificationHead(inner_dim=12, num_classes=2, name="next_sentence")
    pretrainer = models.BertPretrainerV2(
        encoder_network=encoder, classification_heads=[head], mlm_activation=GELU, mlm_initializer="glorot_uniform"
    )
    positions = np.tile(np.arange(7, dtype="int32"), (2, 1))
    inputs["masked_lm_positions"] = positions
    pretrainer(inputs)
    randomized(pretrainer)
    out = pretrainer(inputs)
    write(folder / "garden_pretrainer", pretrainer.checkpoint_items, **shown,
          sequence_output=out["sequence_output"], logits=out["mlm_logits"])  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
