"""How the published checkpoints of RoBERTa name settings and weights. No Keras is imported."""

import dataclasses

from bert_tf.errors import ConfigError
from bert_tf.models.bert import checkpoints as bert
from bert_tf.models.config_map import number
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import TaskHead, classes
from bert_tf.models.weights import WeightMap

# The names in a Hugging Face checkpoint (RobertaModel, RobertaForMaskedLM).
HF_WEIGHTS = WeightMap(
    arrays=bert.encoder_names(bert.HF_WEIGHTS.arrays, "roberta.") | {"lm_head.bias": "masked_lm_head/output_bias"},
    dense=bert.encoder_names(bert.HF_WEIGHTS.dense, "roberta.") | {"lm_head.dense": "masked_lm_head/dense"},
    norms=bert.encoder_names(bert.HF_WEIGHTS.norms, "roberta.") | {"lm_head.layer_norm": "masked_lm_head/layer_norm"},
    copies={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    ignored=("roberta.embeddings.position_ids",),
    spellings=bert.HF_WEIGHTS.spellings,
    prefix="roberta.",
)


def _read_positions(keys):
    # Hugging Face's count has the rows up to the padding id, which no token has.
    padding_id = number(keys, "pad_token_id", 1)
    return {"max_positions": number(keys, "max_position_embeddings", 514) - padding_id - 1}


def _write_positions(config):
    if config.num_segments == 0:
        raise ConfigError("Hugging Face's RoBERTa has at least one segment row; num_segments is 0 here")
    return {"max_position_embeddings": config.max_positions + config.padding_id + 1}


HF_CONFIG = dataclasses.replace(
    bert.HF_CONFIG,
    fields={key: value for key, value in bert.HF_CONFIG.fields.items() if key != "max_position_embeddings"}
    | {"pad_token_id": ("padding_id", 1)},
    ignored=("max_position_embeddings",),
    derived=(_read_positions, _write_positions),
    model_type="roberta",
    token_ids={"pad_token_id": "pad_id", "bos_token_id": "cls_id", "eos_token_id": "sep_id"},
    architectures={("masked_lm_head",): "RobertaForMaskedLM", (): "RobertaModel"},
)

HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads=classes(
        "Roberta",
        classification={"dense": {"classifier.dense": "head/hidden", "classifier.out_proj": "head/dense"}},
        # Hugging Face's head reads the pooled output; fairseq's has the layers of its classification head.
        choices={"dropout": ("hidden_dropout_prob",), "head": TaskHead("pooled")},
    ),
)

# The names in a preset of KerasHub (RobertaBackbone, XLMRobertaBackbone and their tasks).
HUB = Maps(
    bert.hub_config(
        "Roberta",
        epsilon=1e-5,
        activation="gelu_erf",
        other_model_types=("XLMRobertaBackbone",),
        other_architectures=("XLMRobertaMaskedLM",),
        derived=(lambda keys: {"num_segments": 0, "attention_dropout": keys.get("dropout", 0.1)}, lambda config: {}),
    ),
    bert.HUB_JOINT_WEIGHTS,
    heads=bert.hub_classifier("Roberta", hidden=True, dropout=0.0),
)
