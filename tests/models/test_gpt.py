"""GPT-1 and GPT-2: parity with Hugging Face's in float64 (see tests/golden/gpt.py), the cache, the checkpoints."""

import dataclasses
import functools
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_goldens import assert_exported, assert_gradients, assert_states, integers, load, mean_loss, part
from numeric import relative_error
from safetensors.numpy import load_file, save_file
from small_models import moved

import bert_tf
from bert_tf.errors import ConfigError, DataError
from bert_tf.models import FAMILIES, build_backbone
from bert_tf.models.gpt2.checkpoints import HF_CONFIG
from bert_tf.models.weights import load_weights
from bert_tf.objectives import CausalLM
from bert_tf.tokenizers.bpe.bpe import GPT1_ROLES
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES
from bert_tf.tokenizers.bpe.training import train_bpe, train_byte_level_bpe

SIZES = dict(vocabulary_size=37, hidden_size=24, num_layers=3, num_heads=3, intermediate_size=40, initializer_range=0.3)


def make(family, seed=3, dtype="float32", **changes):
    keras.utils.set_random_seed(seed)
    config = FAMILIES[family].config(**SIZES | {"max_positions": 20} | changes)
    return moved(build_backbone(config, pooler=True, dtype=dtype), seed, dimensions=1)


def tokens(rows, length, seed=0):
    return np.random.default_rng(seed).integers(0, 37, (rows, length)).astype("int32")


# -- parity ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gpt2_odd", "gpt2_relu", "gpt1_odd"])
def case(request):
    """(model, golden arrays, configuration there, `Maps`)."""
    family, (golden, theirs) = FAMILIES[request.param.split("_")[0]], load(request.param)
    maps = family.maps("hf")
    config = family.config(**maps.config.read(theirs, "config.json"))
    decoder = build_backbone(config, output_hidden_states=True, output_attention_scores=True, dtype="float32")
    load_weights(decoder, part(golden, "weights/"), maps.weights)
    return CausalLM(decoder), golden, theirs, maps


def features(golden):
    return integers(golden, "token_ids") | {"padding_mask": golden["padding_mask"]}


def test_hidden_states_attention_logits_and_loss(case):
    model, golden, *_ = case
    out, real = model.backbone(features(golden)), golden["padding_mask"]
    assert_states(out["hidden_states"], golden["hidden_states"], real)
    np.testing.assert_array_equal(out["hidden_states"][-1], out["sequence_output"])
    assert relative_error(out["attention_scores"][-2], golden["attention"]) < 1e-5
    logits = np.asarray(model(features(golden))["causal_lm_logits"])
    assert relative_error(logits[real], golden["logits"][real]) < 1e-5
    assert float(mean_loss(model, features(golden))) == pytest.approx(float(golden["loss"]), rel=1e-5)


def test_gradients_and_what_is_written(case):
    model, golden, theirs, maps = case  # the first gradient is of the table, which is the output layer, too
    assert_gradients(model, lambda: mean_loss(model, features(golden)), golden, maps.weights, count=8)
    assert_exported(model, golden, maps.weights)
    written = maps.config.write(model.backbone.config)
    assert {key: theirs.get(key) for key in written} == written


def test_greedy_tokens_are_those_of_generate(case):
    model, golden, *_ = case
    decoder, prompts = model.backbone, golden["prompts"].astype("int32")
    new = golden["greedy"].shape[1]
    cache = decoder.empty_cache(len(prompts), prompts.shape[1] + new)
    x, cache = decoder.decode(prompts, cache, 0)
    for step in range(new):
        token = np.argmax(decoder.output_logits(x[:, -1]), axis=-1).astype("int32")
        assert token.tolist() == golden["greedy"][:, step].tolist()
        x, cache = decoder.decode(token[:, None], cache, prompts.shape[1] + step)


def test_initial_weights():
    decoder = make("gpt2", hidden_size=96, num_layers=8, initializer_range=0.02)
    deviations = {v.path: float(np.std(v)) / 0.88 for v in decoder.weights}  # of a normal cut at two deviations
    assert deviations["transformer_layer_5/attention/query/kernel"] == pytest.approx(0.02, rel=0.05)
    for name in ("attention/output", "output"):
        assert deviations[f"transformer_layer_5/{name}/kernel"] == pytest.approx(0.02 / 4, rel=0.05)
    assert deviations["embeddings/token_embeddings"] == pytest.approx(0.02, rel=0.05)
    assert deviations["embeddings/position_embeddings"] == pytest.approx(0.01, rel=0.05)


# -- the cache ---------------------------------------------------------------------------------------


