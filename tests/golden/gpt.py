"""Writes tests/fixtures/models/{gpt1,gpt2}_*.npz: small random GPTs as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.23 was used):

    python tests/golden/gpt.py tests/fixtures/models

Each file holds config.json, all weights under their published names, the inputs, and what came out: all hidden
states, one layer's attention probabilities, logits, the loss of the next tokens, gradients of the loss; and the
tokens that `generate` adds to the prompts. Computed in float64 from float32 weights, so that an error beyond float32
rounding is ours.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

# Shapes that a wrong transposition or a forgotten setting cannot survive by luck.
SIZES = dict(vocab_size=37, n_embd=24, n_head=3, n_layer=3, initializer_range=0.2)
CASES = {
    "gpt2_odd": dict(family="GPT2", batch=3, length=13, n_positions=19, n_inner=40, layer_norm_epsilon=1e-3),
    "gpt2_relu": dict(family="GPT2", batch=2, length=17, n_positions=17, activation_function="relu"),
    "gpt1_odd": dict(family="OpenAIGPT", batch=3, length=11, n_positions=23, layer_norm_epsilon=1e-3),
}
GRADIENTS = {
    "GPT2": (
        "transformer.wte.weight",
        "transformer.wpe.weight",
        "transformer.h.0.ln_1.weight",
        "transformer.h.0.attn.c_attn.weight",
        "transformer.h.1.attn.c_proj.weight",
        "transformer.h.1.ln_2.bias",
        "transformer.h.1.mlp.c_fc.weight",
        "transformer.h.2.mlp.c_proj.bias",
        "transformer.ln_f.weight",
    ),
    "OpenAIGPT": (
        "transformer.tokens_embed.weight",
        "transformer.positions_embed.weight",
        "transformer.h.0.attn.c_attn.weight",
        "transformer.h.0.ln_1.weight",
        "transformer.h.1.attn.c_proj.bias",
        "transformer.h.1.mlp.c_fc.weight",
        "transformer.h.1.ln_2.bias",
        "transformer.h.2.mlp.c_proj.weight",
    ),
}


def make(name, family, batch, length, **settings):
    torch.manual_seed(len(name))
    generator = np.random.default_rng(len(name))
    special = dict.fromkeys(("bos_token_id", "eos_token_id"), 36 if family == "GPT2" else None)
    config = getattr(transformers, f"{family}Config")(**SIZES | settings | special, attn_implementation="eager")
    model = getattr(transformers, f"{family}LMHeadModel")(config).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    model = model.double()

    lengths = np.linspace(length // 2, length, batch).astype(int)
    real = np.arange(length) < lengths[:, None]
    token_ids = np.where(real, generator.integers(1, 36, (batch, length)), 0)
    out = model(
        input_ids=torch.tensor(token_ids),
        attention_mask=torch.tensor(real.astype("int64")),
        labels=torch.tensor(np.where(real, token_ids, -100)),
        output_hidden_states=True,
        output_attentions=True,
    )
    out.loss.backward()
    arrays = {
        "token_ids": token_ids,
        "padding_mask": real,
        "hidden_states": torch.stack(out.hidden_states).detach().numpy(),
        "attention": out.attentions[-2].detach().numpy(),
        "logits": out.logits.detach().numpy(),
        "loss": out.loss.detach().numpy(),
        "prompts": token_ids[-1:, :4],
    }
    options = dict(max_new_tokens=length - 4, pad_token_id=0, eos_token_id=None)
    prompt = torch.tensor(arrays["prompts"])
    arrays["greedy"] = model.generate(prompt, do_sample=False, **options).numpy()[:, 4:]
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    arrays |= {f"weights/{k}": v.numpy() for k, v in model.state_dict().items() if v.is_floating_point()}
    parameters = dict(model.named_parameters())
    arrays |= {f"gradients/{k}": parameters[k].grad.numpy() for k in GRADIENTS[family]}
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    written = {k: v for k, v in config.to_dict().items() if k not in ("id2label", "label2id")}
    arrays["config"] = np.array(json.dumps(written))
    return arrays


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, case in CASES.items():
        path = folder / f"{name}.npz"
        np.savez_compressed(path, **make(name, **case))
        print(path, path.stat().st_size)
