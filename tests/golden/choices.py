"""Writes tests/fixtures/models/choices_{bert,gpt1}.npz: small random models of multiple choice as Hugging Face computes them.

Run by hand, in an environment of its own with torch and transformers (5.23 was used):

    python tests/golden/choices.py tests/fixtures/models

BertForMultipleChoice, and OpenAIGPTDoubleHeadsModel read at the last token of each option. Each file holds the
configuration, all weights under their published names, the inputs, the logits of the options, the loss, and of GPT-1 the
language modelling loss as openai/finetune-transformer-lm has it: a mean over the tokens of each row, then over all rows.
Computed in float64 from float32 weights.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

QUESTIONS, OPTIONS, LENGTH, VOCABULARY = 3, 4, 11, 37
SIZES = {
    "bert": dict(
        vocab_size=VOCABULARY, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        max_position_embeddings=13, type_vocab_size=2, hidden_act="gelu", initializer_range=0.2,
    ),
    "gpt1": dict(
        vocab_size=VOCABULARY, n_embd=24, n_head=3, n_layer=2, n_positions=13, initializer_range=0.2,
        summary_first_dropout=0.0,
    ),
}  # fmt: skip
CLASSES = {"bert": ("BertConfig", "BertForMultipleChoice"), "gpt1": ("OpenAIGPTConfig", "OpenAIGPTDoubleHeadsModel")}


def make(name):
    torch.manual_seed(len(name))
    generator = np.random.default_rng(len(name))
    config_class, model_class = (getattr(transformers, part) for part in CLASSES[name])
    config = config_class(**SIZES[name], attn_implementation="eager")
    model = model_class(config).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh scales 1, which would hide mistakes
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    model = model.double()

    shape = (QUESTIONS, OPTIONS, LENGTH)
    lengths = generator.integers(5, LENGTH + 1, shape[:2])[..., None]
    real = np.arange(LENGTH) < lengths
    token_ids = np.where(real, generator.integers(1, VOCABULARY, shape), 0)
    segment_ids = np.where(real & (np.arange(LENGTH) >= lengths // 2), 1, 0)
    labels = generator.integers(0, OPTIONS, QUESTIONS)
    inputs = {"input_ids": torch.tensor(token_ids)}
    arrays = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real, "labels": labels}
    if name == "bert":
        masks = {"attention_mask": torch.tensor(real.astype("int64")), "token_type_ids": torch.tensor(segment_ids)}
        out = model(**inputs, **masks, labels=torch.tensor(labels))
        arrays |= {"logits": out.logits, "loss": out.loss}
    else:  # padding on the right, which no real token sees
        out = model(**inputs, mc_token_ids=torch.tensor(lengths[..., 0] - 1), mc_labels=torch.tensor(labels))
        targets = torch.tensor(np.where(real, token_ids, -100))[..., 1:].reshape(-1, LENGTH - 1)
        logits = out.logits[:, :, :-1].reshape(-1, LENGTH - 1, VOCABULARY)
        each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        lm_loss = (each.sum(1) / torch.tensor(lengths.reshape(-1) - 1)).mean()
        arrays |= {"logits": out.mc_logits, "loss": out.mc_loss, "lm_loss": lm_loss}
    arrays = {k: v.detach().numpy() if isinstance(v, torch.Tensor) else v for k, v in arrays.items()}
    arrays |= {f"weights/{k}": v.numpy() for k, v in model.state_dict().items() if v.is_floating_point()}
    arrays = {k: v.astype("int16") if v.dtype == "int64" else v for k, v in arrays.items()}
    arrays = {k: v.astype("float32") if v.dtype == "float64" else v for k, v in arrays.items()}
    written = {k: v for k, v in config.to_dict().items() if k not in ("id2label", "label2id")}
    return arrays | {"config": np.array(json.dumps(written))}


if __name__ == "__main__":
    for name in SIZES:
        path = Path(sys.argv[1]) / f"choices_{name}.npz"
        np.savez_compressed(path, **make(name))
        print(path, path.stat().st_size)
