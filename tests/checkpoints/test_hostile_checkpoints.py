"""What a stranger's checkpoint may try: names that lead elsewhere, sizes that are not there, weights that are none."""

import json
import shutil
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from published_models import change_arrays, copy_of

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.checkpoints.tensorflow1 import prefix_of
from bert_tf.errors import ConfigError, DataError, UserError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"


def test_an_index_maps_names_to_files_of_its_folder(tmp_path):
    shutil.copytree(FIXTURES / "bert", tmp_path / "bert")
    folder = copy_of("bert_sharded", tmp_path / "sharded")
    path = folder / "model.safetensors.index.json"
    known = json.loads(path.read_text())["weight_map"]
    for file in ("/etc/hostname", "../bert/model.safetensors", "a/b", "..", "", None, 3, ["x"]):
        path.write_text(json.dumps({"weight_map": known | {next(iter(known)): file}}))
        with pytest.raises(DataError, match="must be the name of a file in the same folder"):
            open_source(folder)
    for weight_map in (None, [], "model.safetensors", 3):
        path.write_text(json.dumps({"weight_map": weight_map}))
        with pytest.raises(DataError, match="weight_map must map the names of tensors to files"):
            open_source(folder)


def test_files_that_a_tokenizer_config_names_are_not_opened(tmp_path):
    folder = copy_of("bert", tmp_path / "bert")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    names = {"tokenizer_file": "/dev/zero", "special_tokens_map_file": "../../x", "name_or_path": "/dev/zero"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | names))
    assert open_source(folder).tokenizer.fingerprint == open_source(FIXTURES / "bert").tokenizer.fingerprint


def test_the_latest_checkpoint_is_one_of_the_folder(tmp_path):
    folder = tmp_path / "two"
    shutil.copytree(FIXTURES / "garden_encoder", folder)
    for file in list(folder.glob("bert_model.ckpt.*")):
        shutil.copy(file, folder / file.name.replace("bert_model", "other"))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(FIXTURES / "garden_encoder", elsewhere)
    for name in (str(elsewhere / "bert_model.ckpt"), "../elsewhere/bert_model.ckpt", "s3://x/bert_model.ckpt", "no"):
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')
        with pytest.raises(DataError, match="holds several checkpoints .*; name one of them"):
            prefix_of(folder)
    (folder / "checkpoint").write_text('model_checkpoint_path: "other.ckpt"\n')
    assert prefix_of(folder) == folder / "other.ckpt"


SIZES = [
    # What the ranges of the settings allow and the file does not hold:
    ("bert", {"hidden_size": 65_520}, "asks for 2 layers and at least"),
    ("bert", {"vocab_size": 9_000_000}, "asks for 2 layers and at least 108,"),
    ("bert", {"num_hidden_layers": 1000}, "asks for 1,000 layers and"),
    ("bert", {"max_position_embeddings": 1 << 24}, "asks for 2 layers and at least"),
    ("bert", {"type_vocab_size": 65_536}, "has shape"),
    ("albert", {"num_hidden_groups": 100, "num_hidden_layers": 200}, "asks for 200 layers"),
    # What no range allows:
    ("bert", {"vocab_size": 10**12}, "vocabulary_size' is 1000000000000; it must be at least 1 and at most 10,000,000"),
    ("albert", {"num_hidden_layers": 20_000}, "num_layers' is 20000; it must be at least 1 and at most 1,000"),
    ("roberta", {"max_position_embeddings": 10**9}, "max_positions' is .*; it must"),
    ("xlnet", {"d_model": 3 * 10**8, "d_head": 10**8}, "hidden_size' is 300000000; it must"),
]


@pytest.mark.parametrize("name, changes, message", SIZES, ids=lambda value: str(value)[:60])
def test_sizes_are_held_against_the_file_before_anything_is_built(tmp_path, name, changes, message):
    folder = copy_of(name, tmp_path / name, **changes)
    begin = time.process_time()
    with pytest.raises(UserError, match=message):
        _ = bert_tf.load(folder).backbone
    assert time.process_time() - begin < 2


