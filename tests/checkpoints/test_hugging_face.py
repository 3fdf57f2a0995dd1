"""Tiny directories that transformers wrote, see tests/golden/checkpoints.py: opened, written, opened again."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from numeric import relative_error
from published_models import assert_same_tensors, assert_same_weights, change_arrays, copy_of
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf.checkpoints import hugging_face, open_source
from bert_tf.errors import ConfigError, DataError, RunDirectoryError
from bert_tf.models import BertConfig, ElmoConfig, build_backbone, build_config

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
SENTENCE = "the people of the united states, and the government"
#: Folder -> what it holds beside an encoder: (family, parts that a bare encoder leaves unused).
CASES = {
    "bert": ("bert", {"cls"}),
    "bert_sharded": ("bert", {"cls"}),
    "bert_bare": ("bert", set()),
    "distilbert": ("distilbert", {"vocab_transform", "vocab_layer_norm", "vocab_projector"}),
    "electra": ("electra", {"discriminator_predictions"}),
    "electra_generator": ("electra", {"generator_predictions", "generator_lm_head"}),
    "roberta": ("roberta", {"lm_head"}),
    "albert": ("albert", {"predictions", "sop_classifier"}),
    "xlnet": ("xlnet", {"lm_loss"}),
    "modernbert": ("modernbert", {"head", "decoder"}),
    "gpt2": ("gpt2", set()),
    "gpt2_bare": ("gpt2", set()),
    "gpt1": ("gpt1", set()),
}
WITH_HEADS = sorted(set(CASES) - {"bert_bare", "gpt2_bare"})


def expected(name):
    with np.load(FIXTURES / name / "expected.npz") as file:
        return dict(file)


def inputs(golden):
    result = {k: golden[k].astype("int32") for k in ("token_ids", "segment_ids")}
    return result | {"padding_mask": golden["padding_mask"]}


@pytest.mark.parametrize("name", CASES)
def test_the_encoder(name):
    golden, (family, unused) = expected(name), CASES[name]
    loaded = bert_tf.load(FIXTURES / name)
    assert loaded.family == family
    ours, real = np.asarray(loaded.backbone(inputs(golden))["sequence_output"]), golden["padding_mask"]
    assert {n.split(".")[0] for n in loaded.report.unused} == unused
    assert loaded.report.fresh == ()
    assert relative_error(ours[real], golden["sequence_output"][real]) < 1e-5
    assert loaded.tokenizer.encode(SENTENCE) == golden["sentence_ids"].tolist()
    if name in WITH_HEADS:  # the report is of all that was made
        assert loaded.objective and loaded.report.unused == ()


@pytest.mark.parametrize("name", WITH_HEADS)
def test_the_pretraining_model_there_and_back(name, tmp_path):
    golden = expected(name)
    loaded = bert_tf.load(FIXTURES / name)
    assert loaded.report.unused == loaded.report.fresh == ()
    features = inputs(golden)
    rows, length = features["token_ids"].shape
    features["mask_positions"] = np.tile(np.arange(length, dtype="int32"), (rows, 1))
    if name == "xlnet":
        features = features | {"permutation_order": np.tile(np.arange(length, dtype="int32"), (rows, 1))}
        # The golden logits are those of the content stream.
        table = loaded.encoder.embedding_table
        outputs = {"logits": loaded.objective.lm_head(loaded.encoder(inputs(golden))["sequence_output"], table)}
    else:
        outputs = loaded.objective(features)
    names = ("logits", "masked_lm_logits", "replaced_logits", "causal_lm_logits")
    logits = next(outputs[name] for name in names if name in outputs)
    assert relative_error(np.asarray(logits)[:, [0, 3, 5]], golden["logits"]) < 1e-5
    if "pair_logits" in golden:
        assert relative_error(outputs["pair_logits"], golden["pair_logits"]) < 1e-5

    bert_tf.save(loaded.objective, loaded.tokenizer, tmp_path / "written")
    theirs = {n: a for file in (FIXTURES / name).glob("*.safetensors") for n, a in load_file(file).items()}
    ours = load_file(tmp_path / "written" / "model.safetensors")
    assert ours.keys() == theirs.keys()
    for array in ours:
        np.testing.assert_array_equal(ours[array], theirs[array])
    config = json.loads((tmp_path / "written" / "config.json").read_text())
    original = json.loads((FIXTURES / name / "config.json").read_text())
    assert config["architectures"] == original["architectures"]
    again = bert_tf.load(tmp_path / "written")
    assert again.encoder.config == loaded.encoder.config
    assert again.tokenizer.fingerprint == loaded.tokenizer.fingerprint
    assert_same_weights(loaded.objective, again.objective)


def test_fresh_parts_are_asked_for_and_named(tmp_path):
    with pytest.raises(DataError, match=r"no pretraining head, as after fine-tuning; .* fresh=\('masked_lm_head',\)"):
        _ = bert_tf.load(FIXTURES / "bert_bare").objective
    loaded = bert_tf.load(FIXTURES / "bert_bare", fresh=("masked_lm_head",))
    assert {path.split("/")[0] for path in loaded.report.fresh} == {"masked_lm_head"}
    assert len(loaded.report.fresh) == 5
    bert_tf.save(loaded.encoder, loaded.tokenizer, tmp_path / "written")  # a bare encoder, without the prefix
    assert_same_tensors(tmp_path / "written", FIXTURES / "bert_bare")
    assert json.loads((tmp_path / "written" / "config.json").read_text())["architectures"] == ["BertModel"]
    head = loaded.objective.masked_lm_head.dense.kernel  # random, although what is filled begins with zeros
    assert np.std(head) > 0.01
    with pytest.raises(DataError, match="nothing fills 'pooler/dense/kernel' .'bert.pooler.dense.weight' there"):
        _ = bert_tf.load(FIXTURES / "bert_sharded", pooler=True).backbone
    encoder = bert_tf.load(FIXTURES / "bert_sharded", pooler=True, fresh=("pooler",)).encoder
    assert np.std(encoder.get_layer("pooler").dense.kernel) > 0.01
    with pytest.raises(ConfigError, match="fresh names 'poler'; did you mean 'pooler'"):
        _ = bert_tf.load(FIXTURES / "bert_bare", fresh=("poler",)).backbone


def test_what_load_and_save_take(tmp_path):
    for arguments, message in (
        ({"output_hidden_state": True}, "no argument 'output_hidden_state' .*; did you mean 'output_hidden_states'"),
        ({"pooler": "yes"}, "pooler is 'yes'; it must be True or False"),
        ({"fresh": "pooler"}, r"fresh is 'pooler', one text; give a list of parts, \('pooler',\)"),
    ):
        with pytest.raises(ConfigError, match=message):
            _ = bert_tf.load(FIXTURES / "bert", **arguments).backbone
    message = "bert/config.json is one file of a model; give the folder, .*checkpoints/bert$"
    with pytest.raises(DataError, match=message):
        _ = bert_tf.load(FIXTURES / "bert" / "config.json").backbone
    loaded = bert_tf.load(FIXTURES / "bert")
    with pytest.raises(ConfigError, match="is a LanguageModel, give the `encoder` or the `objective`"):
        bert_tf.save(loaded, loaded.tokenizer, tmp_path / "saved")


def test_every_setting_is_understood_or_named(tmp_path):
    changes = {"position_embedding_type": "relative_key", "is_decoder": True, "hidden_act": "mish", "scale": 2,
               "hidden_size": ...}  # fmt: skip
    with pytest.raises(ConfigError) as error:
        _ = bert_tf.load(copy_of("bert", tmp_path / "a", **changes)).backbone
    assert str(error.value).splitlines()[1:] == [
        "  'hidden_size' is missing",
        "  'scale' (2) is not understood",
        "  hidden_act is 'mish'; did you mean 'swish'?",
        "  is_decoder is True; only False is supported",
        "  position_embedding_type is 'relative_key'; only 'absolute' is supported",
    ]  # fmt: skip
    for key, value, message in (
        ("model_type", "bort", "model_type 'bort'; did you mean 'bert'"),
        ("model_type", ..., "has no 'model_type'; say which family"),
        ("pad_token_id", 3, r"pad_token_id is 3 .* padding token '\[PAD\]' is 0"),
        ("num_attention_heads", 5, "5"),
    ):
        folder = copy_of("bert", tmp_path / f"{key}-{value}", **{key: value})
        with pytest.raises(ConfigError, match=message):
            _ = bert_tf.load(folder).tokenizer
    folder = copy_of("bert_bare", tmp_path / "span", model_type=...)
    assert bert_tf.load(folder, family="spanbert").family == "spanbert"


def test_another_summary_than_xlnets_is_refused(tmp_path):
    for key, value in (("summary_type", "mean"), ("summary_activation", "relu"), ("summary_use_proj", False)):
        with pytest.raises(ConfigError, match=rf"{key} is {value!r}; only .* is supported"):
            _ = bert_tf.load(copy_of("xlnet", tmp_path / key, **{key: value})).backbone
        assert bert_tf.load(copy_of("xlnet", tmp_path / f"without {key}", **{key: ...})).family == "xlnet"


def test_weights_that_do_not_fit(tmp_path):
    folder = copy_of("bert", tmp_path / "layers", num_hidden_layers=1)
    with pytest.raises(DataError, match=r"'bert.encoder.layer.1.output.dense.bias' has no place in this model"):
        _ = bert_tf.load(folder).objective
    folder = copy_of("bert", tmp_path / "missing", num_hidden_layers=3)
    with pytest.raises(DataError, match="nothing fills 'transformer_layer_2/attention/"):
        _ = bert_tf.load(folder).objective
    folder = copy_of("bert", tmp_path / "strange")
    change_arrays(folder, lambda arrays: arrays | {"bert.extra": np.zeros(2, "float32")})
    with pytest.raises(DataError, match="'bert.extra' has no place in this model"):
        _ = bert_tf.load(folder).objective
    (folder / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0broken")
    with pytest.raises(DataError, match="cannot read .*model.safetensors"):
        _ = bert_tf.load(folder).objective


def test_what_cannot_be_opened_says_how_to_mend_it(tmp_path):
    folder = copy_of("bert", tmp_path / "bin")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(DataError, match="is a pickle, .* convert it .*: python -c .*save_file"):
        _ = bert_tf.load(folder).objective
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no model: it has none of .*config.json"):
        _ = bert_tf.load(tmp_path / "empty").backbone
    folder = copy_of("bert_sharded", tmp_path / "shards")
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(DataError, match="there is no file .*model-00002-of-00003.safetensors"):
        _ = bert_tf.load(folder).objective


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "_orig_mod.module.", "model."])
def test_what_a_wrapper_puts_before_every_name(wrapper, tmp_path):
    """As PyTorch's DataParallel, its torch.compile and Lightning do."""
    for name in ("modernbert", "gpt1"):
        folder = copy_of(name, tmp_path / name)
        change_arrays(folder, lambda arrays: {wrapper + key: array for key, array in arrays.items()})
        loaded = bert_tf.load(folder)
        assert loaded.report.unused == loaded.report.fresh == ()
        assert_same_weights(loaded.objective, bert_tf.load(FIXTURES / name).objective)
        first = min(load_file(folder / "model.safetensors"))
        change_arrays(folder, lambda arrays: arrays | {first.removeprefix(wrapper): arrays.pop(first)})
        with pytest.raises(DataError, match=f"'{wrapper}.*' has no place in this model"):
            _ = bert_tf.load(folder).objective


