"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT with positions counted past the padding id,
the exact GELU, another epsilon, and no segments. The variant is fairseq's
`fairseq/models/roberta/model.py`, with the single segment row of Hugging Face's checkpoints."""

import keras

from bert_tf.errors import ConfigError
from bert_tf.models import bert
from bert_tf.models.config_map import ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.roberta_config import RobertaConfig
from bert_tf.models.transformer import TransformerEncoder
from bert_tf.models.weights import WeightMap


@keras.saving.register_keras_serializable("bert_tf")
class RobertaEncoder(TransformerEncoder):
    """The bidirectional encoder: embeddings, transformer layers, and a pooler.

    RoBERTa itself was trained without the pooler; its published checkpoints carry one for tasks.

    Args:
        config: a `RobertaConfig`.
        pooler: whether there is a `pooled_output`.
        output_hidden_states: whether the result holds all layers' outputs.
        output_attention_scores: whether the result holds all layers' attention probabilities.
        dtype: a Keras dtype policy, e.g. "mixed_bfloat16"; None = the global one.

    Call arguments and results: as `BertEncoder`, but `segment_ids` are not read. `position_ids`
    count from 0 here too. Without them the tokens that are not `padding_id` are numbered, whatever
    the `padding_mask` says, as the original does.

    Raises:
        ConfigError: S is above `max_positions` while there are no `position_ids`.
        DataError: `token_ids` are missing, or there is an input of another name.

    Example:
        encoder = RobertaEncoder(preset("roberta_base"), pooler=False)
        encoder({"token_ids": np.array([[0, 31414, 232, 2]])})["sequence_output"]  # [1, 4, 768]
    """

    config_class = RobertaConfig
    family = "roberta"

    def make_masked_lm_head(self, name="masked_lm_head"):
        return super().make_masked_lm_head(name, activation="gelu_erf")


def _encoder_names(names):
    """BERT's names of the encoder under RoBERTa's prefix."""
    return {k.replace("bert.", "roberta.", 1): v for k, v in names.items() if k.startswith("bert.")}


# The names in a Hugging Face checkpoint (RobertaModel, RobertaForMaskedLM).
HF_WEIGHTS = WeightMap(
    arrays=_encoder_names(bert.HF_WEIGHTS.arrays)
    | {
        "lm_head.layer_norm.weight": "masked_lm_head/layer_norm/gamma",
        "lm_head.layer_norm.bias": "masked_lm_head/layer_norm/beta",
        "lm_head.bias": "masked_lm_head/output_bias",
    },
    dense=_encoder_names(bert.HF_WEIGHTS.dense) | {"lm_head.dense": "masked_lm_head/dense"},
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
    ignored=("max_position_embeddings",),
    derived=(_read_positions, _write_positions),
    model_type="roberta",
    token_ids={"pad_token_id": "pad_id", "bos_token_id": "cls_id", "eos_token_id": "sep_id"},
    architectures={("masked_lm_head",): "RobertaForMaskedLM", (): "RobertaModel"},
)

HF = Maps(HF_CONFIG, HF_WEIGHTS)
