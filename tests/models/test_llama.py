"""A decoder like Llama (Touvron et al. 2023), defined from outside of the library: configuration and maps alone.

RMS norm first, rotary positions, grouped keys and values, gated networks, no biases; see tests/golden/llama.py.
"""

import dataclasses
import json

import keras
import numpy as np
import pytest
from model_goldens import assert_exported, assert_gradients, load, mean_loss, part
from numeric import relative_error

from bert_tf.backend import AdamW
from bert_tf.generation import DecoderSteps, GenerationConfig, Restrictions, generate_tokens
from bert_tf.layers import AttentionMask, Embeddings, OutputLayer, RMSNormalization, RotaryPositions
from bert_tf.models import REQUIRED, ConfigMap, ContextLayers, Decoder, Stack, WeightMap, block_settings
from bert_tf.models.model_config import Positive, StackConfig, Width
from bert_tf.models.stack import transformer_blocks
from bert_tf.models.weights import load_weights
from bert_tf.objectives import CausalLM
from bert_tf.testing import check_backbone


@dataclasses.dataclass(frozen=True)
class LlamaConfig(StackConfig):
    num_key_value_heads: Width = 1
    theta: Positive = 10_000.0


@keras.saving.register_keras_serializable("tests")
class Llama(Decoder):
    config_class = LlamaConfig

    @staticmethod
    def make_stack(config, dtype):
        attention = {"use_bias": False, "num_key_value_heads": config.num_key_value_heads}
        network = {"use_bias": False, "gated": True}
        settings = block_settings(config, {"position": "pre", "rms": True}, attention, network)
        rotary = RotaryPositions(config.theta, config.hidden_size // config.num_heads, dtype=dtype)
        return Stack(
            embeddings=Embeddings(config.vocabulary_size, config.hidden_size, dtype=dtype, name="embeddings"),
            blocks=transformer_blocks(settings, config.num_layers, dtype),
            contexts=ContextLayers(AttentionMask(causal=True, dtype=dtype), rotary),
            final_norm=RMSNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name="final_norm"),
        )

    @staticmethod
    def make_output(config, dtype):
        return OutputLayer(config.vocabulary_size, config.hidden_size, use_bias=False, dtype=dtype, name="output")


LAYER, BLOCK = "model.layers.{layer}", "transformer_layer_{layer}"
WEIGHTS = WeightMap(
    arrays={
        "model.embed_tokens.weight": "embeddings/token_embeddings",
        "model.norm.weight": "final_norm/scale",
        "lm_head.weight": "output/kernel",
        f"{LAYER}.input_layernorm.weight": f"{BLOCK}/attention_layer_norm/scale",
        f"{LAYER}.post_attention_layernorm.weight": f"{BLOCK}/feed_forward_layer_norm/scale",
    },
    transposed={
        **{f"{LAYER}.self_attn.{n[0]}_proj.weight": f"{BLOCK}/attention/{n}/kernel" for n in ("query", "key", "value", "output")},
        f"{LAYER}.mlp.gate_proj.weight": f"{BLOCK}/gate/kernel",
        f"{LAYER}.mlp.up_proj.weight": f"{BLOCK}/linear/kernel",
        f"{LAYER}.mlp.down_proj.weight": f"{BLOCK}/output/kernel",
    },
)  # fmt: skip
NAMES = {
    "vocab_size": "vocabulary_size", "num_hidden_layers": "num_layers", "num_attention_heads": "num_heads",
    "hidden_act": "activation", "rms_norm_eps": "layer_norm_epsilon",
}  # fmt: skip
SAME = ("hidden_size", "intermediate_size", "num_key_value_heads", "initializer_range", "attention_dropout")
CONFIG = ConfigMap(
    fields={key: (NAMES.get(key, key), REQUIRED) for key in (*NAMES, *SAME)},
    fixed={"attention_bias": (False,), "mlp_bias": (False,), "tie_word_embeddings": (False,)},
    ignored=("head_dim", "max_position_embeddings", "pretraining_tp", "rope_parameters", "is_encoder_decoder"),
    derived=(lambda keys: {"theta": keys["rope_parameters"]["rope_theta"], "dropout": 0.0}, None),
    model_type="llama",
)  # fmt: skip
GOLDEN, GOLDEN_CONFIG = load("llama")
BATCH = {"token_ids": GOLDEN["token_ids"], "padding_mask": np.ones((2, 9), bool)}


@pytest.fixture
def model():
    llama = Llama(LlamaConfig(**CONFIG.read(GOLDEN_CONFIG, "config.json")))
    load_weights(llama, part(GOLDEN, "weights/"), WEIGHTS)
    return CausalLM(llama)


def test_logits_loss_and_gradients(model):
    assert relative_error(model(BATCH)["causal_lm_logits"], GOLDEN["logits"]) < 1e-5
    assert abs(float(mean_loss(model, BATCH)) - GOLDEN["loss"]) < 1e-5
    assert_gradients(model, lambda: mean_loss(model, BATCH), GOLDEN, WEIGHTS, count=21)
    assert_exported(model.backbone, GOLDEN, WEIGHTS)


def test_greedy_text_with_and_without_cache(model):
    tokens, llama = BATCH["token_ids"][:, :4], model.backbone
    steps = DecoderSteps(llama, tokens, np.ones((2, 4), bool), max_new_tokens=8)
    found = generate_tokens(steps, GenerationConfig(max_new_tokens=8), Restrictions())["token_ids"]
    np.testing.assert_array_equal(found, GOLDEN["written/with_cache"])
    for expected in GOLDEN["written/without_cache"].T:
        logits = llama.output_logits(llama({"token_ids": tokens})["sequence_output"][:, -1])
        np.testing.assert_array_equal(np.argmax(logits, -1), expected)
        tokens = np.concatenate([tokens, expected[:, None]], 1)


def test_one_update_of_adamw(model):
    rate, betas, epsilon, decay = json.loads(str(GOLDEN["update"])).values()
    epsilon *= (1 - betas[1]) ** 0.5  # PyTorch adds it to the root of the corrected moment
    model.compile(AdamW(rate, decay, *betas, epsilon, global_clipnorm=None))
    model.fit(BATCH, verbose=0)
    updated = {f"weights/{name}": value for name, value in part(GOLDEN, "updated/").items()}
    assert_exported(model.backbone, updated, WEIGHTS, tolerance=1e-5)


def test_it_is_a_backbone_like_any_other(tmp_path):
    llama = Llama(LlamaConfig(50, 16, 1, 4, 24, num_key_value_heads=2))  # whose dropout is that of the other decoders
    check_backbone(llama, tmp_path, unreached=["output/kernel"], training=False)
