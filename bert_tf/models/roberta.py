"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT with positions counted past the padding id,
the exact GELU, another epsilon, and no segments. The variant is fairseq's
`fairseq/models/roberta/model.py`, with the single segment row of Hugging Face's checkpoints."""

import keras

from bert_tf.errors import ConfigError
from bert_tf.models import bert
from bert_tf.models.config_map import ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.roberta_config import RobertaConfig
from bert_tf.models.task_heads import TaskHead, classes
from bert_tf.models.transformer_encoder import TransformerEncoder, encoder_stack
from bert_tf.models.weights import WeightMap


@keras.saving.register_keras_serializable("bert_tf")
class RobertaEncoder(TransformerEncoder):
    """The bidirectional encoder: embeddings, transformer layers, and a pooler.

    RoBERTa itself was trained without the pooler; its published checkpoints carry one for tasks.

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `RobertaConfig`; `segment_ids` are not read.
    `position_ids` count from 0 here too. Without them the tokens that are not `padding_id` are numbered, whatever
    the `padding_mask` says, as in the original.

    Example:
        encoder = RobertaEncoder(RobertaConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 7]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = RobertaConfig

    @staticmethod
    def make_stack(config, dtype):
        return encoder_stack(config, dtype, num_segments=config.num_segments, padding_id=config.padding_id)

    def make_masked_lm_head(self, name="masked_lm_head"):
        return super().make_masked_lm_head(name, activation="gelu_erf")


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


def _read_positions(theirs):
    # The table of theirs counts the rows up to the padding id, which no token has.
    padding_id = number(theirs, "pad_token_id", 1)
    return {"max_positions": number(theirs, "max_position_embeddings", 514) - padding_id - 1}


def _write_positions(config):
    if config.num_segments == 0:
        raise ConfigError("Hugging Face's RoBERTa has at least one segment row; num_segments is 0 here")
    return {"max_position_embeddings": config.max_positions + config.padding_id + 1}


HF_CONFIG = ConfigMap(
    fields={key: value for key, value in bert.HF_CONFIG.fields.items() if key != "max_position_embeddings"}
    | {"pad_token_id": ("padding_id", 1)},
    fixed=bert.HF_CONFIG.fixed,
    checked=bert.HF_CONFIG.checked,
    ignored=("max_position_embeddings",),
    assumed=bert.HF_CONFIG.assumed,
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
        # fairseq's has the layers of classification.
        choices={"dropout": ("hidden_dropout_prob",), "head": TaskHead("pooled")},
    ),
)
