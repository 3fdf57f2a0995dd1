"""How the published checkpoints of DistilBERT name settings and weights. No Keras is imported."""

from bert_tf.models.bert import checkpoints as bert
from bert_tf.models.config_map import HF_ENCODER, HF_TIED, REQUIRED, ConfigMap
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import classes
from bert_tf.models.weights import WeightMap

# The names in a Hugging Face checkpoint (DistilBertModel, DistilBertForMaskedLM).
_LAYER = "distilbert.transformer.layer.{layer}"
_BLOCK = "transformer_layer_{layer}"
HF_WEIGHTS = WeightMap(
    arrays={
        "distilbert.embeddings.word_embeddings.weight": "embeddings/token_embeddings",
        "distilbert.embeddings.position_embeddings.weight": "embeddings/position_embeddings",
        "vocab_projector.bias": "masked_lm_head/output_bias",
    },
    dense={
        f"{_LAYER}.attention.q_lin": f"{_BLOCK}/attention/query",
        f"{_LAYER}.attention.k_lin": f"{_BLOCK}/attention/key",
        f"{_LAYER}.attention.v_lin": f"{_BLOCK}/attention/value",
        f"{_LAYER}.attention.out_lin": f"{_BLOCK}/attention/output",
        f"{_LAYER}.ffn.lin1": f"{_BLOCK}/intermediate",
        f"{_LAYER}.ffn.lin2": f"{_BLOCK}/output",
        "vocab_transform": "masked_lm_head/dense",
    },
    norms={
        "distilbert.embeddings.LayerNorm": "embeddings/layer_norm",
        f"{_LAYER}.sa_layer_norm": f"{_BLOCK}/attention_layer_norm",
        f"{_LAYER}.output_layer_norm": f"{_BLOCK}/output_layer_norm",
        "vocab_layer_norm": "masked_lm_head/layer_norm",
    },
    copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    ignored=("distilbert.embeddings.position_ids",),
    prefix="distilbert.",
)
HF_CONFIG = ConfigMap(
    fields={
        "vocab_size": ("vocabulary_size", REQUIRED),
        "dim": ("hidden_size", REQUIRED),
        "n_layers": ("num_layers", REQUIRED),
        "n_heads": ("num_heads", REQUIRED),
        "hidden_dim": ("intermediate_size", REQUIRED),
        "max_position_embeddings": ("max_positions", 512),
        "activation": ("activation", "gelu"),
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.1),
        "initializer_range": ("initializer_range", 0.02),
    },
    fixed=HF_TIED,
    checked=HF_ENCODER,
    # Sinusoids, where they were asked for, are in the position table of the checkpoint.
    ignored=("sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"),
    assumed={"layer_norm_epsilon": 1e-12},
    model_type="distilbert",
    architectures={("masked_lm_head",): "DistilBertForMaskedLM", (): "DistilBertModel"},
)

_HEAD = {
    "dense": {"pre_classifier": "head/hidden", "classifier": "head/dense"},
    "dropout": ("seq_classif_dropout",),
    "default_dropout": 0.2,
}
HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads=classes(
        "DistilBert",
        classification=_HEAD,
        tagging={"dropout": ("dropout",)},
        choices=_HEAD,
        spans={"dense": {"qa_outputs": "head/dense"}, "dropout": ("qa_dropout",), "default_dropout": 0.1},
    ),
)

# The names in a preset of KerasHub (DistilBertBackbone, DistilBertMaskedLM, DistilBertTextClassifier).
HUB = Maps(
    bert.hub_config("DistilBert", activation="gelu_erf"),
    bert.HUB_JOINT_WEIGHTS,
    heads=bert.hub_classifier("DistilBert", hidden=True, dropout=0.2),
)