def test_a_tensorflow_checkpoint_cannot_claim_more_than_it_holds(tmp_path):
    folder = tmp_path / "bert"
    shutil.copytree(FIXTURES / "garden_encoder", folder)
    data = next(folder.glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(DataError, match="is cut off: '.*' claims the shape"):
        open_source(folder)
    settings = json.loads((FIXTURES / "garden_encoder" / "bert_config.json").read_text())
    shutil.copy(FIXTURES / "garden_encoder" / data.name, data)
    (folder / "bert_config.json").write_text(json.dumps(settings | {"vocab_size": 9_000_000}))
    with pytest.raises(DataError, match="asks for 2 layers and at least"):
        open_source(folder)


@pytest.mark.parametrize("change, message", [
    (lambda a: np.where(np.arange(a.size).reshape(a.shape) == 5, np.nan, a), "holds NaN or infinity"),
    (lambda a: np.full(a.shape, 1e300, "float64"), "holds NaN or infinity"),
    (lambda a: a.astype("int64"), "holds int64 where weights, floating-point numbers, must be"),
    (lambda a: a > 0, "holds bool where weights"),
    (lambda a: a.astype(ml_dtypes.float8_e4m3fn), "has the type F8_E4M3, which is not supported"),
], ids=["nan", "too large", "int", "bool", "float8"])  # fmt: skip
def test_weights_are_finite_floating_point_numbers(tmp_path, change, message):
    folder, name = copy_of("bert", tmp_path / "bert"), "bert.encoder.layer.1.intermediate.dense.weight"
    change_arrays(folder, lambda arrays: arrays | {name: change(arrays[name])})
    with pytest.raises(DataError, match=f"'{name}' .*{message}"):
        _ = bert_tf.load(folder).backbone


def test_weights_of_tensorflow_are_finite_too(tmp_path):
    loaded = bert_tf.load(FIXTURES / "bert")
    loaded.encoder.weights[3].assign(tf.fill(loaded.encoder.weights[3].shape, float("inf")))
    bert_tf.save(loaded.encoder, loaded.tokenizer, tmp_path / "tf1", format="tf1")
    with pytest.raises(DataError, match="'bert/.*' holds NaN or infinity"):
        _ = bert_tf.load(tmp_path / "tf1").backbone


@pytest.mark.parametrize("name, changes", [
    ("bert", {"hidden_act": []}), ("bert", {"model_type": ["bert"]}), ("roberta", {"pad_token_id": None}),
    ("roberta", {"max_position_embeddings": "514"}), ("xlnet", {"d_head": "4"}), ("xlnet", {"clamp_len": []}),
    ("albert", {"num_hidden_groups": {}}), ("modernbert", {"layer_types": 3}), ("modernbert", {"rope_parameters": [1]}),
    ("modernbert", {"rope_parameters": {"full_attention": None}}), ("modernbert", {"global_attn_every_n_layers": 0}),
    ("modernbert", {"global_rope_theta": "x", "rope_parameters": None}),
], ids=str)  # fmt: skip
def test_settings_of_the_wrong_type(tmp_path, name, changes):
    with pytest.raises(ConfigError, match=rf"(?s)config.json.*({next(iter(changes))}|num_groups)"):
        open_source(copy_of(name, tmp_path / name, **changes))


def test_labels_without_names_are_few(tmp_path):
    for count in (0, -1, True, "3", None, 10**12):
        changes = {"architectures": ["BertForSequenceClassification"], "num_labels": count}
        folder = copy_of("bert", tmp_path / str(count), **changes)
        with pytest.raises(ConfigError, match="num_labels is .*; it must be an integer from 1 to 100,000"):
            _ = bert_tf.load(folder).task


@pytest.mark.parametrize("header", [b"9" * 5000 + b" 3", b"-5 3", b"3 -1", b"0 3", b"3 " + b"7" * 5000])
def test_the_header_of_word_vectors_is_two_numbers_that_can_be(header, tmp_path):
    (tmp_path / "v.txt").write_bytes(header + b"\nlaw 1 2 3\n")
    with pytest.raises(DataError, match="v.txt, line 1: .* words with .* numbers each cannot be right"):
        bert_tf.load(tmp_path / "v.txt")


def test_a_tensor_of_more_dimensions_than_there_are(tmp_path):
    folder = copy_of("bert", tmp_path / "bert")
    header = {"bert.pooler.dense.bias": {"dtype": "F32", "shape": [1] * 101, "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0\0\0\0")
    with pytest.raises(DataError, match="bert.pooler.dense.bias|asks for 2 layers"):
        _ = bert_tf.load(folder).backbone


def test_a_vocabulary_of_special_tokens_alone(tmp_path):
    folder = copy_of("bert", tmp_path / "bert")
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    with pytest.raises(DataError, match="this vocabulary of 5 pieces"):
        bert_tf.load(folder).tokenizer.encode("law")


def test_what_there_is_not_is_told_where_to_look(tmp_path):
    with pytest.raises(UserError, match="bert-base-uncased .* does not exist. .* is given as hf://"):
        bert_tf.load("bert-base-uncased")
    preset = {"module": "keras_hub.src.models.bert.bert_backbone", "registered_name": "keras_hub>BertBackbone"}
    (tmp_path / "config.json").write_text(json.dumps(preset | {"config": {}}))
    with pytest.raises(ConfigError, match="is of a preset of KerasHub .'keras_hub>BertBackbone'."):
        bert_tf.load(tmp_path)
