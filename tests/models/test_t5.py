"""T5: parity with Hugging Face's in float64 (see tests/golden/t5.py), the cache, generation, the checkpoints."""

import dataclasses
import itertools
import json

import keras
import numpy as np
import pytest
from decoding import assert_states_logits_and_loss, cached_and_whole, features, loss_of
from model_goldens import assert_exported, assert_gradients, load, part
from safetensors.numpy import load_file, save_file
from small_models import moved

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.checkpoints.hugging_face import CONFIG, recognize_family
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import EncoderDecoderSteps, GenerationConfig, Restrictions, beam_search, generate_tokens
from bert_tf.models.t5 import checkpoints as t5
from bert_tf.models.t5.config import T5Config
from bert_tf.models.t5.model import T5
from bert_tf.models.weights import export_weights, load_weights
from bert_tf.objectives import Denoising
from bert_tf.tokenizers import train_unigram

SIZES = dict(vocabulary_size=37, hidden_size=20, num_layers=3, num_decoder_layers=2, num_heads=3, head_size=6)
END = 1


def make(seed=3, **changes):
    keras.utils.set_random_seed(seed)
    return moved(
        T5(T5Config(**SIZES | {"intermediate_size": 28, "num_buckets": 8, "max_distance": 10} | changes)), seed
    )


@pytest.fixture(scope="module", params=["t5_relu_tied", "t5_gated_untied", "t5_gated_tied"])
def case(request):
    golden, config = load(request.param)
    golden["config"] = config
    weights = part(golden, "weights/")
    settings = t5.HF_CONFIG.read(golden["config"], "config.json") | t5.HF.config_of_arrays(weights)
    model = T5(T5Config(**settings), output_hidden_states=True)
    load_weights(model, weights, t5.HF_WEIGHTS)
    return model, golden


def test_hidden_states_logits_and_loss(case):
    assert_states_logits_and_loss(*case)


def test_gradients(case):
    """Of a model in float64: in float32, CPUs differ by as much as 1e-5 in the sums over all positions."""
    golden = case[1]
    model = T5(case[0].config, dtype="float64")
    load_weights(model, part(golden, "weights/"), t5.HF_WEIGHTS)
    assert_gradients(model, lambda: loss_of(model, golden)[2], golden, t5.HF_WEIGHTS, count=9)


def steps_of(model, golden, new):
    return EncoderDecoderSteps(model, golden["token_ids"].astype("int32"), golden["padding_mask"], new, start_id=0)


def test_generated_texts_are_those_of_generate(case):
    model, golden = case
    restrictions = Restrictions(stop_ids=(END,))
    found = generate_tokens(steps_of(model, golden, 10), GenerationConfig(max_new_tokens=10), restrictions)
    width = golden["greedy"].shape[1]
    np.testing.assert_array_equal(found["token_ids"][:, :width], golden["greedy"])
    config = GenerationConfig(
        method="beam_search", beams=3, n_best=3, length_penalty=0.6, beam_variant="huggingface", max_new_tokens=10
    )
    found = beam_search(steps_of(model, golden, 10), config, restrictions, filler=END)  # as there, padding being 0
    width = golden["beams"].shape[2]
    np.testing.assert_array_equal(found["token_ids"][:, :, :width], golden["beams"])
    np.testing.assert_allclose(found["scores"], golden["beam_scores"], rtol=1e-5)


def test_names_and_settings_there_and_back(case):
    model, golden = case
    exported = assert_exported(model, golden, t5.HF_WEIGHTS)
    written = t5.HF_CONFIG.write(model.config)
    scaled = written.pop("tie_word_embeddings")  # transformers 5 writes True whatever it is
    assert scaled == golden["config"]["scale_decoder_outputs"]
    assert {key: golden["config"].get(key) for key in written} == written
    again = T5(model.config)
    load_weights(again, exported, t5.HF_WEIGHTS)
    outputs = [t5_model(features(golden))["sequence_output"] for t5_model in (again, model)]
    np.testing.assert_array_equal(*outputs)


