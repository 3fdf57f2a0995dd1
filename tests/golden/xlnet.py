"""Writes tests/fixtures/models/xlnet_*.npz: small random XLNets as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.x was used):

    python tests/golden/xlnet.py tests/fixtures/models

Pretraining cases: a text in two segments, each in a factorization order of its own, the second
with the memory of the first: hidden states of both streams, memory, logits at the predicted
positions, loss and gradients. Fine-tuning cases: the content stream alone, with padding on the left
as the original has it. Computed in float64 from float32 weights, so that an error beyond float32
rounding is ours.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import XLNetConfig, XLNetForSequenceClassification, XLNetLMHeadModel

# Shapes that a wrong transposition or a forgotten setting cannot survive by luck.
COMMON = dict(vocab_size=61, d_model=18, n_head=3, d_inner=26, n_layer=2, initializer_range=0.3, dropout=0.0)
PRETRAINING = {
    "tanh": dict(ff_activation="gelu_new", layer_norm_eps=1e-12, mem_len=9, batch=3, lengths=(11, 8)),
    # The second half of the batch runs backwards; memory of the first part of each segment only.
    "relu_backward": dict(
        ff_activation="relu", layer_norm_eps=1e-5, clamp_len=6, bi_data=True, mem_len=20, reuse_len=5,
        batch=4, lengths=(9, 12),
    ),
}  # fmt: skip
FINETUNING = {"erf_padded": dict(ff_activation="gelu", layer_norm_eps=1e-6, batch=3, length=75)}
GRADIENTS = (
    "transformer.word_embedding.weight",
    "transformer.mask_emb",
    "transformer.layer.0.rel_attn.q",
    "transformer.layer.0.rel_attn.r",
    "transformer.layer.0.rel_attn.r_r_bias",
    "transformer.layer.0.rel_attn.r_s_bias",
    "transformer.layer.0.rel_attn.seg_embed",
    "transformer.layer.1.rel_attn.k",
    "transformer.layer.1.rel_attn.v",
    "transformer.layer.1.rel_attn.o",
    "transformer.layer.1.rel_attn.r_w_bias",
    "transformer.layer.1.rel_attn.layer_norm.weight",
    "transformer.layer.0.ff.layer_1.weight",
    "transformer.layer.1.ff.layer_2.bias",
    "transformer.layer.1.ff.layer_norm.bias",
    "lm_loss.bias",
)


def build(cls, name, settings):
    torch.manual_seed(len(name))
    model = cls(XLNetConfig(**COMMON, **settings)).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    model = model.double()
    encode = model.transformer.relative_positional_encoding  # float32 whatever the model's dtype
    model.transformer.relative_positional_encoding = lambda *args, **kwargs: encode(*args, **kwargs).double()
    return model


def pretraining(name, batch, lengths, **settings):
    model = build(XLNetLMHeadModel, name, settings)
    generator = np.random.default_rng(len(name))
    arrays, total, mems, predictions = {}, 0, None, 3
    for number, length in enumerate(lengths):
        token_ids = generator.integers(5, COMMON["vocab_size"], (batch, length))
        segment_ids = np.sort(generator.integers(0, 3, (batch, length)), 1)
        # Ranks: context 0, the others in random order; predictions in random places among them.
        ordered = np.stack([generator.permutation(length)[: length // 2] for _ in range(batch)])
        order = np.zeros((batch, length), int)
        np.put_along_axis(order, ordered, 1 + np.arange(length // 2)[None], 1)
        mask_positions = np.sort(ordered[:, -predictions:], 1)
        mask_ids = np.take_along_axis(token_ids, mask_positions, 1)
        perm_mask = order[:, None, :] > order[:, :, None]
        perm_mask |= np.eye(length, dtype=bool) & (order > 0)[:, :, None]
        out = model(
            input_ids=torch.tensor(token_ids),
            token_type_ids=torch.tensor(segment_ids),
            perm_mask=torch.tensor(perm_mask.astype("float64")),
            target_mapping=torch.tensor(np.eye(length)[mask_positions]),
            labels=torch.tensor(mask_ids),
            mems=mems,
            use_mems=True,
            output_hidden_states=True,
        )
        mems, total = out.mems, total + out.loss
        arrays |= {
            f"{number}/{key}": value
            for key, value in {
                "token_ids": token_ids, "segment_ids": segment_ids, "permutation_order": order,
                "mask_positions": mask_positions, "mask_ids": mask_ids,
                "hidden_states": torch.stack(out.hidden_states[0::2]).detach().numpy(),
                "query_hidden_states": torch.stack(out.hidden_states[1::2]).detach().numpy(),
                # [M, B, H] of each layer there, [B, L, M, H] here.
                "memory": torch.stack(out.mems).permute(2, 0, 1, 3).numpy(),
                "logits": out.logits.detach().numpy(), "loss": out.loss.detach().numpy(),
            }.items()
        }  # fmt: skip
    total.backward()
    parameters = dict(model.named_parameters())
    return arrays | {f"gradients/{key}": parameters[key].grad.numpy() for key in GRADIENTS}, model


def finetuning(name, batch, length, **settings):
    model = build(XLNetForSequenceClassification, name, settings)
    generator = np.random.default_rng(len(name))
    lengths = np.linspace(length // 2, length, batch).astype(int)
    real = np.arange(length) >= length - lengths[:, None]
    token_ids = np.where(real, generator.integers(5, COMMON["vocab_size"], (batch, length)), 0)
    segment_ids = np.where(real, np.sort(generator.integers(0, 3, (batch, length)), 1), 3)
    out = model.transformer(
        input_ids=torch.tensor(token_ids),
        token_type_ids=torch.tensor(segment_ids),
        attention_mask=torch.tensor(real.astype("float64")),
        output_hidden_states=True,
        output_attentions=True,
    )
    return {
        "token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real,
        "hidden_states": torch.stack(out.hidden_states).detach().numpy(),
        "attention": out.attentions[-1].detach().numpy()[:, :, [length - 20, length - 1]],
        "attention_queries": np.array([length - 20, length - 1]),
        "pooled_output": model.sequence_summary(out.last_hidden_state).detach().numpy(),
    }, model  # fmt: skip


def save(path, arrays, model, settings):
    weights = {k: v.numpy() for k, v in model.state_dict().items() if not k.startswith("logits_proj")}
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    arrays |= {f"weights/{k}": v for k, v in weights.items() if k != "lm_loss.weight"}
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    arrays["settings"] = np.array(json.dumps(COMMON | settings))
    np.savez_compressed(path, **arrays)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for cases, make in ((PRETRAINING, pretraining), (FINETUNING, finetuning)):
        for name, case in cases.items():
            save(folder / f"xlnet_{name}.npz", *make(name, **case), case)
