"""Writes tests/fixtures/models/bert_*.npz: small random BERTs as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.x was used):

    python tests/golden/bert.py tests/fixtures/models

Each file holds the configuration, all weights under their published names, the inputs, and what
came out: all hidden states, one layer's attention probabilities, logits, losses, gradients of
the total loss. Computed in float64 from float32 weights, so that an error beyond float32 rounding
is ours.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining

# Shapes that a wrong transposition or a forgotten setting cannot survive by luck.
COMMON = dict(vocab_size=97, hidden_size=24, num_attention_heads=3, intermediate_size=40, initializer_range=0.2)
CASES = {
    "tanh_pairs": dict(
        hidden_act="gelu_new", num_hidden_layers=3, max_position_embeddings=32, type_vocab_size=2,
        layer_norm_eps=1e-12, batch=3, length=19,
    ),
    "erf_three_segments": dict(
        hidden_act="gelu", num_hidden_layers=2, max_position_embeddings=23, type_vocab_size=3,
        layer_norm_eps=1e-5, batch=2, length=23,
    ),
    "relu_long": dict(
        hidden_act="relu", num_hidden_layers=2, max_position_embeddings=130, type_vocab_size=2,
        layer_norm_eps=1e-12, batch=2, length=130,
    ),
}  # fmt: skip
GRADIENTS = (
    "bert.embeddings.word_embeddings.weight",
    "bert.embeddings.position_embeddings.weight",
    "bert.embeddings.token_type_embeddings.weight",
    "bert.embeddings.LayerNorm.weight",
    "bert.encoder.layer.0.attention.self.query.weight",
    "bert.encoder.layer.0.attention.self.value.bias",
    "bert.encoder.layer.1.attention.output.LayerNorm.weight",
    "bert.encoder.layer.1.intermediate.dense.weight",
    "bert.encoder.layer.1.output.dense.bias",
    "bert.pooler.dense.weight",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.bias",
    "cls.seq_relationship.weight",
)


def make(name, batch, length, **settings):
    torch.manual_seed(len(name))
    generator = np.random.default_rng(len(name))
    config = BertConfig(**COMMON, **settings, attn_implementation="eager")
    model = BertForPreTraining(config).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    model = model.double()

    lengths = np.linspace(length // 2, length, batch).astype(int)
    real = np.arange(length) < lengths[:, None]
    token_ids = np.where(real, generator.integers(5, 97, (batch, length)), 0)
    segments = np.arange(length) * settings["type_vocab_size"] // lengths[:, None]
    segment_ids = np.where(real, segments, 0)
    mask_positions = np.stack([np.sort(generator.permutation(n)[:4]) for n in lengths])
    mask_ids = generator.integers(5, 97, (batch, 4))
    mask_weights = np.ones((batch, 4), "float32")
    mask_weights[0, 3] = 0
    pair_labels = np.arange(batch) % 2
    labels = np.full((batch, length), -100)
    for row in range(batch):
        for position, token, weight in zip(mask_positions[row], mask_ids[row], mask_weights[row]):
            if weight:
                labels[row, position] = token

    out = model(
        input_ids=torch.tensor(token_ids),
        token_type_ids=torch.tensor(segment_ids),
        attention_mask=torch.tensor(real.astype("int64")),
        labels=torch.tensor(labels),
        next_sentence_label=torch.tensor(pair_labels),
        output_hidden_states=True,
        output_attentions=True,
    )
    out.loss.backward()
    rows = np.arange(batch)[:, None]
    arrays = {
        "token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real,
        "mask_positions": mask_positions, "mask_ids": mask_ids, "mask_weights": mask_weights,
        "pair_labels": pair_labels,
        "hidden_states": torch.stack(out.hidden_states).detach().numpy(),
        # The first and the last query of the last layer.
        "attention": out.attentions[-1].detach().numpy()[:, :, [0, lengths.min() - 1]],
        "attention_queries": np.array([0, lengths.min() - 1]),
        "pair_logits": out.seq_relationship_logits.detach().numpy(),
        "masked_lm_logits": out.prediction_logits.detach().numpy()[rows, mask_positions],
        "loss": out.loss.detach().numpy(),
    }  # fmt: skip
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    arrays |= {f"weights/{k}": v.numpy() for k, v in model.state_dict().items() if v.is_floating_point()}
    parameters = dict(model.named_parameters())
    arrays |= {f"gradients/{k}": parameters[k].grad.numpy() for k in GRADIENTS}
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    arrays["settings"] = np.array(json.dumps(COMMON | settings))
    return arrays


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, case in CASES.items():
        path = folder / f"bert_{name}.npz"
        np.savez_compressed(path, **make(name, **case))
        print(path, path.stat().st_size)