@pytest.mark.parametrize("family, format, changes, said", [
    ("xlnet", "hf", {"attention_dropout": 0.0}, ["attention_dropout=0.0: .* continues with 0.1 there"]),
    ("xlnet", "hf", {"dropout": 0.3, "attention_dropout": 0.3}, []),
    ("gpt2", "tf1", {"dropout": 0.3}, ["dropout=0.3: .* continues with 0.1 there"]),
    ("electra", "tf1", {"initializer_range": 0.5, "dropout": 0.0}, ["dropout=0.0: .*", "initializer_range=0.5: .*"]),
    ("bert", "tf1", {"dropout": 0.3, "attention_dropout": 0.0}, []),
])  # fmt: skip
def test_a_rate_that_a_format_cannot_say_is_said(family, format, changes, said, tmp_path, caplog):
    sizes = {"vocabulary_size": 50, "hidden_size": 16, "num_layers": 1, "num_heads": 1, "intermediate_size": 64}
    sizes |= {"embedding_size": 16} if family == "electra" else {}
    model = build_backbone(build_config({"family": family} | sizes | changes))
    bert_tf.save(model, None, tmp_path / "written", format)
    assert len(caplog.messages) == len(said)
    for message, pattern in zip(caplog.messages, said):
        assert re.fullmatch(f"{tmp_path}/written cannot say {pattern}.*the outputs are the same", message)