def test_an_mt5_is_a_t5_1_1(case, tmp_path):
    model, golden = case
    theirs = golden["config"] | {"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"]}
    # transformers 5 writes tie_word_embeddings: true for every mT5; feed_forward_proj may be left out.
    for changes in ({"tie_word_embeddings": True}, {"tie_word_embeddings": False}, {}):
        kept = {k: v for k, v in theirs.items() if k not in ("scale_decoder_outputs", "tie_word_embeddings")}
        read = T5Config(**t5.HF_CONFIG.read(kept | changes, "config.json"))
        assert read == dataclasses.replace(model.config, tied=False, scale_outputs=False)
        for key in ("feed_forward_proj", "is_gated_act", "dense_act_fn"):
            del kept[key]
        read = T5Config(**t5.HF_CONFIG.read(kept | changes, "config.json"))
        assert (read.activation, read.gated, read.tied) == ("gelu_tanh", True, False)
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    assert recognize_family(json.loads((tmp_path / CONFIG).read_text()), "config.json").name == "t5"
    assert recognize_family(theirs, "config.json", "t5").name == "t5"
    with pytest.raises(ConfigError, match="family 't5' needs 't5' or 'mt5'"):
        recognize_family(theirs | {"model_type": "umt5"}, "config.json", "t5")


def test_mesh_tensorflow_names_there_and_back(case):
    model, _golden = case
    arrays = export_weights(model, t5.TF1_WEIGHTS)
    gated = model.config.gated
    assert ("decoder/logits/kernel" in arrays) == (not model.config.tied)
    assert arrays["decoder/block_001/layer_001/EncDecAttention/q"].shape == (20, 18)
    assert arrays["encoder/block_000/layer_000/SelfAttention/relative_attention_bias"].shape[0] == 3
    assert f"encoder/block_002/layer_001/DenseReluDense/{'wi_0' if gated else 'wi'}/kernel" in arrays
    config = t5.config_of_shapes({name: array.shape for name, array in arrays.items()})
    again = T5(config)
    extra = {"global_step": np.zeros(()), "shared/embedding_slot_vr": np.zeros(3)}
    older = {name.replace("encoder/rms_norm", "encoder/final_layer_norm"): value for name, value in arrays.items()}
    load_weights(again, older | extra, t5.TF1_WEIGHTS)
    sizes = "num_layers num_decoder_layers num_heads head_size intermediate_size gated tied num_buckets".split()
    assert [getattr(config, n) for n in sizes] == [getattr(model.config, n) for n in sizes]


@pytest.mark.parametrize("format", ["hf", "tf1"])
def test_published_folders_there_and_back(case, format, tmp_path):
    model, golden = case
    tokenizer = train_unigram(["the state of the union is strong", "people of the union"] * 20, 30, family="t5")
    # The golden models have fewer rows than T5's tokenizer, whose sentinels alone are 100. The TF1 format has no
    # configuration: it means the published epsilon and distance.
    config = dataclasses.replace(
        model.config, vocabulary_size=tokenizer.vocabulary_size, layer_norm_epsilon=1e-6, max_distance=128
    )
    model, inputs = T5(config), features(golden)
    expected = model(inputs)["sequence_output"]
    if format == "tf1" and config.tied != config.scale_outputs:
        with pytest.raises(ConfigError, match="means scale_outputs=True, this model has False"):
            bert_tf.save(Denoising(model), tokenizer, tmp_path / "theirs", format)
        return
    bert_tf.save(Denoising(model), tokenizer, tmp_path / "theirs", format)
    loaded = bert_tf.load(tmp_path / "theirs")
    assert (loaded.family, type(loaded.objective)) == ("t5", Denoising)
    assert loaded.backbone.config == config
    np.testing.assert_array_equal(loaded.backbone(inputs)["sequence_output"], expected)
    assert loaded.tokenizer.encode("<extra_id_0>") == [tokenizer.vocabulary_size - 1]
    bert_tf.load(tmp_path / "theirs").save(tmp_path / "run", format="run")
    np.testing.assert_array_equal(bert_tf.load(tmp_path / "run").backbone(inputs)["sequence_output"], expected)


def test_tables_are_tied_where_the_file_has_one(case, tmp_path):
    """Whatever the configuration says, as transformers 5 does it; the configuration says whether outputs are scaled."""
    model, _golden = case
    folder = tmp_path / "theirs"
    bert_tf.save(model, None, folder)
    arrays = load_file(folder / "model.safetensors")
    other = arrays.get("lm_head.weight", arrays["shared.weight"] + 1)
    written = json.loads((folder / "config.json").read_text())
    del written["tie_word_embeddings"]
    for scaled, head in itertools.product((True, False), (None, arrays["shared.weight"], other)):
        said = {"tie_word_embeddings": True, "scale_decoder_outputs": scaled}  # as version 5 writes it
        (folder / "config.json").write_text(json.dumps(written | said))
        arrays.pop("lm_head.weight", None)
        save_file(arrays | ({} if head is None else {"lm_head.weight": head}), folder / "model.safetensors")
        source = open_source(folder)
        assert (source.config.tied, source.config.scale_outputs) == (head is not other, scaled)
        loaded = T5(source.config)
        source.fill(loaded)
        x = np.random.default_rng(0).normal(size=(2, 20)).astype("float32")
        expected = (x / 20**0.5 if scaled else x) @ (arrays["shared.weight"] if head is None else head).T
        np.testing.assert_allclose(loaded.output_logits(x), expected, atol=1e-5)


