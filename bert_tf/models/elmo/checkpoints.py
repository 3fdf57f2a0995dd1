"""How the published checkpoints of ELMo name settings and weights. No Keras is imported."""

from bert_tf.models.config_map import REQUIRED, ConfigMap, number
from bert_tf.models.elmo.config import CHARACTERS
from bert_tf.models.family import Maps
from bert_tf.models.weights import WeightMap

# The names in bilm-tf's HDF5 files; `bert_tf.checkpoints.bilm` takes `W_0` apart.
_CELLS = {
    f"RNN_{number}/RNN/MultiRNNCell/Cell{{layer}}/LSTMCell/{name}": f"lstm_layer_{{layer}}/{direction}/{path}"
    for number, direction in enumerate(("forward", "backward"))
    for name, path in (
        ("W_0[input]", "input_kernel"),
        ("W_0[recurrent]", "steps/cell/recurrent_kernel"),
        ("W_P_0", "steps/cell/projection_kernel"),
        ("B", "bias"),
    )
}
_HIGHWAYS = {
    f"CNN_high_{{number}}/{name}_{gate}": f"embeddings/highway_{{number}}_{gate}/{path}"
    for gate in ("carry", "transform")
    for name, path in (("W", "kernel"), ("b", "bias"))
}
BILM_WEIGHTS = WeightMap(
    arrays={
        "char_embed": "embeddings/character_embeddings",
        "CNN/W_cnn_{number}": "embeddings/convolution_{number}_kernel",
        "CNN/b_cnn_{number}": "embeddings/convolution_{number}_bias",
        **_HIGHWAYS,
        "CNN_proj/W_proj": "embeddings/projection/kernel",
        "CNN_proj/b_proj": "embeddings/projection/bias",
        **_CELLS,
        "mix/weight": "layer_mix/weight",
        "mix/gamma": "layer_mix/gamma",
    },
    convolutions=("CNN/W_cnn_*",),
)


def _read_rest(keys):
    highways = number(keys, "char_cnn/n_highway", None)
    width = {"hidden_size": 2 * number(keys, "lstm/projection_dim", 0), "highways": highways or 0}
    return width | {"skip_connections": bool(keys.get("lstm/use_skip_connections"))}


def _write_rest(config):
    return {
        "lstm/projection_dim": config.hidden_size // 2,
        "char_cnn/n_highway": config.highways or None,
        "lstm/use_skip_connections": config.skip_connections,
    }


#: The keys of options.json, each below its section. Of those that only training reads, none changes the vectors.
BILM_CONFIG = ConfigMap(
    fields={
        "lstm/dim": ("units", REQUIRED),
        "lstm/n_layers": ("num_layers", REQUIRED),
        "lstm/cell_clip": ("cell_clip", None),
        "lstm/proj_clip": ("projection_clip", None),
        "char_cnn/embedding/dim": ("character_size", REQUIRED),
        "char_cnn/filters": ("filters", REQUIRED),
        "char_cnn/max_characters_per_token": ("max_characters", REQUIRED),
        "char_cnn/activation": ("activation", REQUIRED),
    },
    activations={"relu": "relu", "tanh": "tanh"},
    # Training counts 261: padding words came later.
    fixed={"char_cnn/n_characters": (CHARACTERS, CHARACTERS - 1)},
    checked={"bidirectional": (True,)},
    ignored=("lstm/projection_dim", "char_cnn/n_highway", "lstm/use_skip_connections", "all_clip_norm_val",
             "batch_size", "dropout", "n_epochs", "n_gpus", "n_negative_samples_batch", "n_tokens_vocab",
             "n_train_tokens", "sample_softmax", "unroll_steps"),
    assumed={"vocabulary_size": CHARACTERS, "mix_norm": False},
    derived=(_read_rest, _write_rest),
    file="options.json",
)  # fmt: skip
BILM = Maps(BILM_CONFIG, BILM_WEIGHTS)
