"""Presets that KerasHub wrote, see tests/golden/keras_hub_presets.py, and those that are written for it."""

import json
import shutil
import zipfile
from pathlib import Path

import h5py
import ml_dtypes
import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError, UserError
from bert_tf.models import GPT2Config, build_backbone, build_config
from bert_tf.objectives import CausalLM, MaskedLM
from bert_tf.tasks import build_task
from bert_tf.training.starting import initialize

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "keras_hub"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.zip"))
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2}
TASKS = [name for name in NAMES if name.endswith("classifier")]


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """The folder that holds all of them."""
    folder = tmp_path_factory.mktemp("presets")
    for name in NAMES:
        with zipfile.ZipFile(FIXTURES / f"{name}.zip") as file:
            file.extractall(folder / name)
    return folder


def golden(folder):
    with np.load(folder / "expected.npz") as file:
        return dict(file)


def difference(ours, theirs, real=None):
    """Relative to the largest value, of real tokens."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if real is not None and theirs.ndim == 3:
        ours, theirs = ours[real], theirs[real]
    return np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))


def inputs(expected):
    """What our models read, under our names."""
    names = {key: key.removeprefix("encoder_") for key in expected if key.endswith(("_ids", "_mask", "_positions"))}
    return {"segment_ids": np.zeros((2, 8), "int32")} | {own: expected[key] for key, own in names.items()}


def real_tokens(expected):
    return expected.get("decoder_padding_mask", expected.get("padding_mask")).astype(bool)


def check_vectors(model, expected, prefix=""):
    """The model's outputs are those of KerasHub's."""
    outputs = model.backbone(model.backbone.select(inputs(expected)))
    theirs = expected[f"{prefix}sequence_output"]
    assert difference(outputs["sequence_output"], theirs, real_tokens(expected)) < 1e-6
    return outputs


@pytest.mark.parametrize("name", NAMES)
def test_the_backbone_computes_what_kerashub_computes(presets, name):
    expected, loaded = golden(presets / name), bert_tf.load(presets / name)
    outputs = check_vectors(loaded, expected, "decoder_" if name == "t5" else "")
    assert loaded.report.fresh == ()
    if "pooled_output" in expected and name != "electra":  # ours has no pooler
        assert difference(outputs["pooled_output"], expected["pooled_output"]) < 1e-6


@pytest.mark.parametrize("name", ["bert_masked_lm", "roberta_masked_lm", "albert_masked_lm", "gpt2", "t5"])
def test_the_logits_of_pretraining(presets, name):
    expected, loaded = golden(presets / name), bert_tf.load(presets / name)
    outputs = loaded.objective(inputs(expected))
    assert loaded.report.unused == loaded.report.fresh == ()
    logits = next(value for key, value in outputs.items() if key.endswith("logits"))
    assert difference(logits, expected["logits"], real_tokens(expected)) < 1e-6


@pytest.mark.parametrize("name", TASKS)
def test_a_classifier_is_a_task(presets, name):
    expected, loaded = golden(presets / name), bert_tf.load(presets / name)
    outputs = loaded.model(inputs(expected))
    key = {"roberta_classifier": "probabilities", "distilbert_classifier": "score"}.get(name, "logits")
    assert difference(outputs[key], expected["logits"].reshape(np.shape(outputs[key]))) < 1e-6
    assert loaded.task.kind == ("regression" if name == "distilbert_classifier" else "classification")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("electra", "t5", "xlnet")])
def test_the_tokenizer_gives_kerashubs_ids(presets, name):
    expected, tokenizer = golden(presets / name), bert_tf.load(presets / name).tokenizer
    for number, sentence in enumerate(map(str, expected["sentences"])):
        if "[MASK]" not in sentence:  # special tokens in a text are text for KerasHub's, if not asked otherwise
            assert np.asarray(tokenizer.tokenize([sentence])[0]).tolist() == expected[f"ids_{number}"].tolist()


def test_through_here_a_preset_gets_to_hugging_face(presets, tmp_path):
    """Which KerasHub cannot do for a BERT: its encoder has the same outputs there, its masked LM head another epsilon."""
    loaded = bert_tf.load(presets / "bert_masked_lm")
    with pytest.raises(ConfigError, match="activation='gelu_erf' and layer_norm_epsilon=1e-05, .* and format 'hf'"):
        loaded.save(tmp_path / "hf")
    loaded.save(tmp_path / "hf", encoder_only=True)
    again = bert_tf.load(tmp_path / "hf")
    assert again.source.format == "hf"
    check_vectors(again, golden(presets / "bert_masked_lm"))
    assert again.tokenizer.encode("the café") == loaded.tokenizer.encode("the café")
    classifier = bert_tf.load(presets / "bert_classifier")
    classifier.save(tmp_path / "classifier")
    assert bert_tf.load(tmp_path / "classifier").predict("the people") == classifier.predict("the people")


def test_the_head_of_its_own_goes_with_a_run_and_is_pretrained_further(presets, tmp_path):
    loaded = bert_tf.load(presets / "bert_masked_lm")
    loaded.save(tmp_path / "run", format="run")
    expected, again = golden(presets / "bert_masked_lm"), bert_tf.load(tmp_path / "run")
    logits = again.objective(inputs(expected))["masked_lm_logits"]
    assert difference(logits, expected["logits"], real_tokens(expected)) < 1e-6
    source = open_source(presets / "bert_masked_lm")
    encoder = build_backbone(source.config, pooler=False)
    with pytest.raises(ConfigError, match="head_activation is None, but .* has 'gelu_erf'; set objective.head_act"):
        initialize(MaskedLM(encoder), source.tokenizer, source)
    initialize(MaskedLM(encoder, head={"activation": "gelu_erf", "layer_norm_epsilon": 1e-5}), source.tokenizer, source)


def stored(folder):
    """Name -> array of the layers in a preset's files."""
    found = {}
    for file in ("model.weights.h5", "task.weights.h5"):
        if (folder / file).exists():
            with h5py.File(folder / file) as opened:
                names = []
                opened.visititems(lambda name, item, names=names: isinstance(item, h5py.Dataset) and names.append(name))
                found |= {f"{file}/{name}": opened[name][...] for name in names if name.startswith("layers/")}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_holds_what_kerashub_wrote(presets, tmp_path, name):
    loaded, folder = bert_tf.load(presets / name), tmp_path / "again"
    if name in ("electra", "t5", "xlnet"):  # these have no tokenizer
        bert_tf.save(loaded.objective if name == "t5" else loaded.backbone, None, folder, format="keras_hub")
    else:
        assert main(["convert", str(presets / name), str(folder), "--to", "keras_hub"]) in (None, 0)
    ours, theirs = stored(folder), stored(presets / name)
    assert ours.keys() == theirs.keys()
    pooler = ("model.weights.h5/layers/dense_1/vars/0",) if name == "electra" else ()  # random: ours has none
    for path in ours:
        assert path in pooler or np.array_equal(ours[path], theirs[path]), path
    for file in ("config.json", "task.json"):
        if (presets / name / file).exists():
            mine, kerashubs = (json.loads((path / file).read_text()) for path in (folder, presets / name))
            assert mine["registered_name"] == kerashubs["registered_name"]
            same = set(mine["config"]) & set(kerashubs["config"]) - {"backbone", "preprocessor", "activation"}
            assert {key: mine["config"][key] for key in same} == {key: kerashubs["config"][key] for key in same}
            assert set(mine["config"]) <= set(kerashubs["config"])
    if not (presets / name / "tokenizer.json").exists():
        return
    again = bert_tf.load(folder)
    assert again.tokenizer.encode("The people of the states.") == loaded.tokenizer.encode("The people of the states.")
    if name in TASKS:
        assert again.predict("the people") == loaded.predict("the people")