def test_cached_equals_uncached():
    np.testing.assert_allclose(*cached_and_whole(make()), atol=1e-5)


def test_a_mask_of_the_decoder_is_as_long_as_its_tokens():
    model, ids = make(), np.ones((2, 4), "int32")
    given = {"token_ids": ids, "padding_mask": ids > 0, "decoder_token_ids": ids[:, :3]}
    assert model(given | {"decoder_padding_mask": ids[:, :3] > 0})["sequence_output"].shape == (2, 3, 20)
    message = r"'decoder_padding_mask' has the shape \(2, 4\) and 'decoder_token_ids' \(2, 3\)"
    with pytest.raises(DataError, match=message):
        model(given | {"decoder_padding_mask": ids > 0})


def test_packed_texts_are_numbered_on_both_sides():
    """Else those of the target would number the source, too, where both are of one length."""
    model, ids = make(), np.ones((2, 4), "int32")
    for name in ("sequence_ids", "decoder_sequence_ids"):
        with pytest.raises(DataError, match=f"there is '{name}' alone; give 'sequence_ids' and 'decoder_sequence_ids'"):
            model({"token_ids": ids, "decoder_token_ids": ids, name: ids})


def test_a_feed_forward_network_that_is_not_known(case):
    theirs = case[1]["config"]
    for form in ("gated-tanh", ["relu"], {}, None):
        with pytest.raises(ConfigError, match="feed_forward_proj is .*; known: relu, gelu, gated-gelu"):
            t5.HF_CONFIG.read(theirs | {"feed_forward_proj": form, "dense_act_fn": None}, "config.json")
    for key, value in (("dense_act_fn", "mish"), ("dense_act_fn", ["relu"]), ("is_gated_act", "yes")):
        with pytest.raises(ConfigError, match=f"{key} is '|{key} is .'relu|{key} must be"):
            t5.HF_CONFIG.read(theirs | {key: value}, "config.json")
    # What is computed, whatever the older key says.
    read = t5.HF_CONFIG.read(theirs | {"dense_act_fn": "silu", "is_gated_act": True, "feed_forward_proj": "relu"}, "c")
    assert (read["activation"], read["gated"]) == ("silu", True)


def test_shared_layers(tmp_path):
    own, shared = (
        T5(T5Config(**SIZES | {"num_decoder_layers": 3, "intermediate_size": 28, "share_layers": s}))
        for s in (False, True)
    )
    one_layer = 4 * 20 * 18 + 2 * 20 * 28 + 2 * 20
    assert own.count_params() - shared.count_params() == 3 * one_layer
    with pytest.raises(ConfigError, match="share_layers needs as many layers"):
        make(share_layers=True)
    with pytest.raises(ConfigError, match="means share_layers=False, this model has True"):
        bert_tf.save(shared, None, tmp_path / "theirs", "tf1")


def test_initial_weights():
    model = T5(T5Config(200, 64, num_layers=2, num_heads=4, head_size=32, intermediate_size=256, gated=True))
    path = "decoder_layer_1/cross_attention"
    wanted = {
        "embeddings/token_embeddings": 1.0,
        f"{path}/query/kernel": (64 * 32) ** -0.5,
        f"{path}/key/kernel": 64**-0.5,
        f"{path}/output/kernel": (4 * 32) ** -0.5,
        "encoder_layer_0/gate/kernel": 64**-0.5,
        "encoder_layer_0/output/kernel": 256**-0.5,
    }
    for variable in model.weights:
        if variable.path in wanted:
            deviation = float(np.std(variable))
            assert deviation == pytest.approx(wanted.pop(variable.path), rel=0.05)
    assert not wanted


def test_a_pooler_is_refused():
    with pytest.raises(ConfigError, match="T5 is an encoder-decoder, which has no pooler; set task.kind=text_to_text"):
        T5(make().config, pooler=True)
