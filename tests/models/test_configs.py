"""Every setting of a model is checked before Keras is imported; what is exported is there."""

import contextlib
import dataclasses
import typing

import pytest

import bert_tf.models
from bert_tf.config import build, load, to_dict
from bert_tf.errors import ConfigError
from bert_tf.layers.activations import ACTIVATIONS
from bert_tf.models.families import FAMILIES, build_config, maps_of
from bert_tf.models.model_config import Activation
from bert_tf.models.t5.config import T5EncoderConfig
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining

SIZES = {"vocabulary_size": 50, "hidden_size": 24, "num_layers": 2, "num_heads": 3, "intermediate_size": 40}
BASE = {"preset": "bert_base"}


@pytest.mark.parametrize("section, message", [
    ({"preset": [1]}, r"^'model.preset' is \[1\]; known: albert_base_v1"),
    ({"preset": "bert_bas"}, "^'model.preset' is 'bert_bas'; did you mean 'bert_base'"),
    ({"family": {"a": 1}}, r"^'model.family' is \{'a': 1\}; known: albert, bert"),
    ({"family": "brt"}, "^'model.family' is 'brt'; did you mean 'bert'"),
    ({"family": "bert", "preset": "bert_base"}, "model.preset is 'bert_base' and model.family is 'bert'; keep"),
    ({}, "set model.preset, e.g. model.preset=bert_base"),
    (BASE | {"vocab_size": 8}, "^unknown key 'model.vocab_size'; did you mean"),
    (BASE | {5: 8}, "^unknown key 'model.5'"),
    (BASE | {"hidden_size": 10**9}, "^'model.hidden_size' is 1000000000; it must be .* 65,536"),
    (BASE | {"num_layers": 20_000}, "^'model.num_layers' is 20000; it must be .* at most 1,000"),
    (BASE | {"vocabulary_size": 10**8}, "^'model.vocabulary_size' is .* at most 10,000,000"),
    (BASE | {"layer_norm_epsilon": 0}, "^'model.layer_norm_epsilon' is 0.0; it must be above 0"),
    (BASE | {"dropout": 1}, "^'model.dropout' is 1.0; it must be at least 0 and below 1"),
    (BASE | {"activation": "gelu_tan"}, "^'model.activation' is 'gelu_tan'; did you mean 'gelu_tanh'"),
    (BASE | {"hidden_size": 24.5}, "^'model.hidden_size' must be int, got 24.5"),
    (BASE | {"attention_dropout": "0.1"}, "^'model.attention_dropout' must be float, got '0.1'"),
    (BASE | {"num_heads": 7}, "^model: hidden_size=768 is not a multiple of num_heads=7"),
    ({"preset": "modernbert_base", "num_heads": 256}, "rotary positions need an even head size, got 3"),
    ({"family": "bert"} | {k: v for k, v in SIZES.items() if k != "num_heads"}, "^missing key 'model.num_heads'"),
])  # fmt: skip
def test_a_wrong_model_is_refused_before_shards_are_opened(section, message):
    experiment = load(PretrainConfig, "pretrain/bert_tiny", {"data": {"shards": "there-is-none"}})
    object.__setattr__(experiment, "model", section)
    with pytest.raises(ConfigError, match=message):
        check_pretraining(experiment)


def test_a_generator_that_cannot_be_is_refused_too():
    small = {"data": {"shards": "there-is-none"}, "objective": {"name": "replaced_token_detection"}}
    thin = {"model": {"hidden_size": 256}, "objective": {"name": "replaced_token_detection", "generator_size": 0.001}}
    with pytest.raises(ConfigError, match="a generator of 0.001 of the width 256 has no width left"):
        check_pretraining(load(PretrainConfig, "pretrain/bert_tiny", small | thin))
    message = "XLNetConfig has no position table for a generator to share; replaced token detection is for"
    with pytest.raises(ConfigError, match=message):
        check_pretraining(load(PretrainConfig, "pretrain/bert_tiny", small | {"model": {"preset": "xlnet_base_cased"}}))


