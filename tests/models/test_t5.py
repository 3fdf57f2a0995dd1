"""T5: parity with Hugging Face's in float64 (see tests/golden/t5.py), the cache, generation, the checkpoints; ByT5."""

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
from bert_tf.checkpoints.hugging_face import recognize_family
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import EncoderDecoderSteps, GenerationConfig, Restrictions, TextGenerator, beam_search
from bert_tf.generation.sampling import generate_tokens
from bert_tf.models.t5 import checkpoints as t5
from bert_tf.models.t5.config import T5Config
from bert_tf.models.t5.model import T5
from bert_tf.models.weights import export_weights, load_weights
from bert_tf.objectives import Denoising
from bert_tf.tokenizers import ByteTokenizer, train_unigram

SIZES = dict(
    vocabulary_size=37, hidden_size=20, num_layers=3, num_decoder_layers=2, num_heads=3, head_size=6, intermediate_size=28,
    num_buckets=8, max_distance=10,
)  # fmt: skip
END = 1


def make(seed=3, **changes):
    keras.utils.set_random_seed(seed)
    return moved(T5(T5Config(**SIZES | changes)), seed)


@pytest.fixture(scope="module", params=["t5_relu_tied", "t5_gated_untied", "t5_gated_tied"])
def case(request):
    golden, golden_config = load(request.param)
    golden["config"], weights = golden_config, part(golden, "weights/")
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
    assert_exported(model, golden, t5.HF_WEIGHTS)
    written = t5.HF_CONFIG.write(model.config)
    scaled = written.pop("tie_word_embeddings")  # transformers 5 writes True whatever it is
    assert scaled == golden["config"]["scale_decoder_outputs"]
    assert {key: golden["config"].get(key) for key in written} == written


def test_an_mt5_is_a_t5_1_1(case):
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
    for family in (None, "t5"):
        assert recognize_family(theirs, "config.json", family).name == "t5"
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


def test_tables_are_tied_where_the_file_has_one(tmp_path):
    """Whatever the configuration says, as transformers 5 does it; the configuration says whether outputs are scaled."""
    folder = tmp_path / "theirs"
    bert_tf.save(make(num_layers=1, num_decoder_layers=1, tied=False, scale_outputs=False), None, folder)
    arrays = load_file(folder / "model.safetensors")
    other = arrays["lm_head.weight"]
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


def test_what_is_refused():
    """Else the texts of a packed target would number the source, too, where both are of one length."""
    model, ids = make(), np.ones((2, 4), "int32")
    given = {"token_ids": ids, "padding_mask": ids > 0, "decoder_token_ids": ids[:, :3]}
    assert model(given | {"decoder_padding_mask": ids[:, :3] > 0})["sequence_output"].shape == (2, 3, 20)
    message = r"'decoder_padding_mask' has the shape \(2, 4\) and 'decoder_token_ids' \(2, 3\)"
    with pytest.raises(DataError, match=message):
        model(given | {"decoder_padding_mask": ids > 0})
    message = "T5 is an encoder-decoder, which has no pooler; set task.kind=text_to_text"
    with pytest.raises(ConfigError, match=message):
        T5(model.config, pooler=True)
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
    own, shared = (make(num_decoder_layers=3, share_layers=share) for share in (False, True))
    one_layer = 4 * 20 * 18 + 2 * 20 * 28 + 2 * 20
    assert own.count_params() - shared.count_params() == 3 * one_layer
    with pytest.raises(ConfigError, match="share_layers needs as many layers"):
        make(share_layers=True)
    shared = T5(dataclasses.replace(shared.config, num_buckets=32, max_distance=128))
    with pytest.raises(ConfigError, match="means share_layers=False, this model has True"):
        bert_tf.save(shared, None, tmp_path / "theirs", "tf1")


def test_initial_weights():
    model = T5(T5Config(200, 64, num_layers=2, num_heads=4, head_size=32, intermediate_size=256, gated=True))
    path = "decoder_layer_1/cross_attention"
    wanted = {
        "embeddings/token_embeddings": 1.0, f"{path}/query/kernel": (64 * 32) ** -0.5, f"{path}/key/kernel": 64**-0.5,
        f"{path}/output/kernel": (4 * 32) ** -0.5, "encoder_layer_0/gate/kernel": 64**-0.5,
        "encoder_layer_0/output/kernel": 256**-0.5,
    }  # fmt: skip
    for variable in model.weights:
        if variable.path in wanted:
            deviation = float(np.std(variable))
            assert deviation == pytest.approx(wanted.pop(variable.path), rel=0.05)
    assert not wanted


BYT5 = {"num_layers": 3, "num_decoder_layers": 1, "num_heads": 2, "head_size": 6, "intermediate_size": 28}
PROMPTS = ["모든 국민은 법 앞에 평등하다.", "한", "e\u0301 👩‍👧 a\x00b"]
# Of google/byt5-small, beside the sizes.
PUBLISHED = {
    "_name_or_path": "/home/patrick/t5/byt5-small", "architectures": ["T5ForConditionalGeneration"], "d_ff": 28, "d_kv": 6,
    "d_model": 20, "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
    "gradient_checkpointing": False, "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06,
    "model_type": "t5", "num_decoder_layers": 1, "num_heads": 2, "num_layers": 3, "pad_token_id": 0,
    "relative_attention_num_buckets": 32, "tie_word_embeddings": False, "tokenizer_class": "ByT5Tokenizer",
    "transformers_version": "4.7.0.dev0", "use_cache": True, "vocab_size": 384,
}  # fmt: skip


@pytest.fixture(scope="module")
def byt5(tmp_path_factory):
    """(folder, model): a model whose best byte is clearly the best."""
    keras.utils.set_random_seed(5)
    model = T5(T5Config(384, 20, activation="gelu_tanh", gated=True, tied=False, **BYT5))
    for variable in model.trainable_variables:
        variable.assign(variable + 0.3 * np.random.default_rng(1).normal(size=variable.shape))
    folder = tmp_path_factory.mktemp("byt5") / "small"
    bert_tf.save(Denoising(model), ByteTokenizer(), folder, "hf")
    (folder / "config.json").write_text(json.dumps(PUBLISHED))
    # As published, for which see tests/tokenizers/test_byte.py: without tokenizer.json.
    (folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 125}))
    (folder / "tokenizer.json").unlink()
    return folder, model


def test_a_published_byt5_opens_and_is_written_back(byt5, tmp_path):
    folder, model = byt5
    loaded = bert_tf.load(folder)
    assert loaded.backbone.config == model.config and loaded.tokenizer.vocabulary_size == 384
    assert loaded.tokenizer.sentinel_ids == list(range(258, 247, -1))
    config = GenerationConfig(max_new_tokens=12)
    wanted = TextGenerator(model, ByteTokenizer())(PROMPTS, config)
    assert TextGenerator(loaded.backbone, loaded.tokenizer)(PROMPTS, config) == wanted
    assert len({row[0].text for row in wanted}) == 3
    bert_tf.save(loaded.objective, loaded.tokenizer, tmp_path / "again", "hf")
    ours = json.loads((tmp_path / "again" / "config.json").read_text())
    same = "d_model d_kv num_decoder_layers feed_forward_proj tie_word_embeddings vocab_size eos_token_id model_type".split()
    assert {key: ours[key] for key in same} == {key: PUBLISHED[key] for key in same}
    again = bert_tf.load(tmp_path / "again")
    assert again.tokenizer.fingerprint == loaded.tokenizer.fingerprint
    for mine, theirs in zip(again.objective.variables, loaded.objective.variables):
        np.testing.assert_array_equal(mine, theirs)
