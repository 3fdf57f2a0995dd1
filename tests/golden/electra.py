"""Writes tests/fixtures/models/electra_*.npz: small random ELECTRAs as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.x was used):

    python tests/golden/electra.py tests/fixtures/models

Each file holds the configurations of a discriminator and of a generator that uses the same
embeddings, all weights under their published names, the inputs, the tokens that stand for the
generator's samples, and what came out: all hidden states of both, logits, losses, and gradients of
the joint loss (masked LM + 50 x discriminator). Computed in float64 from float32 weights, so that
an error beyond float32 rounding is ours.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining
from transformers.activations import ACT2FN

COMMON = dict(vocab_size=97, initializer_range=0.2)
# embedding_size is the width of the tables; the generator has the discriminator's, and so a
# projection of its own wherever that is not its hidden size.
CASES = {
    "factorized": dict(
        embedding_size=12, hidden_size=24, num_attention_heads=3, intermediate_size=40,
        num_hidden_layers=2, hidden_act="gelu", max_position_embeddings=23, type_vocab_size=2,
        layer_norm_eps=1e-12, batch=3, length=19,
        generator=dict(hidden_size=10, num_attention_heads=5, intermediate_size=28, num_hidden_layers=2),
    ),
    "wide_tables": dict(
        embedding_size=21, hidden_size=21, num_attention_heads=7, intermediate_size=33,
        num_hidden_layers=2, hidden_act="gelu_new", max_position_embeddings=41, type_vocab_size=3,
        layer_norm_eps=1e-5, batch=2, length=41,
        generator=dict(hidden_size=8, num_attention_heads=1, intermediate_size=16, num_hidden_layers=2),
    ),
}  # fmt: skip
GRADIENTS = {
    "discriminator": (
        "electra.embeddings.word_embeddings.weight",
        "electra.embeddings.position_embeddings.weight",
        "electra.embeddings.token_type_embeddings.weight",
        "electra.embeddings.LayerNorm.weight",
        "electra.encoder.layer.0.attention.self.query.weight",
        "electra.encoder.layer.1.output.dense.bias",
        "discriminator_predictions.dense.weight",
        "discriminator_predictions.dense_prediction.weight",
    ),
    "generator": (
        "electra.embeddings_project.weight",
        "electra.encoder.layer.0.attention.self.value.bias",
        "electra.encoder.layer.1.intermediate.dense.weight",
        "generator_predictions.dense.weight",
        "generator_predictions.LayerNorm.bias",
        "generator_lm_head.bias",
    ),
}
LAMBDA = 50


def make(name, batch, length, generator, **settings):
    torch.manual_seed(len(name))
    numbers = np.random.default_rng(len(name))
    settings = COMMON | settings
    discriminator = ElectraForPreTraining(ElectraConfig(**settings, attn_implementation="eager")).eval()
    small = ElectraForMaskedLM(ElectraConfig(**settings | generator, attn_implementation="eager")).eval()
    small.electra.embeddings = discriminator.electra.embeddings
    small.generator_lm_head.weight = small.electra.embeddings.word_embeddings.weight
    # Theirs is the exact GELU whatever hidden_act says; google-research/electra takes hidden_act.
    small.generator_predictions.activation = ACT2FN[settings["hidden_act"]]
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for parameter in {*discriminator.parameters(), *small.parameters()}:
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    discriminator, small = discriminator.double(), small.double()

    lengths = np.linspace(length // 2, length, batch).astype(int)
    real = np.arange(length) < lengths[:, None]
    original = np.where(real, numbers.integers(5, 97, (batch, length)), 0)
    segment_ids = np.where(real, np.arange(length) * settings["type_vocab_size"] // lengths[:, None], 0)
    mask_positions = np.stack([1 + np.sort(numbers.permutation(n - 1)[:5]) for n in lengths])
    mask_weights = np.ones((batch, 5), "float32")
    mask_weights[0, 4] = 0
    rows = np.arange(batch)[:, None]
    mask_ids = original[rows, mask_positions]
    masked, read = original.copy(), original.copy()
    samples = np.where(numbers.random((batch, 5)) < 0.3, mask_ids, numbers.integers(5, 97, (batch, 5)))
    labels = np.full((batch, length), -100)
    for row in range(batch):
        for i in range(5):
            if mask_weights[row, i]:
                place = mask_positions[row, i]
                masked[row, place] = 3 if i else masked[row, place]  # one stays as it is
                read[row, place] = samples[row, i]
                labels[row, place] = mask_ids[row, i]
    inputs = dict(
        token_type_ids=torch.tensor(segment_ids),
        attention_mask=torch.tensor(real.astype("int64")),
        output_hidden_states=True,
    )
    generated = small(input_ids=torch.tensor(masked), labels=torch.tensor(labels), **inputs)
    replaced = torch.tensor((read != original).astype("int64"))
    detected = discriminator(input_ids=torch.tensor(read), labels=replaced, **inputs)
    # Their loss has the same mean over the tokens that are not padding; written out all the same.
    losses = functional.binary_cross_entropy_with_logits(detected.logits, replaced.double(), reduction="none")
    detection = (losses * torch.tensor(real)).sum() / int(real.sum())
    assert abs(float(detection.detach() - detected.loss.detach())) < 1e-6  # theirs is in float32
    (generated.loss + LAMBDA * detection).backward()

    arrays = {
        "token_ids": masked, "segment_ids": segment_ids, "padding_mask": real,
        "mask_positions": mask_positions, "mask_ids": mask_ids, "mask_weights": mask_weights,
        "samples": samples, "read": read, "replaced": read != original,
        "generator_states": torch.stack(generated.hidden_states).detach().numpy(),
        "discriminator_states": torch.stack(detected.hidden_states).detach().numpy(),
        "masked_lm_logits": generated.logits.detach().numpy()[rows, mask_positions],
        "replaced_logits": detected.logits.detach().numpy(),
        "masked_lm_loss": generated.loss.detach().numpy(),
        "discriminator_loss": detection.detach().numpy(),
    }  # fmt: skip
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    for part, model in (("discriminator", discriminator), ("generator", small)):
        shared = [] if part == "discriminator" else [k for k in model.state_dict() if ".embeddings." in k]
        arrays |= {
            f"{part}/{k}": v.numpy()
            for k, v in model.state_dict().items()
            if v.is_floating_point() and k not in shared and k != "generator_lm_head.weight"
        }
        parameters = dict(model.named_parameters())
        arrays |= {f"gradients/{part}/{k}": parameters[k].grad.numpy() for k in GRADIENTS[part]}
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    arrays["settings"] = np.array(json.dumps({"discriminator": settings, "generator": settings | generator}))
    return arrays


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, case in CASES.items():
        path = folder / f"electra_{name}.npz"
        np.savez_compressed(path, **make(name, **case))
        print(path, path.stat().st_size)