def test_half_precision_and_tied_copies(tmp_path):
    folder = copy_of("bert", tmp_path / "half")
    arrays = load_file(folder / "model.safetensors")
    whole = bert_tf.load(FIXTURES / "bert").encoder.embedding_table
    half = {n: a.astype("float16") for n, a in arrays.items()}
    half["cls.predictions.decoder.weight"] = half["bert.embeddings.word_embeddings.weight"]
    save_file(half, folder / "model.safetensors")
    loaded = bert_tf.load(folder)
    assert loaded.report.ignored == ("cls.predictions.decoder.weight",)
    np.testing.assert_array_equal(loaded.encoder.embedding_table, np.asarray(whole).astype("float16").astype("float32"))


def test_the_tokenizers_padding_id_is_the_models(tmp_path):
    roberta, bert = (bert_tf.load(FIXTURES / name) for name in ("roberta", "bert"))
    with pytest.raises(ConfigError, match="the padding id of the model is 1, that of the tokenizer 0"):
        bert_tf.save(roberta.encoder, bert.tokenizer, tmp_path / "mixed")
    modernbert = bert_tf.load(FIXTURES / "modernbert")
    bert_tf.save(modernbert.encoder, modernbert.tokenizer, tmp_path / "written")
    whole = json.loads((tmp_path / "written" / "tokenizer.json").read_text())
    original = json.loads((FIXTURES / "modernbert" / "tokenizer.json").read_text())
    assert whole["model"]["vocab"] == original["model"]["vocab"]
    assert whole["post_processor"]["processors"][-1]["single"] == original["post_processor"]["single"]
    config = json.loads((tmp_path / "written" / "config.json").read_text())
    assert (config["pad_token_id"], config["cls_token_id"], config["sep_token_id"]) == (1, 0, 2)


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path):
    loaded = bert_tf.load(FIXTURES / "bert")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    with pytest.raises(RunDirectoryError, match="is not an empty folder"):
        bert_tf.save(loaded.encoder, loaded.tokenizer, tmp_path / "full")
    with pytest.raises(ConfigError, match="'format' is 'tf'; did you mean 'tf1'"):
        bert_tf.save(loaded.encoder, loaded.tokenizer, tmp_path / "other", format="tf")

    class Broken:
        pad_id, vocabulary_size = 0, 1

        def save(self, folder):
            raise DataError("no")

    with pytest.raises(DataError, match="no"):
        bert_tf.save(loaded.encoder, Broken(), tmp_path / "other")
    Broken.vocabulary_size = 100_000
    with pytest.raises(ConfigError, match="the tokenizer has 100000 tokens, the model only [0-9]+; give the"):
        bert_tf.save(loaded.encoder, Broken(), tmp_path / "other")
    assert [p.name for p in tmp_path.iterdir()] == ["full"]