def test_the_cache_has_the_compute_dtype():
    decoder, token_ids = make("gpt2", dtype="mixed_bfloat16"), tokens(2, 6)
    cache = decoder.empty_cache(2, 6)
    assert {x.dtype for pair in cache for x in pair} == {tf.bfloat16} and {x.shape for x in cache[0]} == {(2, 3, 6, 8)}
    _, cache = decoder.decode(token_ids[:, :4], cache, 0)
    last, _ = decoder.decode(token_ids[:, 4:], cache, 4)
    whole = np.asarray(decoder({"token_ids": token_ids})["sequence_output"], "float32")
    assert relative_error(np.asarray(last, "float32"), whole[:, 4:]) < 0.05


# -- what a decoder sees -------------------------------------------------------------------------------


def test_the_pooled_output_is_the_last_real_token():
    decoder, token_ids = make("gpt2"), tokens(3, 7)
    inputs = {"token_ids": token_ids, "padding_mask": np.arange(7) < np.array([[7], [3], [5]])}
    whole = decoder(inputs)
    last = np.asarray(whole["sequence_output"])[np.arange(3), [6, 2, 4]]
    for outputs in (whole, decoder.outputs_at(inputs, np.zeros((3, 0), "int32"))):
        np.testing.assert_allclose(outputs["pooled_output"], last, atol=1e-5)


# -- checkpoints -------------------------------------------------------------------------------------

TEXT = ["the people of the united states and the government of the people"] * 3


@pytest.fixture(scope="module")
def published():
    """Family -> (pretraining model, tokenizer): with heads of 64 and a network 4 times as wide, as published."""
    tokenizers = {
        "gpt2": train_byte_level_bpe(TEXT, 262, normalization=None, role_tokens=GPT2_ROLES, layout="none"),
        "gpt1": train_bpe(TEXT, 40, cleaning="gpt1", role_tokens=GPT1_ROLES, layout="none"),
    }
    models = {}
    for family, tokenizer in tokenizers.items():
        sizes = {"vocabulary_size": tokenizer.vocabulary_size, "hidden_size": 128, "num_heads": 2}
        models[family] = CausalLM(make(family, **sizes, intermediate_size=512)), tokenizer
    return models


@pytest.fixture(scope="module")
def written(published, tmp_path_factory):
    """Function from a family and a format to the folder of its model, to be read only."""

    @functools.cache
    def write(family, format):
        folder = tmp_path_factory.mktemp("written") / format
        bert_tf.save(*published[family], folder, format=format)
        return folder

    return write


