"""Configurations as transformers makes them, each setting changed once (tests/golden/configs.py): read, refused or ignored."""

import collections
import dataclasses
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import published_tasks
from bert_tf.checkpoints.hugging_face import recognize_family
from bert_tf.config import build, to_dict
from bert_tf.errors import ConfigError
from bert_tf.models import build_backbone, build_config, families
from bert_tf.models.model_config import DROPOUT_RATES
from bert_tf.models.weights import export_weights, load_weights
from bert_tf.objectives import OBJECTIVES, MaskedLM

FILE = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "configs.json"
FAMILIES = json.loads(FILE.read_text())
IDS, SEGMENTS, DECODER_IDS = [[7, 3, 1, 9, 12, 5]], [[0, 0, 0, 1, 1, 1]], [[0, 4, 8]]

#: What is ignored on purpose: it changes no number of the models that are read.
IGNORED = {
    "of the output or of memory": "chunk_size_feed_forward output_attentions output_hidden_states return_dict use_cache",
    "tokens that the tokenizer's files name": "bos_token_id cls_token_id eos_token_id pad_token_id sep_token_id "
    "decoder_start_token_id",
    "labels without their numbers, which id2label has": "label2id",
    "of generation": "bad_words_ids",
    "of weights that the file has": "initializer_factor initializer_cutoff_factor sinusoidal_pos_embds",
    "of the memory of texts before, which is an argument here": "mem_len reuse_len use_mems_eval use_mems_train",
    "of heads that are not read": "summary_first_dropout summary_last_dropout summary_activation summary_proj_to_labels "
    "summary_type summary_use_proj qa_dropout start_n_top end_n_top classifier_bias",
    "of training without padded predictions": "sparse_prediction sparse_pred_ignore_index deterministic_flash_attn",
    "of stacks that the whole model sets itself": "is_decoder",
    "of an encoder alone": "num_decoder_layers tie_word_embeddings scale_decoder_outputs",
    "as the number of labels that id2label has": "num_labels",
    "the same as dense_act_fn and is_gated_act": "feed_forward_proj",
    "the same under another name": "hidden_act activation_function ff_activation activation hidden_activation afn d_head "
    "layer_types rope_parameters num_hidden_groups",
    "of BERT, and carried along by ModernBERT's files": "position_embedding_type",
    "without a class of that head": "classifier_dropout classifier_dropout_prob classifier_pooling classifier_activation "
    "seq_classif_dropout problem_type id2label",
}


def read(config):
    """(name of the family, our configuration, the task of a classifier or None) of config.json, a dict."""
    record = recognize_family(config, "config.json")
    maps = record.maps("hf")
    settings = maps.config.read(config, "config.json")
    settings |= maps.config_of_arrays({}) if maps.config_of_arrays else {}  # with one table, as transformers makes it
    ours = build(record.config, settings, "config.json")
    head = published_tasks.published_head(config, maps.heads)
    return record.name, ours, published_tasks.read_task(config, *head, "config.json") if head else None


def changed(first, difference):
    """A configuration with the differences of a case."""
    gone = {key for key, value in difference.items() if value is None and first.get(key) is None}
    return {key: value for key, value in (first | difference).items() if key not in gone or key in first}


def cases(part):
    for family, found in FAMILIES.items():
        for name, case in found.items():
            if part in case and name:
                first = found[""][f"{part}_config"]
                yield family, name, first, changed(first, case["config"]), case[part] != "same"


def outcome(first, config):
    """What a change does here: ("refused", message), or the settings of ours that it changes."""
    before = read(first)
    try:
        after = read(config)
    except ConfigError as error:
        return "refused", str(error)
    ours, theirs = to_dict(before[1]), to_dict(after[1])
    settings = {name for name in ours if ours[name] != theirs[name]}
    if before[2] is not None:
        old, new = vars(before[2]), vars(after[2])
        settings |= {f"task.{f.name}" for f in dataclasses.fields(before[2]) if old[f.name] != new[f.name]}
    return "read", settings


