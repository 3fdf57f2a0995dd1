"""Writes tests/fixtures/models/t5_*.npz: small random T5s as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.23 was used):

    python tests/golden/t5.py tests/fixtures/models

Each file holds config.json, all weights under their published names, the inputs, and what came out: hidden states of
both stacks, logits, the loss, gradients of the loss; and the texts of `generate`, greedy and by beam search. Computed
in float64 from float32 weights.

transformers 5 builds a model with tied tables whatever `tie_word_embeddings` says; the flag only turns the scaling
before the output layer off (`scale_decoder_outputs`). So the untied model gets an `lm_head.weight` of its own, and
the third case is what version 5 makes of T5 1.1's configuration: one table, not scaled.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

# Shapes that a wrong transposition or a forgotten setting cannot survive by luck.
SIZES = dict(vocab_size=37, d_model=20, d_kv=6, d_ff=28, num_heads=3, num_layers=3, num_decoder_layers=2)
CASES = {
    "t5_relu_tied": dict(
        batch=3, length=13, target=9, relative_attention_num_buckets=8, relative_attention_max_distance=10
    ),
    "t5_gated_untied": dict(
        batch=2, length=11, target=8, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
        relative_attention_num_buckets=6, relative_attention_max_distance=7, layer_norm_epsilon=1e-3,
    ),
    "t5_gated_tied": dict(batch=2, length=7, target=5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
}  # fmt: skip
GRADIENTS = (
    "shared.weight",
    "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "encoder.block.1.layer.0.SelfAttention.q.weight",
    "encoder.block.2.layer.1.layer_norm.weight",
    "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "decoder.block.0.layer.1.EncDecAttention.v.weight",
    "decoder.block.1.layer.1.EncDecAttention.o.weight",
    "decoder.block.1.layer.2.DenseReluDense.wo.weight",
    "encoder.final_layer_norm.weight",
)
BEAMS = dict(num_beams=3, num_return_sequences=3, early_stopping="never", length_penalty=0.6)


def make(name, batch, length, target, **settings):
    torch.manual_seed(len(name))
    generator = np.random.default_rng(len(name))
    config = transformers.T5Config(
        **SIZES | settings, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, attn_implementation="eager"
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    tied = not name.endswith("untied")
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(config.vocab_size, config.d_model) * 0.3)
    with torch.no_grad():  # fresh scales are 1, which would hide mistakes
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    assert torch.equal(model.lm_head.weight, model.shared.weight) == tied
    model = model.double()

    def rows(size):
        lengths = np.linspace(size // 2, size, batch).astype(int)
        real = np.arange(size) < lengths[:, None]
        return np.where(real, generator.integers(2, 37, (batch, size)), 0), real

    (token_ids, real), (target_ids, target_real) = rows(length), rows(target)
    inputs = {"input_ids": torch.tensor(token_ids), "attention_mask": torch.tensor(real.astype("int64"))}
    out = model(**inputs, labels=torch.tensor(np.where(target_real, target_ids, -100)), output_hidden_states=True)
    out.loss.backward()
    arrays = {
        "token_ids": token_ids,
        "padding_mask": real,
        "target_ids": target_ids,
        "target_weights": target_real,
        "encoder_hidden_states": torch.stack(out.encoder_hidden_states).detach().numpy(),
        "hidden_states": torch.stack(out.decoder_hidden_states).detach().numpy(),
        "logits": out.logits.detach().numpy(),
        "loss": out.loss.detach().numpy(),
    }
    arrays["greedy"] = model.generate(**inputs, max_new_tokens=10, do_sample=False).numpy()[:, 1:]
    found = model.generate(
        **inputs, max_new_tokens=10, do_sample=False, return_dict_in_generate=True, output_scores=True, **BEAMS
    )
    arrays["beams"] = found.sequences.numpy()[:, 1:].reshape(batch, BEAMS["num_return_sequences"], -1)
    arrays["beam_scores"] = found.sequences_scores.numpy().reshape(batch, -1)
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    parameters = dict(model.named_parameters())
    arrays |= {f"weights/{k}": v.detach().numpy() for k, v in parameters.items()}
    arrays |= {f"gradients/{k}": parameters[k].grad.numpy() for k in GRADIENTS}
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
