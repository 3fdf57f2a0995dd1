"""T5's encoder without its decoder, for tasks that write no text, for probes and features."""

import keras

from bert_tf.models.config_map import ConfigMap
from bert_tf.models.family import Maps
from bert_tf.models.t5 import HF_CONFIG, HF_WEIGHTS, read_form, t5_embeddings, t5_encoder_stack, write_form
from bert_tf.models.t5_encoder_config import T5EncoderConfig
from bert_tf.models.task_heads import PublishedHead
from bert_tf.models.transformer_encoder import TransformerEncoder
from bert_tf.models.weights import WeightMap


@keras.saving.register_keras_serializable("bert_tf")
class T5Encoder(TransformerEncoder):
    """The encoder of a T5: relative positions, normalization before each part, and no biases.

    Its variables have the names that they have in a `T5`, whose encoder's they are: a task that writes no text is
    fine-tuned on it, with `init_from` a T5 (as EncT5, Liu et al. 2021, and Hugging Face's T5EncoderModel and
    T5ForTokenClassification).

    Args, call arguments, results, errors: as `TransformerEncoder`, with a `T5EncoderConfig`; `segment_ids` and
    `position_ids` are not read, and no length is refused. No published model has a pooler. The last of the
    `hidden_states` is normalized: it is the `sequence_output`.

    Raises:
        ConfigError: a masked LM head is asked for.

    Example:
        encoder = T5Encoder(T5EncoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 1]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = T5EncoderConfig

    published_pooler = False

    @staticmethod
    def make_stack(config, dtype):
        return t5_encoder_stack(config, dtype, t5_embeddings(config, dtype))


# The names in a Hugging Face checkpoint: T5EncoderModel, T5ForTokenClassification ("transformer." before them), and any
# T5, of which the encoder is read.
_PREFIX = "transformer."


def _of_encoder(names):
    return {_PREFIX + name: path for name, path in names.items() if path.startswith(("embeddings", "encoder_"))}


HF_WEIGHTS_OF_ENCODER = WeightMap(
    arrays=_of_encoder(HF_WEIGHTS.arrays),
    transposed=_of_encoder(HF_WEIGHTS.transposed),
    copies={f"{_PREFIX}encoder.embed_tokens.weight": f"{_PREFIX}shared.weight"},
    ignored=("decoder.*", "lm_head.weight"),
    prefix=_PREFIX,
)


HF = Maps(
    ConfigMap(
        fields={theirs: ours for theirs, ours in HF_CONFIG.fields.items() if theirs != "num_decoder_layers"},
        checked={"is_decoder": (False,)},
        ignored=(
            *(key for key in HF_CONFIG.ignored if key != "is_decoder"),
            "is_encoder_decoder",
            "num_decoder_layers",
        ),
        derived=(read_form, write_form),
        model_type="t5",
        other_model_types=("mt5",),
        token_ids={"pad_token_id": "pad_id", "eos_token_id": "sep_id"},
        architectures={(): "T5EncoderModel"},
        other_architectures=("MT5EncoderModel",),
    ),
    HF_WEIGHTS_OF_ENCODER,
    heads={
        "tagging": PublishedHead(
            "T5ForTokenClassification",
            {"classifier": "head/dense"},
            dropout=("classifier_dropout",),
            default_dropout=0.0,
        )
    },
)