@pytest.mark.parametrize(("format", "dtype"), [("hf", "bfloat16"), ("tf1", "float16"), ("bilm", "float64")])
def test_published_files_are_float32_whatever_the_model_computes_in(format, dtype, tmp_path):
    config = ElmoConfig(hidden_size=8, units=6, character_size=4, filters=((1, 8),), highways=1)
    if format != "bilm":
        config = BertConfig(9, 4, num_layers=1, num_heads=2, intermediate_size=6, max_positions=5)
    model = build_backbone(config, dtype=dtype)
    bert_tf.save(model, None, tmp_path / "theirs", format)
    source = open_source(tmp_path / "theirs")
    assert {source.arrays[name].dtype for name in source.arrays} == {np.dtype("float32")}
    again = build_backbone(source.config)
    source.fill(again)
    for ours, theirs in zip(model.weights, again.weights, strict=True):
        np.testing.assert_allclose(np.asarray(ours, "float32"), theirs, err_msg=ours.path)


@pytest.mark.parametrize("family, segments", [
    ("bert", True), ("albert", True), ("electra", True), ("xlnet", True), ("distilbert", False), ("roberta", False),
    ("modernbert", False), ("gpt2", False), ("gpt1", False),
])  # fmt: skip
def test_the_tokenizer_gives_the_inputs_that_the_model_reads(family, segments, tmp_path):
    loaded = bert_tf.load(FIXTURES / family)
    bert_tf.save(loaded.encoder, loaded.tokenizer, tmp_path / "written")
    config = json.loads((tmp_path / "written" / "tokenizer_config.json").read_text())
    # transformers 5 gives a tokenizer without this key no segments, and refuses segments that a model does not take.
    assert config["model_input_names"] == ["input_ids", *["token_type_ids"] * segments, "attention_mask"]
    assert config["padding_side"] == ("left" if family == "xlnet" else "right")
    if family in ("bert", "xlnet"):
        assert config.get("model_max_length") == (16 if family == "bert" else None)
    assert bert_tf.load(tmp_path / "written").tokenizer.fingerprint == loaded.tokenizer.fingerprint


@pytest.mark.parametrize("name", ["bert", "gpt2", "modernbert"])
def test_large_arrays_are_read_and_set_block_by_block(name, monkeypatch):
    whole = bert_tf.load(FIXTURES / name).objective
    monkeypatch.setattr(hugging_face, "BLOCK", 40)  # one row of a table, or a few
    arrays = open_source(FIXTURES / name).arrays
    assert max(len(list(arrays.blocks(array))) for array in arrays) > 5
    assert_same_weights(bert_tf.load(FIXTURES / name).objective, whole)
