"""Writes tests/fixtures/models/llama.npz: a small random Llama as Hugging Face computes it.

Run by hand, in an environment of its own with torch and transformers (5.24 was used):

    python tests/golden/llama.py tests/fixtures/models

The file holds config.json, all weights under their published names, two texts, the logits, the loss of the next tokens,
its gradients, the weights after one update of AdamW, and the tokens that greedy search adds to a prompt, with and without
a cache. Computed in float64 from float32 weights, so that an error beyond float32 rounding is ours.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

SIZES = {
    "vocab_size": 37, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-3, "initializer_range": 0.2,
}  # fmt: skip
UPDATE = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-3, "weight_decay": 0.1}


def main(folder):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **SIZES, rope_parameters={"rope_type": "default", "rope_theta": 50.0}, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():  # fresh scales are 1, which would hide mistakes
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    arrays = {f"weights/{name}": p.detach().numpy().copy() for name, p in model.state_dict().items()}
    model = model.double()
    ids = torch.tensor(np.random.default_rng(0).integers(0, 37, (2, 9)))
    output = model(input_ids=ids, labels=ids)
    output.loss.backward()
    arrays |= {"token_ids": ids.numpy(), "logits": output.logits.detach().numpy(), "loss": output.loss.item()}
    arrays |= {f"gradients/{name}": p.grad.numpy().copy() for name, p in model.named_parameters()}
    for use_cache in (True, False):
        written = model.generate(ids[:, :4], max_new_tokens=8, do_sample=False, use_cache=use_cache, pad_token_id=0)
        arrays[f"written/{'with' if use_cache else 'without'}_cache"] = written[:, 4:].numpy()
    norms = [p for name, p in model.named_parameters() if "norm" in name]
    kernels = [p for name, p in model.named_parameters() if "norm" not in name]
    groups = [{"params": norms, "weight_decay": 0.0}, {"params": kernels}]
    torch.optim.AdamW(groups, **UPDATE).step()
    arrays |= {f"updated/{name}": p.detach().numpy() for name, p in model.named_parameters()}
    arrays = {k: np.asarray(v, "int32" if np.asarray(v).dtype.kind == "i" else "float32") for k, v in arrays.items()}
    kept = {k: v for k, v in config.to_dict().items() if k not in ("_name_or_path", "transformers_version")}
    np.savez_compressed(Path(folder) / "llama.npz", config=json.dumps(kept), update=json.dumps(UPDATE), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
