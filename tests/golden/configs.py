"""Writes tests/fixtures/checkpoints/configs.json: the configurations that transformers makes, and what its models compute.

Run by hand, in an environment of its own with torch and transformers (5.24 was used):

    python tests/golden/configs.py tests/fixtures/checkpoints/configs.json

For each family a small configuration, and the same with each setting changed once: what `save_pretrained` writes (the
changed ones as differences from the first, None for a key that is gone), and logits of the language model and of the
classifier, where a family has one, whose weights are `weight(name, shape)`; "same" where they are those of the first.
Settings that transformers itself refuses, or that its model cannot be made with, are left out.
"""

import json
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers as hf

SIZES = {
    "vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 20,
    "max_position_embeddings": 32,
}  # fmt: skip
GPT = {"vocab_size": 40, "n_embd": 24, "n_layer": 3, "n_head": 3, "n_positions": 32}
T5 = {
    "vocab_size": 40,
    "d_model": 24,
    "d_kv": 10,
    "d_ff": 20,
    "num_layers": 3,
    "num_heads": 3,
    "decoder_start_token_id": 0,
}
XLNET = {"vocab_size": 40, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 20}
DISTILBERT = {"vocab_size": 40, "dim": 24, "n_layers": 3, "n_heads": 3, "hidden_dim": 20, "max_position_embeddings": 32}
TOKENS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
#: Family -> the beginning of its classes, settings, and the ends of the classes of its language model and classifier.
MASKED, CAUSAL, TEXT = "ForMaskedLM", "LMHeadModel", "ForConditionalGeneration"
CLASSIFIER = "ForSequenceClassification"
FAMILIES = {
    "bert": ("Bert", SIZES, MASKED, CLASSIFIER),
    "roberta": ("Roberta", SIZES, MASKED, CLASSIFIER),
    "albert": ("Albert", SIZES | {"embedding_size": 16}, MASKED, CLASSIFIER),
    "electra": ("Electra", SIZES | {"embedding_size": 16}, MASKED, CLASSIFIER),
    "distilbert": ("DistilBert", DISTILBERT, MASKED, CLASSIFIER),
    "modernbert": ("ModernBert", SIZES | TOKENS | {"local_attention": 4}, MASKED, CLASSIFIER),
    "xlnet": ("XLNet", XLNET, CAUSAL, CLASSIFIER),
    "gpt1": ("OpenAIGPT", GPT, CAUSAL, CLASSIFIER),
    "gpt2": ("GPT2", GPT | {"bos_token_id": 0, "eos_token_id": 0}, CAUSAL, CLASSIFIER),
    "t5": ("T5", T5, TEXT, None),
    "t5_1_1": ("T5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, TEXT, None),
    "mt5": ("MT5", T5 | {"feed_forward_proj": "gated-gelu"}, TEXT, None),
    "t5_encoder": ("T5", T5, "EncoderModel", "ForTokenClassification"),
}
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_10", "quick_gelu", "relu", "relu6", "silu", "swish",
               "tanh", "linear", "mish", "sigmoid")  # fmt: skip
#: Setting -> the values it is changed to, where a rule of thumb will not do.
OTHERS = {
    **dict.fromkeys(
        ("hidden_act", "ff_activation", "afn", "activation_function", "activation", "hidden_activation"), ACTIVATIONS
    ),
    **dict.fromkeys(("summary_activation", "classifier_activation"), ("tanh", "gelu", "relu")),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), (4,)),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim"), (36,)),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), (2,)),
    **dict.fromkeys(("summary_type",), ("first", "mean", "last", "cls_index")),
    **dict.fromkeys(("layer_norm_eps", "layer_norm_epsilon", "norm_eps"), (1e-3,)),
    "attn_type": ("uni",),
    "classifier_dropout": (0.25,),
    "classifier_pooling": ("mean",),
    "clamp_len": (2,),
    "d_head": (6, 8),
    "dense_act_fn": ("relu", "gelu", "gelu_new", "silu", "mish"),
    "feed_forward_proj": ("relu", "gelu", "silu", "gated-gelu", "gated-silu", "gated-relu", "gated-gelu_new"),
    "id2label": ({0: "no", 1: "maybe", 2: "yes"},),
    "label2id": ({"no": 0, "yes": 1},),
    "layer_types": (["full_attention", "sliding_attention", "full_attention"], ["sliding_attention"] * 3),
    "n_inner": (20,),
    "num_hidden_groups": (3,),
    "num_labels": (1, 3),
    "pad_token_id": (5, None),
    "position_embedding_type": ("relative_key",),
    "problem_type": ("regression", "single_label_classification", "multi_label_classification"),
    "pruned_heads": ({0: [1]},),
    "rope_parameters": (
        {"full_attention": {"rope_type": "default", "rope_theta": 50.0}},
        {"sliding_attention": {"rope_type": "default", "rope_theta": 50.0}},
        {"full_attention": {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0}},
    ),
    "tie_encoder_decoder": (True,),
    "type_vocab_size": (3,),
    "vocab_size": (44,),
}
#: Of the file, not of the model.
NOT_CHANGED = ("architectures", "dtype", "model_type", "transformers_version", "is_encoder_decoder")
ENCODER_ONLY = ("is_decoder", "add_cross_attention")
IDS, SEGMENTS, DECODER_IDS = [[7, 3, 1, 9, 12, 5]], [[0, 0, 0, 1, 1, 1]], [[0, 4, 8]]


