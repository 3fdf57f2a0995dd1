"""What `finetuning.py` measures beside bert_tf: the Trainer of transformers on PyTorch, with its own collators."""

import json
import os
import sys

import numpy as np
import torch
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
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
        dict(tokenizer(*row["inputs"], truncation=True, max_length=length)) | {"label": labels(row["label"])}
        for row in rows
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


#: The defaults of `run_qa.py`. Its stride is what two windows share, bert_tf's how far they are apart.
STRIDE, LONGEST_ANSWER, BEST = 128, 30, 20


def windows(tokenizer, rows, length):
    """The windows of all questions, as in `run_qa.py`: {"row", "offsets" (None outside of the context), inputs}."""
    encoded = tokenizer(
        [row["question"].lstrip() for row in rows], [row["context"] for row in rows], truncation="only_second", max_length=length,
        stride=STRIDE, return_overflowing_tokens=True, return_offsets_mapping=True,
    )  # fmt: skip
    found = []
    for index, row in enumerate(encoded["overflow_to_sample_mapping"]):
        sequence = encoded.sequence_ids(index)
        offsets = [o if s == 1 else None for o, s in zip(encoded["offset_mapping"][index], sequence)]
        inputs = {name: encoded[name][index] for name in tokenizer.model_input_names}
        found.append({"row": row, "offsets": offsets, "inputs": inputs})
    return found


def of_questions(tokenizer, rows, labels, length):
    found = []
    for window in windows(tokenizer, rows, length):
        answers, offsets = rows[window["row"]]["answers"], window["offsets"]
        context = [i for i, offset in enumerate(offsets) if offset is not None]
        start = end = 0  # [CLS]: no answer in this window
        if answers:
            begin, stop = answers[0]["answer_start"], answers[0]["answer_start"] + len(answers[0]["text"])
            if offsets[context[0]][0] <= begin and offsets[context[-1]][1] >= stop:
                start = max(i for i in context if offsets[i][0] <= begin)
                end = min(i for i in context if offsets[i][1] >= stop)
        found.append(window["inputs"] | {"start_positions": start, "end_positions": end})
    return found


def answers(tokenizer, rows, logits, length):
    """`postprocess_qa_predictions` of transformers' `utils_qa.py`: the best span over all windows, and the odds of none."""
    starts, ends = logits[:2]
    found = [{"text": "", "null_odds": 0.0, "score": -np.inf, "null": np.inf} for _ in rows]
    for window, start, end in zip(windows(tokenizer, rows, length), starts, ends):
        best, offsets = found[window["row"]], window["offsets"]
        best["null"] = min(best["null"], float(start[0] + end[0]))
        start, end = start[: len(offsets)], end[: len(offsets)]  # without the padding of its batch
        for i in np.argsort(start)[: -BEST - 1 : -1]:
            for j in np.argsort(end)[: -BEST - 1 : -1]:
                if offsets[i] is None or offsets[j] is None or not i <= j < i + LONGEST_ANSWER:
                    continue
                if start[i] + end[j] > best["score"]:
                    text = rows[window["row"]]["context"][offsets[i][0] : offsets[j][1]]
                    best |= {"score": float(start[i] + end[j]), "text": text}
    return [{"text": one["text"], "null_odds": one["null"] - one["score"]} for one in found]


def main():
    a = json.loads(sys.argv[1])
    set_seed(a["seed"])
    train, dev = (json.loads(open(a[name], encoding="utf-8").read()) for name in ("train", "dev"))
    tokenizer = AutoTokenizer.from_pretrained(a["checkpoint"])
    encode, cls, collator = {
        "tagging": (of_words, AutoModelForTokenClassification, DataCollatorForTokenClassification),
        "choices": (of_options, AutoModelForMultipleChoice, DataCollatorForMultipleChoice),
        "squad": (of_questions, AutoModelForQuestionAnswering, DataCollatorWithPadding),
    }.get(a["task"], (of_pairs, AutoModelForSequenceClassification, DataCollatorWithPadding))
    options, names = {}, None
    if a["task"] == "stsb":
        options, number = {"num_labels": 1, "problem_type": "regression"}, float
    elif a["task"] in ("choices", "squad"):
        number = int
    else:
        labels = [label for row in train for label in (row["label"] if a["task"] == "tagging" else [row["label"]])]
        names = sorted(set(labels))
        options, number = {"num_labels": len(names)}, lambda label: names.index(label) if label in names else 0
    model = cls.from_pretrained(a["checkpoint"], **options)
    arguments = TrainingArguments(
        output_dir=a["output"] + ".trainer", per_device_train_batch_size=a["batch"], per_device_eval_batch_size=64,
        learning_rate=a["rate"], num_train_epochs=a["epochs"], warmup_steps=0.1, weight_decay=0.01, seed=a["seed"],
        lr_scheduler_type="linear", save_strategy="no", report_to=[], disable_tqdm=True,
        use_cpu=a.get("cpu", True), dataloader_pin_memory=False,
    )  # fmt: skip
    rows = encode(tokenizer, train, number, a["length"])
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collator(tokenizer))
    trainer.train()
    encoded = encode(tokenizer, dev, number, a["length"])
    logits = trainer.predict(encoded).predictions
    with open(a["output"], "w", encoding="utf-8") as file:
        if a["task"] == "squad":
            json.dump(answers(tokenizer, dev, logits, a["length"]), file)
        else:
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
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    main()
