"""T5's encoder without its decoder, for tasks that write no text, for probes and features."""

import dataclasses

import keras

from bert_tf.backend import Dropout, RMSNormalization
from bert_tf.layers import AttentionMask, RelativePositionBias
from bert_tf.models.backbone import policy
from bert_tf.models.config_map import ConfigMap
from bert_tf.models.family import Maps
from bert_tf.models.t5 import HF_CONFIG, HF_WEIGHTS, read_form, relative_positions, t5_block, t5_embeddings, write_form
from bert_tf.models.t5_encoder_config import T5EncoderConfig
from bert_tf.models.task_heads import PublishedHead
from bert_tf.models.transformer_encoder import TransformerEncoder, bert_pooler, run_blocks
from bert_tf.models.weights import WeightMap


@keras.saving.register_keras_serializable("bert_tf")
class T5Encoder(TransformerEncoder):
    """The encoder of a T5: relative positions, normalization before each part, and no biases.

    Its variables have the names that they have in a `T5`, whose encoder's they are: a task that writes no text is
    fine-tuned on it, with `init_from` a T5 (as EncT5, Liu et al. 2021, and Hugging Face's T5EncoderModel and
    T5ForTokenClassification).

    Args:
        config: a `T5EncoderConfig`.
        pooler: whether there is a `pooled_output`; no published model has one.
        output_hidden_states: whether the result holds all layers' outputs. The last of them is normalized: it is the
            `sequence_output`.
        others, call arguments, results, errors: as `BertEncoder`, but `segment_ids` and `position_ids` are not read,
            and no length is refused.

    Raises:
        ConfigError: a masked LM head is asked for.

    Example:
        encoder = T5Encoder(T5EncoderConfig(100, 16, num_layers=2, num_heads=2, head_size=8, intermediate_size=32))
        encoder({"token_ids": np.array([[5, 6, 1]])})["sequence_output"]  # [1, 3, 16]
    """

    config_class = T5EncoderConfig

    def __init__(self, config, pooler=False, dtype=None, name="t5_encoder", **options):
        # === Layers ===
        dtype = policy(dtype)
        layers = T5EncoderLayers(
            mask=AttentionMask(dtype=dtype, name="encoder_mask"),
            bias=relative_positions(config, dtype, "encoder_bias", bidirectional=True),
            embeddings=t5_embeddings(config, dtype),
            blocks=[t5_block(config, dtype, f"encoder_layer_{i}", decoder=False) for i in range(config.num_layers)],
            final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="encoder_layer_norm"),
            output_dropout=Dropout(config.dropout, dtype=dtype, name="output_dropout"),
            pooler=bert_pooler(config, dtype) if pooler else None,
        )
        # === Functional model, configuration ===
        super().__init__(config, layers, dtype, name, **options)


@dataclasses.dataclass(frozen=True)
class T5EncoderLayers:
    """The layers of a `T5Encoder`, in the order of their calls."""

    mask: keras.Layer
    bias: RelativePositionBias
    embeddings: keras.Layer
    blocks: list
    final_norm: keras.Layer
    output_dropout: keras.Layer
    pooler: keras.Layer | None

    def encode(self, inputs, positions=None, return_attention_scores=False, training=None):
        """Calls the layers, but for the pooler; see `TransformerLayers.encode`."""
        token_ids = inputs["token_ids"]
        mask = self.mask(token_ids, padding_mask=inputs["padding_mask"], sequence_ids=inputs["sequence_ids"])
        contexts = [(mask, None, self.bias(token_ids))] * len(self.blocks)
        x = self.embeddings(token_ids, training=training)
        hidden_states, scores = run_blocks(self.blocks, x, contexts, positions, return_attention_scores, training)
        last = self.output_dropout(self.final_norm(hidden_states[-1]), training=training)
        return [*hidden_states[:-1], last], scores


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