def test_what_is_made_in_python_is_checked_too():
    config = bert_tf.models.BertConfig(**SIZES | {"hidden_size": 24.0})
    assert type(config.hidden_size) is int
    with pytest.raises(ConfigError, match="'num_layers' must be int, got True"):
        bert_tf.models.BertConfig(**SIZES | {"num_layers": True})


def test_a_preset_needs_no_vocabulary_size_but_a_family_takes_the_tokenizers():
    sizes = {k: v for k, v in SIZES.items() if k != "vocabulary_size"}
    assert build_config({"family": "roberta"} | sizes, vocabulary_size=80).vocabulary_size == 80
    section = {"preset": "roberta_base"}
    assert build_config(section, vocabulary_size=80, padding_id=3).padding_id == 3
    assert build_config(section).vocabulary_size == 50_265


def test_activations_have_one_list_of_names():
    assert set(typing.get_args(Activation)) == set(ACTIVATIONS)


def test_every_family_is_exported():
    for record in FAMILIES.values():
        for thing in (record.config, record.model_class()):
            assert thing.__name__ in bert_tf.models.__all__
            assert getattr(bert_tf.models, thing.__name__) is thing
    for name in bert_tf.models.__all__:
        assert getattr(bert_tf.models, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'BrtConfig'"):
        bert_tf.models.BrtConfig


def _changed(config, name):
    """The configurations that differ from one in one setting, as far as there can be such."""
    value, hint = getattr(config, name), typing.get_type_hints(type(config))[name]
    if isinstance(value, tuple):  # ELMo's filters
        others = [value[:-1]]
    elif isinstance(value, bool):
        others = [not value]
    elif isinstance(value, (int, float)):
        others = [value * 2, value + 12, value / 2, 0.25]
    else:
        others = [3, 0.25, False, *typing.get_args(hint)]
    for other in others:
        with contextlib.suppress(ConfigError):
            yield dataclasses.replace(config, **{name: other})


@pytest.mark.parametrize("format", ["hf", "tf1", "bilm"])
def test_every_setting_is_written_refused_or_of_training_alone(format):
    """What is of training alone and cannot be written, `bert_tf.save` says: see tests/checkpoints."""
    not_told, refused = set(), set()
    for family, maps in maps_of(format).items():
        record = FAMILIES[family]
        config = next(iter(record.sizes.values())).config if record.sizes else T5_ENCODER
        for field in dataclasses.fields(config) if maps.config else ():
            for changed in _changed(config, field.name):
                try:
                    again = build(record.config, maps.config.read(maps.config.write(changed), "file"), "file")
                except ConfigError:
                    refused.add(f"{family}.{field.name}")
                    continue
                told, wanted = to_dict(again), to_dict(changed)
                not_told |= {f"{family}.{name}" for name in wanted if told[name] != wanted[name]}
    training = {name for name in not_told if name.endswith(("dropout", "initializer_range"))}
    assert training == TRAINING_ALONE[format]
    # T5's tables are tied where the file has one, a skipped id is for classifiers, and an ALBERT
    # that shares nothing is one with as many groups as layers. ELMo's `unroll` is for speed, its epsilon for heads.
    alike = {"t5.tied", "gpt1.skipped_id", "gpt2.skipped_id", "albert.share", "albert.num_groups", "elmo.unroll"}
    assert not_told - training <= alike | {"elmo.layer_norm_epsilon"}
    assert not any(name.endswith(("dropout", "num_layers")) for name in refused)


RATES = ("dropout", "attention_dropout")
TRAINING_ALONE = {
    "hf": {"xlnet.attention_dropout", "gpt2.position_initializer_range"},
    "tf1": {f"{family}.{name}" for family in ("xlnet", "gpt2") for name in (*RATES, "initializer_range")}
    | {"gpt2.position_initializer_range"},
    "bilm": {"elmo.dropout", "elmo.initializer_range"},
}
T5_ENCODER = T5EncoderConfig(**SIZES, head_size=8)
