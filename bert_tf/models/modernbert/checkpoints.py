"""How the published checkpoints of ModernBERT name settings and weights. No Keras is imported."""

from bert_tf.errors import ConfigError
from bert_tf.models.config_map import HF_ENCODER, HF_TIED, REQUIRED, ConfigMap, number
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import classes
from bert_tf.models.weights import WeightMap
from bert_tf.parsing import brief

# The names in a Hugging Face checkpoint (ModernBertModel, ModernBertForMaskedLM).
_LAYER = "model.layers.{layer}"
_BLOCK = "transformer_layer_{layer}"
HF_WEIGHTS = WeightMap(
    arrays={
        "model.embeddings.tok_embeddings.weight": "embeddings/token_embeddings",
        "model.embeddings.norm.weight": "embeddings/layer_norm/gamma",
        f"{_LAYER}.attn_norm.weight": f"{_BLOCK}/attention_layer_norm/gamma",
        f"{_LAYER}.mlp_norm.weight": f"{_BLOCK}/feed_forward_layer_norm/gamma",
        "model.final_norm.weight": "final_layer_norm/gamma",
        "head.norm.weight": "masked_lm_head/layer_norm/gamma",
        "decoder.bias": "masked_lm_head/output_bias",
    },
    transposed={
        f"{_LAYER}.attn.Wqkv.weight": f"{_BLOCK}/attention/query_key_value/kernel",
        f"{_LAYER}.attn.Wo.weight": f"{_BLOCK}/attention/output/kernel",
        f"{_LAYER}.mlp.Wi.weight": f"{_BLOCK}/intermediate/kernel",
        f"{_LAYER}.mlp.Wo.weight": f"{_BLOCK}/output/kernel",
        "head.dense.weight": "masked_lm_head/dense/kernel",
    },
    copies={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
    prefix="model.",
)


def _layer_types(num_layers, every):
    return ["sliding_attention" if layer % every else "full_attention" for layer in range(num_layers)]


def _read_layers(keys):
    """Which layers are global, and their rotations: older files have numbers, newer ones lists."""
    every = number(keys, "global_attn_every_n_layers", 3)
    if every < 1:
        raise ConfigError(f"global_attn_every_n_layers is {every}; it must be at least 1")
    types = keys.get("layer_types")
    if types is not None:
        layers = len(types) if isinstance(types, list) else 0
        if not layers or types != _layer_types(layers, every):
            every = next((i for i in range(1, layers) if types[i] == "full_attention"), max(layers, 1))
        if layers != keys.get("num_hidden_layers") or types != _layer_types(layers, every):
            raise ConfigError(
                f"layer_types is {brief(types)}; it must have num_hidden_layers entries, and only a global layer "
                "first and at equal distances is supported"
            )
    # `local_rope_theta: null` is the global one.
    global_theta = number(keys, "global_rope_theta", 160_000.0, (int, float))
    local_theta = global_theta
    if keys.get("local_rope_theta", 10_000.0) is not None:
        local_theta = number(keys, "local_rope_theta", 10_000.0, (int, float))
    thetas = {"full_attention": global_theta, "sliding_attention": local_theta}
    ropes = keys.get("rope_parameters") or {}
    if not isinstance(ropes, dict):
        raise ConfigError(f"rope_parameters must be an object, but is {brief(ropes)}")
    for kind, parameters in ropes.items():
        readable = isinstance(parameters, dict) and parameters.keys() <= {"rope_type", "rope_theta"}
        if kind not in thetas or not readable or parameters.get("rope_type") != "default":
            raise ConfigError(f"rope_parameters has {kind}: {brief(parameters)}; only rope_type 'default' is supported")
        thetas[kind] = number(parameters, "rope_theta", thetas[kind], (int, float))
    for same, other in (("mlp_dropout", "embedding_dropout"), ("classifier_activation", "hidden_activation")):
        if same in keys and other in keys and keys[same] != keys[other]:
            values = f"{same} is {brief(keys[same])} and {other} is {brief(keys[other])}"
            raise ConfigError(f"{values}; they must be equal")
    return {
        "global_attention_every": every,
        "global_theta": float(thetas["full_attention"]),
        "local_theta": float(thetas["sliding_attention"]),
    }


def _write_layers(config):
    activation_name = next(name for name, value in HF_CONFIG.activations.items() if value == config.activation)
    return {
        "classifier_activation": activation_name,
        "mlp_dropout": config.dropout,
        "global_attn_every_n_layers": config.global_attention_every,
        "global_rope_theta": config.global_theta,
        "local_rope_theta": config.local_theta,
        "layer_types": _layer_types(config.num_layers, config.global_attention_every),
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": config.global_theta},
            "sliding_attention": {"rope_type": "default", "rope_theta": config.local_theta},
        },
    }


HF_CONFIG = ConfigMap(
    fields={
        "vocab_size": ("vocabulary_size", REQUIRED),
        "hidden_size": ("hidden_size", REQUIRED),
        "num_hidden_layers": ("num_layers", REQUIRED),
        "num_attention_heads": ("num_heads", REQUIRED),
        "intermediate_size": ("intermediate_size", REQUIRED),
        "max_position_embeddings": ("max_positions", 8192),
        "local_attention": ("local_attention", 128),
        "hidden_activation": ("activation", "gelu"),
        "embedding_dropout": ("dropout", 0.0),
        "attention_dropout": ("attention_dropout", 0.0),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "classifier_pooling": ("classifier_pooling", "cls"),
        "initializer_range": ("initializer_range", 0.02),
    },
    fixed={
        "attention_bias": (False,),
        "classifier_bias": (False,),
        "decoder_bias": (True,),
        "mlp_bias": (False,),
        "norm_bias": (False,),
        **HF_TIED,
    },
    checked=HF_ENCODER,
    # The published files carry BERT's epsilon and position type along, which no code reads.
    ignored=(
        "classifier_activation",
        "deterministic_flash_attn",
        "global_attn_every_n_layers",
        "global_rope_theta",
        "initializer_cutoff_factor",
        "layer_norm_eps",
        "layer_types",
        "local_rope_theta",
        "mlp_dropout",
        "position_embedding_type",
        "reference_compile",
        "repad_logits_with_grad",
        "rope_parameters",
        "sparse_pred_ignore_index",
        "sparse_prediction",
    ),
    derived=(_read_layers, _write_layers),
    model_type="modernbert",
    token_ids={
        "pad_token_id": "pad_id",
        "bos_token_id": "cls_id",
        "eos_token_id": "sep_id",
        "cls_token_id": "cls_id",
        "sep_token_id": "sep_id",
    },
    architectures={("masked_lm_head",): "ModernBertForMaskedLM", (): "ModernBertModel"},
)

# The layers of the masked LM head, which fine-tuning starts from, are part of these classes.
_HEAD = {
    "arrays": {"head.norm.weight": "head/layer_norm/gamma"},
    "transposed": {"head.dense.weight": "head/hidden/kernel"},
    "dropout": ("classifier_dropout",),
    "default_dropout": 0.0,
}
_SPANS = _HEAD | {"dense": {"classifier": "head/dense"}, "spans": "modernbert"}
HF = Maps(
    HF_CONFIG, HF_WEIGHTS, heads=classes("ModernBert", classification=_HEAD, tagging=_HEAD, choices=_HEAD, spans=_SPANS)
)
