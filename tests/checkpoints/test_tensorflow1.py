"""TensorFlow 1 checkpoints: the names that the original code gives its variables, and the way back."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from published_models import assert_same_weights, write_tensorflow1

import bert_tf
from bert_tf import models
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.electra.model import make_generator
from bert_tf.objectives import MaskedLM, PermutationLM, ReplacedTokenDetection
from bert_tf.tokenizers import WordPieceTokenizer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
SIZES = dict(vocabulary_size=40, hidden_size=12, num_heads=3, intermediate_size=20)


def bert():
    config = models.BertConfig(**SIZES, num_layers=2, max_positions=16, dropout=0.3)
    return MaskedLM(models.BertEncoder(config), pair_task="nsp")


def albert():
    config = models.AlbertConfig(
        **SIZES, embedding_size=8, num_layers=4, num_groups=2, inner_groups=2, max_positions=16
    )
    return MaskedLM(models.AlbertEncoder(config), pair_task="sop")


def electra():
    sizes = dict(vocabulary_size=40, embedding_size=8, num_layers=2, max_positions=16)
    large = models.ElectraConfig(**sizes, hidden_size=128, num_heads=2, intermediate_size=20)
    small = models.ElectraConfig(**sizes, hidden_size=64, num_heads=1, intermediate_size=256)
    discriminator = models.ElectraEncoder(large, pooler=False)
    return ReplacedTokenDetection(discriminator, make_generator(discriminator, small))


def xlnet():
    return PermutationLM(models.XLNetEncoder(models.XLNetConfig(**SIZES, num_layers=2), pooler=False))


def randomized(model, seed=7):
    generator = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(generator.normal(size=variable.shape))
    return model


def tokenizer():
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])


def shapes(folder, family):
    return tf.train.load_checkpoint(str(folder / f"{family}_model.ckpt")).get_variable_to_shape_map()


# Read off the variable scopes of the original code, family by family: name -> shape.


def dense_and_norms(dense, norms):
    """The names of dense layers, by (inputs, outputs), and of normalizations, by their size."""
    names = {f"{name}/kernel": list(shape) for name, shape in dense.items()}
    names |= {f"{name}/bias": [outside] for name, (_, outside) in dense.items()}
    return names | {f"{where}/LayerNorm/{n}": [size] for where, size in norms.items() for n in ("gamma", "beta")}


def tables(where, size):
    rows = {"word": 40, "token_type": 2, "position": 16}
    return {f"{where}/embeddings/{name}_embeddings": [count, size] for name, count in rows.items()}


def bert_names():
    dense = {"bert/pooler/dense": (12, 12), "cls/predictions/transform/dense": (12, 12)}
    norms = {"bert/embeddings": 12, "cls/predictions/transform": 12}
    for i in range(2):
        layer = f"bert/encoder/layer_{i}"
        norms |= {f"{layer}/attention/output": 12, f"{layer}/output": 12}
        dense |= {f"{layer}/attention/self/{n}": (12, 12) for n in ("query", "key", "value")}
        dense |= {f"{layer}/attention/output/dense": (12, 12), f"{layer}/intermediate/dense": (12, 20)}
        dense |= {f"{layer}/output/dense": (20, 12)}
    pair = {"cls/seq_relationship/output_weights": [2, 12], "cls/seq_relationship/output_bias": [2]}
    return tables("bert", 12) | dense_and_norms(dense, norms) | pair | {"cls/predictions/output_bias": [40]}


def albert_names():
    names = {name: shape for name, shape in bert_names().items() if not name.startswith("bert/encoder/layer_")}
    dense = {"cls/predictions/transform/dense": (12, 8), "bert/encoder/embedding_hidden_mapping_in": (8, 12)}
    norms = {"bert/embeddings": 8, "cls/predictions/transform": 8}
    for group in range(2):
        for inner in range(2):
            layer = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
            dense |= {f"{layer}/attention_1/self/{n}": (12, 12) for n in ("query", "key", "value")}
            dense |= {f"{layer}/attention_1/output/dense": (12, 12), f"{layer}/ffn_1/intermediate/dense": (12, 20)}
            dense |= {f"{layer}/ffn_1/intermediate/output/dense": (20, 12)}
            norms |= {layer: 12}
            names |= {f"{layer}/LayerNorm_1/{n}": [12] for n in ("gamma", "beta")}
    return names | tables("bert", 8) | dense_and_norms(dense, norms)


def electra_names():
    norms = {"electra/embeddings": 8, "generator_predictions": 8}
    dense = {"discriminator_predictions/dense": (128, 128), "discriminator_predictions/dense_1": (128, 1)}
    dense |= {"generator_predictions/dense": (64, 8)}
    for scope, size, wide in (("electra", 128, 20), ("generator", 64, 256)):
        dense[f"{scope}/embeddings_project"] = (8, size)
        for i in range(2):
            layer = f"{scope}/encoder/layer_{i}"
            norms |= {f"{layer}/attention/output": size, f"{layer}/output": size}
            dense |= {f"{layer}/attention/self/{n}": (size, size) for n in ("query", "key", "value")}
            dense |= {f"{layer}/attention/output/dense": (size, size), f"{layer}/intermediate/dense": (size, wide)}
            dense |= {f"{layer}/output/dense": (wide, size)}
    return tables("electra", 8) | dense_and_norms(dense, norms) | {"generator_predictions/output_bias": [40]}


def xlnet_names():
    biases = {"r_w_bias": [2, 3, 4], "r_r_bias": [2, 3, 4], "r_s_bias": [2, 3, 4], "seg_embed": [2, 2, 3, 4]}
    tables = {"word_embedding/lookup_table": [40, 12], "mask_emb/mask_emb": [1, 1, 12]}
    names = {f"model/transformer/{name}": shape for name, shape in (biases | tables).items()}
    dense, norms = {}, {}
    for i in range(2):
        layer = f"model/transformer/layer_{i}"
        names |= {f"{layer}/rel_attn/{n}/kernel": [12, 3, 4] for n in "qkvor"}
        norms |= {f"{layer}/rel_attn": 12, f"{layer}/ff": 12}
        dense |= {f"{layer}/ff/layer_1": (12, 20), f"{layer}/ff/layer_2": (20, 12)}
    return names | dense_and_norms(dense, norms) | {"model/lm_loss/bias": [40]}


CASES = {
    "bert": (bert, bert_names, "bert_config.json"),
    "albert": (albert, albert_names, "albert_config.json"),
    "electra": (electra, electra_names, None),
    "xlnet": (xlnet, xlnet_names, "xlnet_config.json"),
}


@pytest.mark.parametrize("family", CASES)
def test_the_originals_names_there_and_back(family, tmp_path):
    make, names, config_file = CASES[family]
    model = randomized(make())
    folder = tmp_path / "written"
    bert_tf.save(model, tokenizer(), folder, format="tf1")
    assert shapes(folder, family) == names()
    assert config_file is None or (folder / config_file).exists()
    assert tf.train.latest_checkpoint(str(folder)) == str(folder / f"{family}_model.ckpt")
    again = bert_tf.load(folder)
    assert type(again.objective) is type(model)
    assert again.tokenizer.fingerprint == tokenizer().fingerprint
    assert again.report.unused == again.report.fresh == ()
    assert len(again.objective.weights) == len(model.weights)
    assert_same_weights(again.objective, model)
    assert_same_weights(bert_tf.load(folder / f"{family}_model.ckpt").encoder, model)


def test_what_training_leaves_behind_is_ignored(tmp_path):
    model = randomized(bert())
    bert_tf.save(model, tokenizer(), tmp_path / "a", format="tf1")
    reader = tf.train.load_checkpoint(str(tmp_path / "a" / "bert_model.ckpt"))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    slots = {f"{name}/adam_{s}": np.ones(2, "float32") for name in list(tensors)[:3] for s in "mv"}
    tensors |= slots | {"global_step": np.array(7)}

    def write(folder, tensors, prefix="bert_model.ckpt"):
        folder.mkdir(exist_ok=True)
        for name in ("bert_config.json", "vocab.txt"):
            (folder / name).write_bytes((tmp_path / "a" / name).read_bytes())
        write_tensorflow1(folder / prefix, tensors)

    write(tmp_path / "b", tensors)
    assert bert_tf.load(tmp_path / "b").report.ignored == tuple(sorted([*slots, "global_step"]))
    write(tmp_path / "c", tensors | {"bert/extra": np.ones(2)})
    with pytest.raises(DataError, match="'bert/extra' has no place in this model"):
        _ = bert_tf.load(tmp_path / "c").backbone
    write(tmp_path / "b", tensors, "model.ckpt-9")
    with pytest.raises(DataError, match=r"several checkpoints \(bert_model.ckpt, model.ckpt-9\); name one"):
        _ = bert_tf.load(tmp_path / "b").backbone
    assert bert_tf.load(tmp_path / "b" / "model.ckpt-9.index").family == "bert"
    (tmp_path / "c" / "bert_config.json").unlink()
    with pytest.raises(DataError, match="none of its configurations: bert_config.json"):
        _ = bert_tf.load(tmp_path / "c").backbone
    data = tmp_path / "b" / "model.ckpt-9.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(DataError, match="model.ckpt-9"):
        _ = bert_tf.load(tmp_path / "b" / "model.ckpt-9").backbone


def test_gelu_is_the_tanh_approximation_there(tmp_path):
    bert_tf.save(bert(), tokenizer(), tmp_path / "written", format="tf1")
    config = json.loads((tmp_path / "written" / "bert_config.json").read_text())
    assert config["hidden_act"] == "gelu"
    assert config["hidden_dropout_prob"] == 0.3
    assert bert_tf.load(tmp_path / "written").encoder.config == bert().backbone.config


def test_what_the_format_cannot_say_is_refused(tmp_path):
    hf = bert_tf.load(FIXTURES / "bert_bare")
    with pytest.raises(ConfigError, match="bert_config.json has no name for the activation 'gelu_erf'"):
        bert_tf.save(hf.encoder, hf.tokenizer, tmp_path / "a", format="tf1")
    epsilon = models.BertEncoder(models.BertConfig(**SIZES, num_layers=1, layer_norm_epsilon=1e-5))
    with pytest.raises(ConfigError, match="cannot say layer_norm_epsilon=1e-05: the code it is for has 1e-12"):
        bert_tf.save(epsilon, None, tmp_path / "b", format="tf1")
    narrow = models.ElectraEncoder(models.ElectraConfig(**SIZES, embedding_size=12, num_layers=1))
    with pytest.raises(ConfigError, match="means num_heads=1, this model has 3"):
        bert_tf.save(narrow, None, tmp_path / "c", format="tf1")
    parts = models.AlbertEncoder(models.AlbertConfig(**SIZES, embedding_size=8, num_layers=2, share="attention"))
    with pytest.raises((ConfigError, DataError), match="share='attention'|no name"):
        bert_tf.save(parts, None, tmp_path / "d", format="tf1")
    roberta = bert_tf.load(FIXTURES / "roberta")
    with pytest.raises(ConfigError, match="'roberta' has no checkpoints of format 'tf1'"):
        bert_tf.save(roberta.encoder, roberta.tokenizer, tmp_path / "e", format="tf1")
    assert list(tmp_path.iterdir()) == []


def test_the_two_models_of_electra_as_hugging_face_has_them(tmp_path):
    model = randomized(electra())
    bert_tf.save(model, tokenizer(), tmp_path / "pair")
    both = bert_tf.load(tmp_path / "pair")
    assert both.report.fresh == () and len(both.objective.weights) == len(model.weights)
    assert_same_weights(both.objective, model)
    discriminator = bert_tf.load(tmp_path / "pair" / "discriminator")
    generator = bert_tf.load(tmp_path / "pair" / "generator")
    assert_same_weights(discriminator.objective, model)
    ours = {v.path: np.asarray(v) for v in model.weights}
    assert isinstance(generator.objective, MaskedLM)
    for variable in generator.objective.weights:
        name = variable.path if variable.path.startswith("embeddings/") else f"generator/{variable.path}"
        np.testing.assert_array_equal(variable, ours[name])
    assert_same_weights(bert_tf.load(tmp_path / "pair").encoder, model)


@pytest.mark.parametrize("format", ["hf", "tf1"])
def test_the_two_models_of_electra_as_a_run(tmp_path, format):
    model = randomized(electra())
    bert_tf.save(model, tokenizer(), tmp_path / "pair", format=format)
    bert_tf.load(tmp_path / "pair").save(tmp_path / "run", format="run")
    opened = bert_tf.load(tmp_path / "run")
    assert opened.objective.generator.config == model.generator.config
    assert len(opened.objective.weights) == len(model.weights)
    assert_same_weights(opened.objective, model)


def test_two_models_of_electra_that_do_not_belong_together(tmp_path):
    for name, seed in (("pair", 7), ("other", 8)):
        bert_tf.save(randomized(electra(), seed), tokenizer(), tmp_path / name)
    shutil.rmtree(tmp_path / "pair" / "generator")
    shutil.move(tmp_path / "other" / "generator", tmp_path / "pair" / "generator")
    with pytest.raises(DataError, match="not trained together"):
        _ = bert_tf.load(tmp_path / "pair").objective
