"""Writes tests/fixtures/models/transformer_*.npz: small random Transformers of 2017, of the layers of PyTorch.

Run by hand, in an environment of its own with torch (2.13 was used):

    python tests/golden/transformer.py tests/fixtures/models

The layers are torch.nn.TransformerEncoderLayer and TransformerDecoderLayer. The sinusoids, which PyTorch lacks, are
written out number by number. Each file holds the settings, all weights, the inputs, and what came out: hidden states
of both stacks, logits, the loss and its gradients. Computed in float64 from float32 weights.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

# Shapes that a wrong transposition or a forgotten setting cannot survive by luck.
SIZES = dict(vocabulary_size=29, hidden_size=12, num_heads=3, intermediate_size=20, num_layers=3, num_decoder_layers=2)
CASES = {
    "transformer_post_interleaved": dict(
        norm="post", positions="interleaved", attention_bias=False, activation="relu", layer_norm_epsilon=1e-6
    ),
    "transformer_pre_concatenated": dict(
        norm="pre", positions="concatenated", attention_bias=False, activation="relu", layer_norm_epsilon=1e-3
    ),
    "transformer_post_biases": dict(
        norm="post", positions="concatenated", attention_bias=True, activation="gelu_erf", layer_norm_epsilon=1e-5
    ),
}
BATCH, LENGTH, TARGET = 3, 11, 8


def sinusoids(length, size, layout):
    rows = []
    for position in range(length):
        if layout == "interleaved":  # Vaswani et al. 2017, section 3.5
            angles = [position / 10_000 ** (2 * i / size) for i in range(size // 2)]
            rows.append([wave(angle) for angle in angles for wave in (math.sin, math.cos)])
        else:  # tensor2tensor common_attention.py, get_timing_signal_1d
            increment = math.log(10_000) / (size // 2 - 1)
            angles = [position * math.exp(-i * increment) for i in range(size // 2)]
            rows.append([math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles])
    return torch.tensor(rows, dtype=torch.float64)


def make(seed, settings):
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    hidden, pre = SIZES["hidden_size"], settings["norm"] == "pre"
    options = dict(
        d_model=hidden, nhead=SIZES["num_heads"], dim_feedforward=SIZES["intermediate_size"], dropout=0.0,
        activation={"relu": "relu", "gelu_erf": "gelu"}[settings["activation"]], batch_first=True, norm_first=pre,
        layer_norm_eps=settings["layer_norm_epsilon"],
    )  # fmt: skip
    model = nn.ModuleDict(
        {
            "tokens": nn.Embedding(SIZES["vocabulary_size"], hidden),
            "encoder": nn.ModuleList(nn.TransformerEncoderLayer(**options) for _ in range(SIZES["num_layers"])),
            "decoder": nn.ModuleList(nn.TransformerDecoderLayer(**options) for _ in range(SIZES["num_decoder_layers"])),
        }
    )
    if pre:
        for stack in ("encoder", "decoder"):
            model[f"{stack}_norm"] = nn.LayerNorm(hidden, eps=settings["layer_norm_epsilon"])
    with torch.no_grad():  # fresh scales are 1 and fresh offsets 0, which would hide mistakes
        for name, parameter in model.named_parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
            if not settings["attention_bias"] and "attn" in name and name.endswith("bias"):
                parameter.zero_()
    model = model.double().train()  # without dropout; eval() would take another path of PyTorch's

    def rows(size):
        lengths = np.linspace(size // 2, size, BATCH).astype(int)
        real = np.arange(size) < lengths[:, None]
        return np.where(real, generator.integers(2, SIZES["vocabulary_size"], (BATCH, size)), 0), real

    def embedded(ids):
        x = model["tokens"](torch.tensor(ids)) * math.sqrt(hidden)
        return x + sinusoids(ids.shape[1], hidden, settings["positions"])

    def finished(states, stack):
        return [*states[:-1], model[f"{stack}_norm"](states[-1])] if pre else states

    (token_ids, real), (target_ids, target_real) = rows(LENGTH), rows(TARGET)
    padding = torch.tensor(~real)
    encoder = [embedded(token_ids)]
    for layer in model["encoder"]:
        encoder.append(layer(encoder[-1], src_key_padding_mask=padding))
    encoder = finished(encoder, "encoder")
    decoder = [embedded(np.pad(target_ids, [(0, 0), (1, 0)])[:, :-1])]
    causal = torch.triu(torch.ones(TARGET, TARGET, dtype=torch.bool), diagonal=1)
    for layer in model["decoder"]:
        decoder.append(layer(decoder[-1], encoder[-1], tgt_mask=causal, memory_key_padding_mask=padding))
    decoder = finished(decoder, "decoder")
    logits = decoder[-1] @ model["tokens"].weight.T
    targets = torch.tensor(np.where(target_real, target_ids, -100))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
    loss.backward()
    arrays = {
        "token_ids": token_ids.astype("int16"),
        "padding_mask": real,
        "target_ids": target_ids.astype("int16"),
        "target_weights": target_real,
        "encoder_hidden_states": torch.stack(encoder).detach().numpy(),
        "hidden_states": torch.stack(decoder).detach().numpy(),
        "logits": logits.detach().numpy(),
        "loss": loss.detach().numpy(),
    }
    for name, parameter in model.named_parameters():
        for kind, tensor in (("weights", parameter.detach()), ("gradients", parameter.grad)):
            for part, value in parts(name, tensor.numpy()):
                if settings["attention_bias"] or "attn" not in part or not part.endswith("bias"):
                    arrays[f"{kind}/{part}"] = value
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    arrays["config"] = np.array(json.dumps(SIZES | settings))
    return arrays


def parts(name, array):
    """PyTorch stacks queries, keys and values in one array [3 H, ...]: each by a name of its own."""
    if "in_proj_" not in name:
        return [(name, array)]
    names = (name.replace("in_proj_", f"{part}.") for part in ("query", "key", "value"))
    return zip(names, np.split(array, 3))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for seed, (name, settings) in enumerate(CASES.items()):
        path = folder / f"{name}.npz"
        np.savez_compressed(path, **make(seed, settings))
        print(path, path.stat().st_size)