@pytest.mark.parametrize("family, format", [("gpt1", "numpy"), ("gpt2", "tf1")])
def test_a_published_checkpoint_there_and_back(published, written, family, format):
    model, tokenizer = published[family]
    loaded = bert_tf.load(written(family, format))
    assert (loaded.family, type(loaded.objective)) == (family, CausalLM)
    assert loaded.report.unused == loaded.report.fresh == ()
    theirs, ours = dataclasses.asdict(loaded.encoder.config), dataclasses.asdict(model.backbone.config)
    not_told = {"initializer_range", "position_initializer_range", "dropout", "attention_dropout"}
    assert {key for key in ours if ours[key] != theirs[key]} <= not_told
    assert loaded.tokenizer.fingerprint == tokenizer.fingerprint
    for a, b in zip(loaded.objective.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_arrays_have_the_published_shapes(published, written):
    gpt2_tf1, gpt1_numpy = written("gpt2", "tf1"), written("gpt1", "numpy")
    reader = tf.train.load_checkpoint(str(gpt2_tf1))
    shapes = reader.get_variable_to_shape_map()
    assert len(shapes) == 4 + 3 * 12
    assert shapes["model/h0/attn/c_attn/w"] == [1, 128, 384] and shapes["model/h2/attn/c_attn/b"] == [384]
    assert shapes["model/h1/mlp/c_fc/w"] == [1, 128, 512] and shapes["model/ln_f/g"] == [128]
    hparams = json.loads((gpt2_tf1 / "hparams.json").read_text())
    size = published["gpt2"][1].vocabulary_size
    assert hparams == {"n_vocab": size, "n_ctx": 20, "n_embd": 128, "n_head": 2, "n_layer": 3}
    # What openai/finetune-transformer-lm train.py does with the parts.
    shapes = json.loads((gpt1_numpy / "params_shapes.json").read_text())
    parts = np.concatenate([np.load(gpt1_numpy / f"params_{n}.npy") for n in range(10)], 0)
    arrays = np.split(parts, np.cumsum([np.prod(shape) for shape in shapes]))[:-1]
    arrays = [array.reshape(shape) for array, shape in zip(arrays, shapes, strict=True)]
    weights = {v.path: np.asarray(v) for v in published["gpt1"][0].weights}
    np.testing.assert_array_equal(arrays[0], weights["embeddings/position_embeddings"])
    np.testing.assert_array_equal(arrays[1], weights["embeddings/token_embeddings"])
    query_key_value = [weights[f"transformer_layer_1/attention/{n}/kernel"] for n in ("query", "key", "value")]
    np.testing.assert_array_equal(arrays[2 + 12], np.concatenate(query_key_value, axis=-1)[None])
    np.testing.assert_array_equal(arrays[2 + 12 + 4], weights["transformer_layer_1/attention_layer_norm/gamma"])
    config = json.loads((written("gpt2", "hf") / "config.json").read_text())
    assert config["architectures"] == ["GPT2LMHeadModel"] and config["n_inner"] is None


@pytest.mark.parametrize("family, format, files", [
    ("gpt2", "tf1", {"vocab.json": "encoder.json", "merges.txt": "vocab.bpe"}),
    ("gpt1", "numpy", {"vocab.json": "encoder_bpe_40000.json", "merges.txt": "vocab_40000.bpe"}),
])  # fmt: skip
def test_the_authors_names_of_the_vocabulary(published, written, tmp_path, family, format, files):
    shutil.copytree(written(family, format), tmp_path / "written")
    for ours, theirs in files.items():
        (tmp_path / "written" / ours).rename(tmp_path / "written" / theirs)
    (tmp_path / "written" / "tokenizer_config.json").unlink()  # the authors have none
    loaded = bert_tf.load(tmp_path / "written")
    assert (loaded.family, loaded.tokenizer.fingerprint) == (family, published[family][1].fingerprint)


def test_buffers_copies_and_missing_prefixes(published, written, tmp_path):
    model, _ = published["gpt2"]
    shutil.copytree(written("gpt2", "hf"), tmp_path / "written")
    file = tmp_path / "written" / "model.safetensors"
    arrays = {name.removeprefix("transformer."): array for name, array in load_file(file).items()}
    buffers = {f"h.{i}.attn.bias": np.tril(np.ones((1, 1, 20, 20), bool)) for i in range(3)}
    buffers |= {f"h.{i}.attn.masked_bias": np.array(-1e4, "float32") for i in range(3)}
    save_file(arrays | buffers | {"lm_head.weight": arrays["wte.weight"]}, file)
    loaded = bert_tf.load(tmp_path / "written")
    assert set(loaded.report.ignored) == {*buffers, "lm_head.weight"}
    for a, b in zip(loaded.objective.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    save_file(arrays | {"lm_head.weight": arrays["wte.weight"] + 1}, file)
    with pytest.raises(DataError, match="'lm_head.weight' is not equal to 'transformer.wte.weight'"):
        _ = bert_tf.load(tmp_path / "written").objective


def test_what_cannot_be_written_or_read(published, written, tmp_path):
    narrow = make("gpt2", vocabulary_size=published["gpt2"][1].vocabulary_size)
    message = "cannot say intermediate_size=40: the code it is for has 4 . hidden_size = 96"
    with pytest.raises(ConfigError, match=message):
        bert_tf.save(narrow, published["gpt2"][1], tmp_path / "a", format="tf1")
    message = "means num_heads=1, this model has 3; write format 'hf' if it can hold that, or keep the run"
    with pytest.raises(ConfigError, match=message):
        bert_tf.save(make("gpt1"), None, tmp_path / "b", format="numpy")
    with pytest.raises(ConfigError, match="'gpt2' has no checkpoints of format 'numpy'"):
        bert_tf.save(narrow, None, tmp_path / "c", format="numpy")

    shutil.copytree(written("gpt1", "numpy"), tmp_path / "parts")
    shapes = tmp_path / "parts" / "params_shapes.json"
    given = json.loads(shapes.read_text())
    for changed, message in (
        ([[1000, 128], *given[1:]], "asks for .* numbers, params_.* hold"),
        (given[:-1], "must list the shapes of 2 tables and of 12 arrays for each layer"),
        ([[20, -1], *given[1:]], "a shape must be a list of 1 to 3 positive integers"),
        ([given[0][:1], *given[1:]], "positions and tokens must be tables"),
        ({}, "must list the shapes"),
    ):
        shapes.write_text(json.dumps(changed))
        with pytest.raises(DataError, match=message):
            _ = bert_tf.load(tmp_path / "parts").backbone
    shapes.write_text(json.dumps(given))
    np.save(tmp_path / "parts" / "params_3.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot read .*params_3.npy"):
        _ = bert_tf.load(tmp_path / "parts").backbone
    (tmp_path / "parts" / "params_3.npy").unlink()
    with pytest.raises(DataError, match="there is no file .*params_3.npy"):
        _ = bert_tf.load(tmp_path / "parts").backbone


def test_settings_of_others_are_refused():
    theirs = {"vocab_size": 9, "n_embd": 12, "n_layer": 1, "n_head": 3}
    assert HF_CONFIG.read(theirs, "config.json")["intermediate_size"] == 48
    with pytest.raises(ConfigError, match="embd_pdrop is 0.0 and resid_pdrop is 0.1; they must be equal"):
        HF_CONFIG.read(theirs | {"embd_pdrop": 0.0}, "config.json")
    with pytest.raises(ConfigError, match="scale_attn_by_inverse_layer_idx is True; only False"):
        HF_CONFIG.read(theirs | {"scale_attn_by_inverse_layer_idx": True}, "config.json")
