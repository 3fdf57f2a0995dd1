"""Writes tests/fixtures/models/{roberta,albert,distilbert,modernbert}_*.npz: small random models
as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.x was used):

    python tests/golden/masked_lm_families.py tests/fixtures/models [name ...]

Each file holds the configuration, all weights under their published names, the inputs, and what
came out: all hidden states, one layer's attention probabilities, logits, the loss, and gradients
of the loss. Computed in float64 from float32 weights, so that an error beyond float32 rounding is
ours. (Rotary angles are float32 there, whatever the dtype. Padding further away than a local window
makes that model's gradients NaN, so there is none.)
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

# Shapes that a wrong transposition or a forgotten setting cannot survive by luck.
SIZES = dict(vocab_size=61, hidden_size=18, num_attention_heads=3, intermediate_size=14, initializer_range=0.2)
CASES = {
    "roberta_long": dict(
        family="Roberta", head="ForMaskedLM", batch=2, length=50, hidden_act="gelu", num_hidden_layers=2,
        max_position_embeddings=53, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=2,
    ),
    "roberta_relu": dict(
        family="Roberta", head="ForMaskedLM", batch=2, length=13, hidden_act="relu", num_hidden_layers=3,
        max_position_embeddings=20, type_vocab_size=1, layer_norm_eps=1e-3, pad_token_id=1,
    ),
    "albert_groups": dict(
        family="Albert", head="ForPreTraining", batch=2, length=19, hidden_act="gelu_new", num_hidden_layers=5,
        embedding_size=10, num_hidden_groups=2, inner_group_num=2, max_position_embeddings=32,
        type_vocab_size=2, layer_norm_eps=1e-12, pad_token_id=0,
    ),
    "albert_one": dict(
        family="Albert", head="ForPreTraining", batch=2, length=40, hidden_act="gelu", num_hidden_layers=3,
        embedding_size=30, num_hidden_groups=1, inner_group_num=1, max_position_embeddings=40,
        type_vocab_size=3, layer_norm_eps=1e-5, pad_token_id=0,
    ),
    "distilbert_erf": dict(
        family="DistilBert", head="ForMaskedLM", batch=2, length=21, activation="gelu", n_layers=3,
        max_position_embeddings=25, pad_token_id=0,
    ),
    "modernbert_local": dict(
        family="ModernBert", head="ForMaskedLM", batch=2, length=40, shortest=34, hidden_activation="gelu",
        num_hidden_layers=4, global_attn_every_n_layers=2, local_attention=12, max_position_embeddings=64,
        norm_eps=1e-5, pad_token_id=0, global_rope_theta=500.0, local_rope_theta=30.0,
    ),
    "modernbert_silu": dict(
        family="ModernBert", head="ForMaskedLM", batch=2, length=17, shortest=14, hidden_activation="silu",
        classifier_activation="silu", num_hidden_layers=4, local_attention=6, max_position_embeddings=64,
        norm_eps=1e-3, pad_token_id=0,
    ),
}  # fmt: skip
# The configuration's own names for the sizes, where they differ.
SIZE_NAMES = {"DistilBert": {"hidden_size": "dim", "num_attention_heads": "n_heads", "intermediate_size": "hidden_dim"}}
GRADIENTS = {
    "Roberta": (
        "roberta.embeddings.word_embeddings.weight",
        "roberta.embeddings.position_embeddings.weight",
        "roberta.embeddings.token_type_embeddings.weight",
        "roberta.encoder.layer.0.attention.self.query.weight",
        "roberta.encoder.layer.1.output.dense.bias",
        "lm_head.dense.weight",
        "lm_head.layer_norm.weight",
        "lm_head.bias",
    ),
    "Albert": (
        "albert.embeddings.word_embeddings.weight",
        "albert.embeddings.token_type_embeddings.weight",
        "albert.encoder.embedding_hidden_mapping_in.weight",
        "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.key.weight",
        "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output.bias",
        "albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.weight",
        "albert.pooler.weight",
        "predictions.dense.weight",
        "predictions.bias",
        "sop_classifier.classifier.weight",
    ),
    "DistilBert": (
        "distilbert.embeddings.word_embeddings.weight",
        "distilbert.embeddings.position_embeddings.weight",
        "distilbert.transformer.layer.0.attention.k_lin.weight",
        "distilbert.transformer.layer.1.ffn.lin2.bias",
        "distilbert.transformer.layer.2.sa_layer_norm.weight",
        "vocab_transform.weight",
        "vocab_projector.bias",
    ),
    "ModernBert": (
        "model.embeddings.tok_embeddings.weight",
        "model.embeddings.norm.weight",
        "model.layers.0.attn.Wqkv.weight",
        "model.layers.1.attn_norm.weight",
        "model.layers.1.mlp.Wi.weight",
        "model.layers.3.attn.Wo.weight",
        "model.final_norm.weight",
        "head.dense.weight",
        "decoder.bias",
    ),
}


def make(name, family, head, batch, length, shortest=None, **settings):
    torch.manual_seed(len(name))
    generator = np.random.default_rng(len(name))
    names = SIZE_NAMES.get(family, {})
    settings = {names.get(k, k): v for k, v in SIZES.items()} | settings
    config = getattr(transformers, f"{family}Config")(**settings, attn_implementation="eager")
    model = getattr(transformers, f"{family}{head}")(config).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for key, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            if "ModernBert" in family and ("Wo" in key or "head" in key):
                parameter.mul_(3.0)  # fresh branches are too faint to show
    model = model.double()

    lengths = np.linspace(shortest or length // 2, length, batch).astype(int)
    real = np.arange(length) < lengths[:, None]
    token_ids = np.where(real, generator.integers(5, 61, (batch, length)), settings["pad_token_id"])
    num_segments = settings.get("type_vocab_size", 1)
    segment_ids = np.where(real, np.arange(length) * num_segments // lengths[:, None], 0)
    mask_positions = np.stack([np.sort(generator.permutation(n)[:4]) for n in lengths])
    mask_ids = generator.integers(5, 61, (batch, 4))
    mask_weights = np.ones((batch, 4), "float32")
    mask_weights[0, 3] = 0
    labels = np.full((batch, length), -100)
    for row in range(batch):
        for position, token, weight in zip(mask_positions[row], mask_ids[row], mask_weights[row]):
            if weight:
                labels[row, position] = token

    inputs = dict(
        input_ids=torch.tensor(token_ids),
        attention_mask=torch.tensor(real.astype("int64")),
        labels=torch.tensor(labels),
        output_hidden_states=True,
        output_attentions=True,
    )
    arrays = {}
    if family in ("Albert", "Roberta"):
        inputs["token_type_ids"] = torch.tensor(segment_ids)
    if head == "ForPreTraining":
        arrays["pair_labels"] = np.arange(batch) % 2
        inputs["sentence_order_label"] = torch.tensor(arrays["pair_labels"])
    out = model(**inputs)
    out.loss.backward()
    rows = np.arange(batch)[:, None]
    queries = np.array([0, lengths.min() - 1])
    logits = out.prediction_logits if head == "ForPreTraining" else out.logits
    arrays |= {
        "token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real,
        "mask_positions": mask_positions, "mask_ids": mask_ids, "mask_weights": mask_weights,
        "hidden_states": torch.stack(out.hidden_states).detach().numpy(),
        # The first and the last query that all rows have, of the last layer but one.
        "attention": out.attentions[-2].detach().numpy()[:, :, queries],
        "attention_queries": queries,
        "masked_lm_logits": logits.detach().numpy()[rows, mask_positions],
        "loss": out.loss.detach().numpy(),
    }  # fmt: skip
    if head == "ForPreTraining":
        arrays["pair_logits"] = out.sop_logits.detach().numpy()
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    arrays |= {f"weights/{k}": v.numpy() for k, v in model.state_dict().items() if v.is_floating_point()}
    parameters = dict(model.named_parameters())
    arrays |= {f"gradients/{k}": parameters[k].grad.numpy() for k in GRADIENTS[family]}
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    arrays["settings"] = np.array(json.dumps(settings))
    return arrays


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or CASES:
        path = folder / f"{name}.npz"
        np.savez_compressed(path, **make(name, **CASES[name]))
        print(path, path.stat().st_size)