def bert(**settings):
    config = build_config({"family": "bert", "intermediate_size": 24, "max_positions": 16} | SIZES | settings, 30)
    encoder = build_backbone(config, pooler=True)
    generator = np.random.default_rng(1)
    for variable in encoder.weights:
        variable.assign(np.asarray(variable) + 0.3 * generator.normal(size=variable.shape))
    return encoder


def test_what_kerashub_has_fixed_otherwise_is_refused_or_measured(tmp_path, caplog):
    encoder = bert(activation="gelu_erf")
    with pytest.raises(ConfigError, match="BertBackbone has fixed .* activation is 'gelu_erf' here, 'gelu_tanh' there"):
        bert_tf.save(encoder, None, tmp_path / "no", format="keras_hub")
    model = MaskedLM(bert())
    with pytest.raises(ConfigError, match="head_activation is 'gelu_tanh' here, 'gelu_erf' there; head_epsilon"):
        bert_tf.save(model, None, tmp_path / "no", format="keras_hub")
    with pytest.raises(ConfigError, match="format 'hf' has no approximations; .* choose keras_hub"):
        bert_tf.save(encoder, None, tmp_path / "no", approximate=True)
    assert not (tmp_path / "no").exists()
    bert_tf.save(encoder, None, tmp_path / "preset", format="keras_hub", approximate=True)
    said = "BertBackbone has activation='gelu_tanh', the model 'gelu_erf'"
    (logged,) = (text for text in caplog.messages if said in text)
    again = bert_tf.load(tmp_path / "preset").backbone
    assert again.config.activation == "gelu_tanh"
    ids = {"token_ids": np.random.default_rng(0).integers(0, 30, (2, 16), "int32")}
    measured = max(difference(encoder(ids)[key], again(ids)[key]) for key in ("sequence_output", "pooled_output"))
    assert 1e-5 < measured < 1e-2
    assert f"differ by {measured:.1e} of the largest" in logged