@pytest.mark.parametrize("part", ["lm", "classifier"])
def test_every_setting_is_read_or_refused_by_its_name_or_changes_nothing(part):
    ignored, known = set(), {key for keys in IGNORED.values() for key in keys.split()}
    for family, name, first, config, has_effect in cases(part):
        (key, _), (kind, found) = name.split("=", 1), outcome(first, config)
        if kind == "refused":
            assert key in found, (family, name, found)
        elif not found:
            assert not has_effect, (family, name)
            ignored.add(key)
    assert ignored <= known, ignored - known


def test_rates_and_sizes_are_read_as_they_are():
    """The settings that change no logits: rates of training, and rows of tables."""
    same = collections.defaultdict(set)
    for part in ("lm", "classifier"):
        for family, name, first, config, has_effect in cases(part):
            kind, found = outcome(first, config)
            if kind == "read" and found and not has_effect:
                key, value = name.split("=", 1)
                ours = to_dict(read(config)[1])
                for setting in found:
                    same[key].add(setting)
                    if setting in (*DROPOUT_RATES, "initializer_range", "vocabulary_size"):
                        assert ours[setting] == json.loads(value), (family, name)
    rates = {"hidden_dropout_prob": {"dropout", "task.dropout"}, "attention_probs_dropout_prob": {"attention_dropout"}}
    for key, settings in rates.items():
        assert same[key] == settings
    assert same["max_position_embeddings"] == same["n_positions"] == {"max_positions"}


def weight(name, shape):
    """As in tests/golden/configs.py."""
    values = np.random.default_rng(zlib.crc32(name.encode())).normal(size=shape)
    return (0.3 * values + (values.ndim == 1)).astype("float32")


def logits(config):
    """The first logits of our language model with these weights (of T5's encoder its outputs), at three positions."""
    family, ours, _ = read(config)
    record = families.FAMILIES[family]
    maps = record.maps("hf")
    is_text = record.structure == "encoder_decoder"
    model = encoder = build_backbone(ours, pooler=False)
    name = "masked_lm" if record.name == "electra" else record.objective
    if record.structure == "encoder" and record.name != "t5_encoder":
        settings = OBJECTIVES[name].config().for_parts({"masked_lm_head"}, None, None)
        model = OBJECTIVES[name].model_class.from_settings(encoder, settings)
    bare = config["architectures"][0] == maps.config.architecture(())
    names = export_weights(model, maps.weights)
    arrays = {n: weight(n.removeprefix(maps.weights.prefix) if bare else n, a.shape) for n, a in names.items()}
    load_weights(model, arrays, maps.weights)
    inputs = {"token_ids": np.array(IDS, "int32")}
    if family in ("bert", "albert", "electra", "xlnet"):
        inputs["segment_ids"] = np.array(SEGMENTS, "int32")
    if is_text:
        inputs["decoder_token_ids"] = np.array(DECODER_IDS, "int32")
    x = encoder(inputs)["sequence_output"]
    if family == "t5_encoder":
        found = x
    elif record.structure == "encoder":
        head = model.lm_head if name == "permutation_lm" else model.masked_lm_head
        found = head(x, encoder.embedding_table)
    else:
        found = encoder.output_logits(x)
    found = np.asarray(found)[0]
    return found[[0, len(found) // 2, -1]][:, :4]


def close(ours, theirs, family):
    """T5's scores are not scaled, and with wide weights float32 is no closer than 1.2e-4."""
    tolerance = 2e-4 if "t5" in family else 2e-5
    np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_by_default(family):
    first = FAMILIES[family][""]
    close(logits(first["lm_config"]), first["lm"], family)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_with_each_setting_changed(family):
    for other, name, first, config, has_effect in cases("lm"):
        if other == family and has_effect and outcome(first, config)[0] == "read":
            close(logits(config), FAMILIES[family][name]["lm"], family)


def test_an_activation_that_their_head_would_not_have_is_not_written(tmp_path):
    """ElectraForMaskedLM has GELU in its head whatever hidden_act says; the authors' code has that of the layers."""
    sizes = {"embedding_size": 8, "hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 16}
    config = build_config({"family": "electra", "activation": "relu"} | sizes, 30)
    generator = MaskedLM(build_backbone(config, pooler=False))
    with pytest.raises(ConfigError, match="'relu', but ElectraForMaskedLM has 'gelu_erf' in its masked_lm_head"):
        bert_tf.save(generator, None, tmp_path / "generator")
    bert_tf.save(generator.backbone, None, tmp_path / "encoder")