def weight(name, shape):
    """The weights of a tensor, from its name."""
    values = np.random.default_rng(zlib.crc32(name.encode())).normal(size=shape)
    return (0.3 * values + (values.ndim == 1)).astype("float32")


def logits(name, config):
    """The first logits of a model of this class at three positions, and its configuration as it is saved."""
    torch.manual_seed(0)
    model = getattr(hf, name)._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weight(path, tuple(parameter.shape))))
    inputs = {"input_ids": torch.tensor(IDS)}
    if name.startswith(("Bert", "Albert", "Electra", "XLNet")):
        inputs["token_type_ids"] = torch.tensor(SEGMENTS)
    if name.endswith(TEXT):
        inputs["decoder_input_ids"] = torch.tensor(DECODER_IDS)
    with torch.no_grad():
        found = model.double()(**inputs)[0].reshape(-1, model.double()(**inputs)[0].shape[-1]).numpy()
    with tempfile.TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        saved = json.loads((Path(folder) / "config.json").read_text())
    saved = {"architectures": [name]} | saved
    del saved["transformers_version"]
    return [[float(f"{x:.7g}") for x in row] for row in found[[0, len(found) // 2, -1]][:, :4]], saved


def make(family, changes):
    prefix, settings, language_model, classifier = FAMILIES[family]
    found = {}
    for key, ending in (("lm", language_model), ("classifier", classifier)):
        if ending is not None:
            config = getattr(hf, f"{prefix}Config")(**settings | changes)
            found[key], found[f"{key}_config"] = logits(prefix + ending, config)
    return found


def others(key, value):
    if key in OTHERS:
        return [other for other in OTHERS[key] if other != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 2]
    if isinstance(value, float):
        return [value / 2 if value else 0.25]
    return [3, True]


def difference(saved, first):
    return {k: saved.get(k) for k in sorted(saved | first) if saved.get(k, ...) != first.get(k, ...)}


def cases(family):
    first = make(family, {})
    result = {"": first}
    prefix, settings, *_ = FAMILIES[family]
    known = getattr(hf, f"{prefix}Config")(**settings).to_dict() | {
        "num_labels": 2,
        "position_embedding_type": "absolute",
    }
    for key in sorted(known):
        if key in NOT_CHANGED or key.startswith("_"):
            continue
        for other in others(key, known[key]):
            try:
                found = make(family, {key: other})
            except Exception as error:
                print(family, key, other, "is not made:", type(error).__name__, str(error)[:80].replace("\n", " "))
                continue
            case = {}
            for part in ("lm", "classifier"):
                if part in found:
                    case[part] = "same" if found[part] == first[part] else found[part]
            case["config"] = difference(found["lm_config"], first["lm_config"])
            result[f"{key}={json.dumps(other)}"] = case
    return result


if __name__ == "__main__":
    table = {family: cases(family) for family in FAMILIES}
    lines = [
        f"{json.dumps(family)}: {{\n"
        + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        + "\n}"
        for family, found in table.items()
    ]
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print({family: len(found) for family, found in table.items()}, Path(sys.argv[1]).stat().st_size)
