"""What `finetuning.py` measures beside bert_tf: the Trainer of transformers on PyTorch, with its own collators."""

import json
import sys

import numpy as np
import torch
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForMultipleChoice,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)


def of_pairs(tokenizer, rows, labels, length):
    return [
        dict(tokenizer(*row["inputs"], truncation=True, max_length=length)) | {"label": labels(row["label"])} for row in rows
    ]


def of_options(tokenizer, rows, labels, length):
    found = []
    for row in rows:
        question, *options = row["inputs"]
        encoded = tokenizer([question] * len(options), options, truncation=True, max_length=length)
        found.append(dict(encoded) | {"label": labels(row["label"])})
    return found


def of_words(tokenizer, rows, labels, length):
    """The first token of a word has its tag, as in `run_ner.py`."""
    found = []
    for row in rows:
        encoded = tokenizer(row["inputs"], is_split_into_words=True, truncation=True, max_length=length)
        words, tags = encoded.word_ids(), []
        for before, word in zip([None, *words], words):
            tags.append(-100 if word is None or word == before else labels(row["label"][word]))
        found.append(dict(encoded) | {"labels": tags})
    return found


def main():
    a = json.loads(sys.argv[1])
    set_seed(a["seed"])
    train, dev = (json.loads(open(a[name], encoding="utf-8").read()) for name in ("train", "dev"))
    tokenizer = AutoTokenizer.from_pretrained(a["checkpoint"])
    encode, cls, collator = {
        "tagging": (of_words, AutoModelForTokenClassification, DataCollatorForTokenClassification),
        "choices": (of_options, AutoModelForMultipleChoice, DataCollatorForMultipleChoice),
    }.get(a["task"], (of_pairs, AutoModelForSequenceClassification, DataCollatorWithPadding))
    options, names = {}, None
    if a["task"] == "stsb":
        options, number = {"num_labels": 1, "problem_type": "regression"}, float
    elif a["task"] == "choices":
        number = int
    else:
        labels = [label for row in train for label in (row["label"] if a["task"] == "tagging" else [row["label"]])]
        names = sorted(set(labels))
        options, number = {"num_labels": len(names)}, lambda label: names.index(label) if label in names else 0
    model = cls.from_pretrained(a["checkpoint"], **options)
    arguments = TrainingArguments(
        output_dir=a["output"] + ".trainer", per_device_train_batch_size=a["batch"], per_device_eval_batch_size=64,
        learning_rate=a["rate"], num_train_epochs=a["epochs"], warmup_steps=0.1, weight_decay=0.01, seed=a["seed"],
        lr_scheduler_type="linear", save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
        dataloader_pin_memory=False,
    )  # fmt: skip
    rows = encode(tokenizer, train, number, a["length"])
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collator(tokenizer))
    trainer.train()
    encoded = encode(tokenizer, dev, number, a["length"])
    logits = trainer.predict(encoded).predictions
    with open(a["output"], "w", encoding="utf-8") as file:
        json.dump(predictions(a["task"], logits, encoded, dev, names), file)


def predictions(task, logits, encoded, rows, names):
    if task == "stsb":
        return [float(x) for x in np.squeeze(logits, -1)]
    best = np.argmax(logits, -1)
    if task == "choices":
        return best.tolist()
    if task != "tagging":
        return [names[i] for i in best]
    found = []
    for line, one, row in zip(best, encoded, rows):
        tags = [names[i] for i, label in zip(line, one["labels"]) if label != -100]
        found.append(tags + ["O"] * (len(row["label"]) - len(tags)))  # words beyond the length
    return found


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
