"""Writes tests/fixtures/finetuned/*.npz: the heads of Hugging Face's fine-tuned classes on the tiny models of
tests/fixtures/checkpoints, and the logits that transformers computes with them.

Run by hand, in an environment of its own with torch, transformers (5.x was used), sentencepiece:

    python tests/golden/finetuned.py tests/fixtures [family ...]

For each class the file holds, after "<class>/": `config`, the config.json that `save_pretrained` wrote; `names`, the names
of its tensors; `head/<name>`, those that the model in tests/fixtures/checkpoints does not have; the outputs in float64 for
`token_ids`, `segment_ids`, `padding_mask`; of XLNetForQuestionAnswering the logits of the start, of the end after the start
at START, and of the answer class, where only segment 1 and the last token can be in an answer; and for classes that read texts `single_logits` and `pair_logits`, for SINGLE
and PAIR as transformers' tokenizer gives them. GPTs have `ended_logits`, too, of ENDED, whose last token is the padding id.
"""

import inspect
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import transformers
from safetensors.numpy import load_file

SINGLE, PAIR = "the war", ("the war", "a tax")
START = 5
ENDED = ([7, 8, 9, 0], [7, 0, 8, 9], [0, 0, 0, 0])
LABELS = {"SequenceClassification": ("neg", "pos", "LABEL_2"), "TokenClassification": ("B-PER", "I-PER", "O"),
          "QuestionAnswering": None, "QuestionAnsweringSimple": None, "MultipleChoice": None}  # fmt: skip
MOST = ("SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")
FAMILIES = {
    "bert": ("Bert", MOST),
    "roberta": ("Roberta", MOST),
    "albert": ("Albert", MOST),
    "electra": ("Electra", MOST),
    "distilbert": ("DistilBert", MOST),
    "xlnet": ("XLNet", (*MOST, "QuestionAnsweringSimple")),
    "modernbert": ("ModernBert", MOST),
    "gpt2": ("GPT2", ("SequenceClassification", "TokenClassification", "QuestionAnswering")),
    "gpt1": ("OpenAIGPT", ("SequenceClassification",)),
}


def encode(family, folder):
    """[(ids, segments)] of SINGLE and PAIR with the special tokens of the family."""
    if family in ("albert", "xlnet"):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
        single, first, second = (processor.encode(text) for text in (SINGLE, *PAIR))
        if family == "albert":
            return [
                ([2, *single, 3], [0] * (len(single) + 2)),
                ([2, *first, 3, *second, 3], [0] * (len(first) + 2) + [1] * (len(second) + 1)),
            ]
        cls, sep = (processor.piece_to_id(piece) for piece in ("<cls>", "<sep>"))
        return [
            ([*single, sep, cls], [0] * (len(single) + 1) + [2]),
            ([*first, sep, *second, sep, cls], [0] * (len(first) + 1) + [1] * (len(second) + 1) + [2]),
        ]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoded = [tokenizer(SINGLE), tokenizer(*PAIR)]
    return [(e["input_ids"], e.get("token_type_ids", [0] * len(e["input_ids"]))) for e in encoded]


def compute(model, ids, mask, segments):
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(np.asarray(mask).astype("int64"))}
    parameters = inspect.signature(model.forward).parameters
    if "token_type_ids" in parameters and not type(model).__name__.startswith(("Roberta", "GPT2", "OpenAI")):
        inputs["token_type_ids"] = torch.tensor(segments)
    if isinstance(model, transformers.XLNetForQuestionAnswering):
        return compute_joint_spans(model, inputs)
    out = model(**inputs)
    names = ("start_logits", "end_logits") if "start_logits" in out else ("logits",)
    return {name: out[name].detach().numpy().astype("float32") for name in names}


def compute_joint_spans(model, inputs):
    forbidden = 1.0 - (inputs["token_type_ids"] == 1).double()
    forbidden[:, -1] = 0.0
    last = torch.full((len(forbidden),), forbidden.shape[1] - 1)
    hidden = model.transformer(**inputs)[0]
    out = {
        "start_logits": model.start_logits(hidden, p_mask=forbidden),
        "end_logits": model.end_logits(hidden, start_positions=torch.full_like(last, START), p_mask=forbidden),
        "answer_logits": model(**inputs, p_mask=forbidden, cls_index=last).cls_logits,
    }
    return {name: value.detach().numpy().astype("float32") for name, value in out.items()}


def make(family, fixtures):
    folder, (prefix, kinds) = fixtures / "checkpoints" / family, FAMILIES[family]
    base = {name: array for file in folder.glob("*.safetensors") for name, array in load_file(file).items()}
    with np.load(folder / "expected.npz") as file:
        rows = {name: file[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    if family == "xlnet":  # padded on the left: the class reads the last position
        rows = {name: np.stack([np.roll(row, np.sum(~mask)) for row, mask in zip(array, rows["padding_mask"])])
                for name, array in rows.items()}  # fmt: skip
    result, texts = dict(rows), encode(family, folder)
    for kind in kinds:
        torch.manual_seed(7)
        name = f"{prefix}For{kind}"
        settings = {}
        if LABELS[kind]:
            settings = {
                "id2label": dict(enumerate(LABELS[kind])),
                "label2id": {n: i for i, n in enumerate(LABELS[kind])},
            }
        if kind == "SequenceClassification" and family == "distilbert":
            settings = {"num_labels": 1, "problem_type": "regression"}
        if family == "modernbert" and kind == "SequenceClassification":
            settings["classifier_pooling"] = "mean"
        if family.startswith("gpt"):
            settings["pad_token_id"] = 0
        model = getattr(transformers, name).from_pretrained(folder, **settings).eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if key not in base and not any(base_key.endswith(key) for base_key in base):
                    parameter.copy_(0.5 * torch.randn_like(parameter))
        with tempfile.TemporaryDirectory() as saved:
            model.save_pretrained(saved)
            arrays = load_file(Path(saved) / "model.safetensors")
            config = json.loads((Path(saved) / "config.json").read_text())
        result[f"{name}/config"] = np.array(json.dumps(config, sort_keys=True))
        result[f"{name}/names"] = np.array(sorted(arrays))
        for key, array in arrays.items():
            if key not in base or not np.array_equal(base[key], array):
                result[f"{name}/head/{key}"] = array
        model = model.double()
        ids, mask, segments = (rows[key] for key in ("token_ids", "padding_mask", "segment_ids"))
        if kind == "MultipleChoice":  # one question with two options
            ids, mask, segments = ids[None], mask[None], segments[None]
        result |= {f"{name}/{key}": value for key, value in compute(model, ids, mask, segments).items()}
        if kind == "SequenceClassification" and family.startswith("gpt"):
            result[f"{name}/ended_logits"] = compute(model, ENDED, np.ones((3, 4)), None)["logits"]
        if kind == "SequenceClassification":
            for what, (ids, segments) in zip(("single", "pair"), texts):
                logits = compute(model, [ids], [[1] * len(ids)], [segments])["logits"]
                result[f"{name}/{what}_logits"] = logits[0]
    target = fixtures / "finetuned" / f"{family}.npz"
    target.parent.mkdir(exist_ok=True)
    np.savez_compressed(target, **result)
    print(target, target.stat().st_size, sorted(k for k in result if "/head/" in k))


if __name__ == "__main__":
    for family in FAMILIES:
        if family in (sys.argv[2:] or FAMILIES):
            make(family, Path(sys.argv[1]))