def test_the_difference_of_a_decoder_is_measured(tmp_path, caplog):
    sizes = {"family": "gpt2", "intermediate_size": 64, "max_positions": 16, "layer_norm_epsilon": 1e-2}
    decoder = build_backbone(build_config(sizes | SIZES, 30))
    for number, model in enumerate((decoder, CausalLM(decoder))):
        with pytest.raises(ConfigError, match="GPT2CausalLM has fixed .* layer_norm_epsilon is 0.01 here, 1e-05 there"):
            bert_tf.save(model, None, tmp_path / "no", format="keras_hub")
        bert_tf.save(model, None, tmp_path / str(number), format="keras_hub", approximate=True)
    said = "GPT2CausalLM has layer_norm_epsilon=1e-05, the model 0.01; on random tokens the outputs differ"
    assert caplog.text.count(said) == 2


def test_heads_that_kerashub_does_not_have_are_left_out(tmp_path, caplog):
    bert_tf.save(MaskedLM(bert(), pair_task="nsp"), None, tmp_path / "bert", format="keras_hub", approximate=True)
    assert "KerasHub's bert has no pair_head: not written" in caplog.text
    assert bert_tf.load(tmp_path / "bert").source.parts >= {"masked_lm_head", "pooler"}
    plain = build_backbone(bert().config, pooler=False)
    bert_tf.save(plain, None, tmp_path / "plain", format="keras_hub")
    assert "the model has no pooler: that of KerasHub is randomly initialized" in caplog.text
    sizes = {"family": "spanbert", "hidden_size": 8, "num_layers": 1, "num_heads": 2, "intermediate_size": 8}
    with pytest.raises(ConfigError, match="KerasHub has no 'spanbert'"):
        bert_tf.save(build_backbone(build_config(sizes, 9)), None, tmp_path / "spanbert", format="keras_hub")


def test_the_segment_row_of_a_roberta_goes_into_its_positions(tmp_path):
    encoder = build_backbone(build_config({"family": "roberta", "intermediate_size": 24} | SIZES, 30), pooler=False)
    for variable in encoder.weights:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    bert_tf.save(encoder, None, tmp_path / "preset", format="keras_hub")
    again, ids = bert_tf.load(tmp_path / "preset").backbone, {"token_ids": np.array([[5, 6, 7, 8, 9]])}
    assert again.config.num_segments == 0
    assert difference(again(ids)["sequence_output"], encoder(ids)["sequence_output"]) < 1e-6


def test_shards_and_bfloat16(presets, tmp_path):
    whole, folder = presets / "bert_classifier", tmp_path / "shards"
    shutil.copytree(whole, folder)
    with h5py.File(folder / "model.weights.h5") as file, h5py.File(folder / "model_00000.weights.h5", "w") as first:
        for name in list(file["layers"])[:4]:
            file.copy(f"layers/{name}", first, f"layers/{name}")
        with h5py.File(folder / "model_00001.weights.h5", "w") as second:
            for name in list(file["layers"])[4:]:
                file.copy(f"layers/{name}", second, f"layers/{name}")
            kernel = second["layers/reversible_embedding/vars/0"]
            rounded = kernel[...].astype(ml_dtypes.bfloat16)
            del second["layers/reversible_embedding/vars/0"]
            second.create_dataset("layers/reversible_embedding/vars/0", data=rounded).attrs["dtype"] = "bfloat16"
    (folder / "model.weights.h5").unlink()
    names = {"/layers/add/vars": "model_00000.weights.h5", "/layers/other/vars": ["model_00001.weights.h5"]}
    (folder / "model.weights.json").write_text(json.dumps({"weight_map": names}))
    ours, table = bert_tf.load(folder).backbone, "embeddings/token_embeddings"
    weights = {variable.path: np.asarray(variable) for variable in ours.weights}
    for variable in bert_tf.load(whole).backbone.weights:
        expected = rounded.astype("float32") if variable.path == table else np.asarray(variable)
        assert np.array_equal(weights[variable.path], expected)


