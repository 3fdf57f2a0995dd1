"""How the published checkpoints of ELECTRA name settings and weights. No Keras is imported."""

import dataclasses
from typing import Any

from bert_tf.models.bert import checkpoints as bert
from bert_tf.models.config_map import REQUIRED
from bert_tf.models.electra.config import ElectraConfig
from bert_tf.models.family import Maps
from bert_tf.models.task_heads import TaskHead, classes
from bert_tf.models.weights import TF1_IGNORED, WeightMap, norm_arrays
from bert_tf.types import Settings, Shapes

GENERATOR = "generator/"


def split_pair(variables: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The variables of a discriminator and its generator as each would have them alone.

    Args:
        variables: dict from path to variable, of both, whose embeddings are shared.

    Returns:
        A pair of such dicts; the shared embeddings are in both. The second is empty where there is
        no generator.
    """
    generator = {path.removeprefix(GENERATOR): v for path, v in variables.items() if path.startswith(GENERATOR)}
    discriminator = {path: v for path, v in variables.items() if not path.startswith(GENERATOR)}
    shared = {path: v for path, v in discriminator.items() if path.startswith("embeddings/")}
    return discriminator, shared | generator if generator else {}


# The names in a Hugging Face checkpoint (ElectraModel, ElectraForMaskedLM, ElectraForPreTraining)
# and the variables they belong to. Hugging Face draws the projection and the discriminator's last
# layer from N(0, 0.02); google-research/electra leaves both to TensorFlow's default, Glorot.
HF_WEIGHTS = WeightMap(
    arrays=bert.encoder_names(bert.HF_WEIGHTS.arrays, "electra.")
    | {"generator_lm_head.bias": "masked_lm_head/output_bias"},
    dense=bert.encoder_names(bert.HF_WEIGHTS.dense, "electra.", pooler=False)
    | {
        "electra.embeddings_project": "embedding_projection",
        "generator_predictions.dense": "masked_lm_head/dense",
        "discriminator_predictions.dense": "discriminator_head/dense",
        "discriminator_predictions.dense_prediction": "discriminator_head/output",
    },
    norms=bert.encoder_names(bert.HF_WEIGHTS.norms, "electra.")
    | {"generator_predictions.LayerNorm": "masked_lm_head/layer_norm"},
    copies={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    ignored=("electra.embeddings.position_ids",),
    prefix="electra.",
)


def _pair_names(names):
    """The names of both models, each in a Hugging Face folder of its own, from those of one."""
    generator = {f"generator/{name}": GENERATOR + path for name, path in names.items()}
    return {f"discriminator/{name}": path for name, path in names.items()} | generator


HF_PAIR_WEIGHTS = WeightMap(
    arrays=_pair_names(HF_WEIGHTS.arrays),
    dense=_pair_names(HF_WEIGHTS.dense),
    norms=_pair_names(HF_WEIGHTS.norms),
    copies={f"generator/{copy}": f"discriminator/{name}" for copy, name in HF_WEIGHTS.copies.items()},
    ignored=tuple(f"*/{name}" for name in HF_WEIGHTS.ignored),
)
HF_CONFIG = dataclasses.replace(
    bert.HF_CONFIG,
    fields=bert.HF_CONFIG.fields | {"embedding_size": ("embedding_size", 128)},
    ignored=("summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"),
    model_type="electra",
    architectures={
        ("discriminator_head",): "ElectraForPreTraining",
        ("masked_lm_head",): "ElectraForMaskedLM",
        (): "ElectraModel",
    },
    head_activations={"masked_lm_head": "gelu_erf"},  # the authors' code has that of the layers
)

# The names in the checkpoints of google-research/electra, which hold generator and discriminator.
# What is the generator's own has the same paths here, behind "generator/"; see `make_generator`.


def _generator_names(names):
    """The names of the generator's layers, from those of the discriminator's."""
    return {
        name.replace("electra/", "generator/", 1): GENERATOR + path
        for name, path in names.items()
        if not path.startswith("embeddings/")
    }


_ARRAYS = bert.encoder_names(bert.TF1_WEIGHTS.arrays, "electra/")
_KERNELS = bert.encoder_names(bert.TF1_WEIGHTS.kernels, "electra/", pooler=False)
_KERNELS["electra/embeddings_project"] = "embedding_projection"
TF1_WEIGHTS = WeightMap(
    arrays={
        **_ARRAYS,
        **_generator_names(_ARRAYS),
        **norm_arrays({"generator_predictions/LayerNorm": "generator/masked_lm_head/layer_norm"}),
        "generator_predictions/output_bias": "generator/masked_lm_head/output_bias",
    },
    kernels={
        **_KERNELS,
        **_generator_names(_KERNELS),
        "generator_predictions/dense": "generator/masked_lm_head/dense",
        "discriminator_predictions/dense": "discriminator_head/dense",
        "discriminator_predictions/dense_1": "discriminator_head/output",
    },
    ignored=TF1_IGNORED,
)


def config_of_shapes(shapes: Shapes, scope: str = "model") -> Any:
    """The configuration of a model in one of these checkpoints, which come without a file of it.

    `get_bert_config` of google-research/electra `util/training_utils.py`: one head for every 64
    numbers; all else is a shape or has the published value.

    Args:
        shapes: dict from array name to shape.
        scope: "model" for the discriminator, or "generator".

    Returns:
        ElectraConfig, or None where there is no such model.
    """
    scope = "electra" if scope == "model" else scope
    layers = 0
    while f"{scope}/encoder/layer_{layers}/intermediate/dense/kernel" in shapes:
        layers += 1
    tables = [shapes.get(f"electra/embeddings/{name}_embeddings", ()) for name in ("word", "position", "token_type")]
    kernel = shapes.get(f"{scope}/encoder/layer_0/intermediate/dense/kernel", ())
    if any(len(shape) != 2 for shape in (kernel, *tables)):
        return None
    hidden_size, intermediate_size = kernel
    return ElectraConfig(
        vocabulary_size=tables[0][0],
        embedding_size=tables[0][1],
        hidden_size=hidden_size,
        num_layers=layers,
        num_heads=max(1, hidden_size // 64),
        intermediate_size=intermediate_size,
        max_positions=tables[1][0],
        num_segments=tables[2][0],
    )


HF = Maps(
    HF_CONFIG,
    HF_WEIGHTS,
    heads=classes(
        "Electra",
        # Google's code has no such dense layer: `ELECTRA.heads`.
        classification={
            "dense": {"classifier.dense": "head/hidden", "classifier.out_proj": "head/dense"},
            "head": TaskHead("first", activation="gelu_erf", input_dropout=True),
        },
        choices={
            "dense": {"sequence_summary.summary": "head/hidden", "classifier": "head/dense"},
            "dropout": ("summary_last_dropout",),
            "fixed": {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
            "head": TaskHead("first", activation="gelu_erf"),
        },
    ),
)
TF1 = Maps(None, TF1_WEIGHTS, config_of_shapes=config_of_shapes, marker="electra/embeddings/word_embeddings")

# The names in a preset of KerasHub, whose ELECTRA is a backbone without heads. Without a projection the pooler is the
# first dense layer.
HUB = Maps(
    bert.hub_config(
        "Electra",
        fields=bert.HUB_SEGMENT_FIELD
        | {"vocab_size": ("vocabulary_size", REQUIRED), "embedding_dim": ("embedding_size", REQUIRED)},
        architectures={(): "ElectraBackbone"},
    ),
    bert.hub_weights(
        *(bert.HUB_LAYER, "transformer_layer_{layer}"),
        bert.HUB_EMBEDDINGS,
        {"dense_0": "embedding_projection", "dense_1": "pooler/dense"},
    ),
    renames=lambda config: {"dense_0": "dense_1"} if config.embedding_size == config.hidden_size else {},
)