@pytest.mark.parametrize(("file", "change", "message"), [
    ("config.json", {"class_name": "BertBackBone"}, "class 'BertBackBone'; did you mean 'BertBackbone'"),
    ("config.json", {"config": []}, "lacks 'class_name' or 'config'"),
    ("task.json", {"config": {"num_classes": 3, "activation": "relu"}}, "activation is 'relu'; only 'linear'"),
    ("tokenizer.json", {"config": {"lowercase": 1, "split": False}}, "split is False, which is not supported"),
    ("model.weights.h5", None, "is not an HDF5 file of weights"),
])  # fmt: skip
def test_what_is_not_understood_is_named(presets, tmp_path, file, change, message):
    shutil.copytree(presets / "bert_classifier", tmp_path / "preset")
    path = tmp_path / "preset" / file
    if change is None:
        path.write_bytes(path.read_bytes()[:500])
    else:
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=message):
        _ = bert_tf.load(tmp_path / "preset").model


def test_xlm_roberta_is_a_roberta_without_a_tokenizer_here(presets, tmp_path):
    shutil.copytree(presets / "roberta_classifier", tmp_path / "preset")
    for file in ("config.json", "task.json", "tokenizer.json"):
        path = tmp_path / "preset" / file
        path.write_text(path.read_text().replace('"Roberta', '"XLMRoberta'))
    again = bert_tf.load(tmp_path / "preset")
    assert (again.family, again.config.padding_id) == ("roberta", 1)
    check_vectors(again, golden(presets / "roberta_classifier"))
    with pytest.raises(ConfigError, match="the tokenizer of XLM-RoBERTa is not supported"):
        _ = again.tokenizer


def test_labels_and_kinds_of_classifiers_come_back(presets, tmp_path):
    loaded = bert_tf.load(presets / "bert_classifier")
    for kind, labels in (("classification", ["no", "yes"]), ("multi_label", ["a", "b", "c"]), ("regression", None)):
        given = {"kind": kind, "sequence_length": 16} | ({"labels": labels} if labels else {})
        task = build_task(given, loaded.tokenizer, backbone=loaded.config)
        task = task.with_state(mean=2.0, scale=3.0) if kind == "regression" else task
        model = task.model(build_backbone(loaded.config, pooler=True))
        bert_tf.save(model, None, tmp_path / kind, format="keras_hub", task=task)
        again = bert_tf.load(tmp_path / kind)
        assert (again.task.kind, again.task.labels) == (kind, tuple(labels) if labels else None)
        ours, theirs = task.predict(model, ["the people"]), again.predict(["the people"])
        assert ours[0].keys() == theirs[0].keys()
        assert kind != "regression" or ours[0]["score"] == pytest.approx(theirs[0]["score"], abs=1e-5)
    tagging = build_task({"kind": "tagging", "labels": ["O", "B-X", "I-X"], "sequence_length": 16}, loaded.tokenizer)
    with pytest.raises(ConfigError, match="KerasHub has no class for tagging with 'bert'"):
        model = tagging.model(build_backbone(loaded.config, pooler=False))
        bert_tf.save(model, None, tmp_path / "no", format="keras_hub", task=tagging)


def test_tokens_that_were_added_are_not_lost_in_silence(tmp_path, caplog):
    tokenizer = bert_tf.load(FIXTURES.parent / "gpt2").tokenizer.add_tokens(["<e1>"], special=True)
    model = build_backbone(GPT2Config(tokenizer.vocabulary_size, 16, 1, 2, 64, max_positions=16))
    with pytest.raises(ConfigError, match="does not find further special tokens in texts, such as '<e1>'.*approximate"):
        bert_tf.save(model, tokenizer, tmp_path / "refused", format="keras_hub")
    assert not (tmp_path / "refused").exists()
    with caplog.at_level("WARNING"):
        bert_tf.save(model, tokenizer, tmp_path / "preset", format="keras_hub", approximate=True)
    assert "further special tokens in texts, such as '<e1>': some texts get other ids there" in caplog.text
