"""Ways to teach a small student: labels alone, the teacher's answers, TinyBERT, MiniLM; with unlabelled text and without.

    python tests/benchmarks/distillation.py stsb --checkpoint MINILM --glue GLUE --corpus TEXTS --output folder
    python tests/benchmarks/distillation.py sentiment --checkpoint MINILM --reviews REVIEWS --corpus TEXTS --output folder

A teacher, --checkpoint fine-tuned on the task with one seed, and students that read its tokens. The metric is that of the
best epoch on the dev file (rte, stsb), or that of the test file at that epoch (sentiment).

  gold       random weights, then the labels
  soft       random weights, then cross-entropy with the teacher's probabilities at temperature 2 (a regression has none)
  squared    random weights, then squared error of the logits
  tinybert   general distillation: hidden states (and attention scores where the heads are as many) of --checkpoint on
             --corpus; then those of the teacher on the texts of the task; then its answers, as in tinybert_prediction
  minilm     general distillation: MiniLMv2's relations of the last layer of --checkpoint on --corpus; then the labels

The last run of each is trained with --seeds, those before it with one. What is unlabelled beside the corpus: of sentiment
all training texts but the first 800, which alone are labelled; of rte the pairs of its test file; of stsb those of its test
file and of mrpc/train.tsv. What is done is kept in the folder, and the same command goes on from there; several can work
in one folder at different tasks. The table of all that is done is printed at the end.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path

METHODS = ("gold", "soft", "squared", "tinybert", "minilm")
#: Of all students; and name -> the sizes of each.
SIZES = {"family": "bert", "activation": "gelu_erf", "initializer_range": 0.05}
STUDENTS = {
    "2x128": {"num_layers": 2, "hidden_size": 128, "num_heads": 2, "intermediate_size": 512},
    "4x192": {"num_layers": 4, "hidden_size": 192, "num_heads": 12, "intermediate_size": 768},
}
#: Task -> settings of the teacher; epochs of a student on labelled text, and on that and unlabelled text; the metric.
TASKS = {
    "sentiment": (
        ["task.kind=classification", "task.sequence_length=64", "optimizer.learning_rate=1e-4", "train.epochs=4"],
        20,
        4,
        "accuracy",
    ),
    "rte": (
        ["task.preset=rte", "task.sequence_length=128", "optimizer.learning_rate=1e-4", "train.epochs=3"],
        4,
        3,
        "accuracy",
    ),
    "stsb": (
        ["task.preset=stsb", "task.sequence_length=128", "optimizer.learning_rate=1e-4", "train.epochs=2"],
        4,
        3,
        "spearman",
    ),
}
FEW = 800


def prepare(a, folder):
    """Writes the files of a task: split -> path, with "unlabelled"."""
    files = {split: folder / f"{split}.tsv" for split in ("train", "dev", "unlabelled")}
    if a.task == "sentiment":
        files["test"] = folder / "test.tsv"
        train, dev, test = (_lines(a.reviews / f"{split}.tsv") for split in ("train", "dev", "test"))
        content = {"train": train[: FEW + 1], "dev": dev, "test": test}
        content["unlabelled"] = [line.split("\t")[0] for line in (train[0], *train[FEW + 1 :])]
    else:
        content = {split: _lines(a.glue / a.task / f"{split}.tsv") for split in ("train", "dev", "test")}
        pairs = _columns(content.pop("test"), "sentence1", "sentence2")
        if a.task == "stsb":
            pairs += _columns(_lines(a.glue / "mrpc" / "train.tsv"), "#1 String", "#2 String")
        content["unlabelled"] = ["sentence1\tsentence2", *("\t".join(pair) for pair in pairs)]
    for name, lines in content.items():
        files[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def teach(a, files, folder):
    """The teacher: the checkpoint, fine-tuned."""
    kind = "regression" if a.task == "stsb" else "classification"
    command = [
        "finetune",
        "--config",
        f"finetune/{kind}",
        "--init-from",
        a.checkpoint,
        *_options(files, "train", "dev", "test"),
    ]
    return bert_tf(a, folder, [*command, *_set(*TASKS[a.task][0])])


def study(a, files, teacher, student, method, unlabelled, folder):
    """Trains a student in one way; returns its folder."""
    settings, few, many, _ = TASKS[a.task]
    length = next(setting for setting in settings if setting.startswith("task.sequence_length"))
    texts = ("train", "dev", "test", *(["unlabelled"] if unlabelled else []))
    epochs = many if unlabelled else few
    common = [length, "optimizer.learning_rate=5e-4", "optimizer.warmup_fraction=0.1"]
    begin = ["distill", "--teacher", teacher, *_set(f"student.model={json.dumps(SIZES | STUDENTS[student])}")]
    answers = {"squared_error": {"mean": "classes"}} if a.task == "stsb" else {"soft_labels": {"temperature": 2}}
    terms = {"gold": {"hard_labels": 1}, "soft": answers, "squared": {"squared_error": {}}}.get(method)
    if method == "minilm":
        begin, terms = ["distill", "--teacher", teacher, "--student", general(a, student, method)], {"hard_labels": 1}
    if method == "tinybert":
        first, taught = folder.with_name(f"{folder.name}-layers"), general(a, student, method)
        settings = _set(f"terms={json.dumps(layers(student, method))}", "train.epochs=2", *common)
        bert_tf(a, first, ["distill", "--teacher", teacher, "--student", taught, *_options(files, *texts), *settings])
        begin = ["distill", "--teacher", teacher, "--student", first]
        terms = answers if a.task == "stsb" else {"soft_labels": {"temperature_squared": False, "mean": "classes"}}
    more = _set(f"terms={json.dumps(terms)}", f"train.epochs={epochs}", f"train.seeds={a.seeds}", *common)
    return bert_tf(a, folder, [*begin, *_options(files, *texts), *more])


def layers(student, method):
    """The terms that compare layers."""
    if method == "minilm":
        return {"minilm2": {"relation_heads": 32 if student == "2x128" else 48}}
    if student == "2x128":
        return {"hidden_states": 1}
    chosen = {"layers": [1, 2, 4, 5]}  # of the teacher's six
    return {"hidden_states": chosen, "attention_scores": chosen}


def general(a, student, method):
    """A student that learned the checkpoint's layers on the corpus, which is not masked; its folder."""
    folder = a.output / "general"
    folder.mkdir(exist_ok=True)
    shards = ["shards", *a.corpus, "--tokenizer", a.checkpoint, "--format", "full_sentences", "--sequence-length", "64"]
    shards = bert_tf(a, folder / "shards", shards)
    command = ["distill", "--config", "distill/minilm", "--teacher", a.checkpoint, "--shards", shards]
    command += _set(f"model={json.dumps(SIZES | STUDENTS[student])}", f"terms={json.dumps(layers(student, method))}")
    command += _set(
        f"train.steps={a.steps}", "train.batch_size=32", "optimizer.learning_rate=1e-3", "optimizer.warmup_steps=150"
    )
    return bert_tf(a, folder / f"{student}-{method}", command)


def bert_tf(a, folder, arguments):
    """Runs a command, unless it is done."""
    done = folder.with_name(f"{folder.name}.done")
    if not done.exists():
        command = [sys.executable, "-m", "bert_tf", *map(str, arguments), "--output", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        done.touch()
    return folder


def _set(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def _options(files, *splits):
    return [word for split in splits if split in files for word in (f"--{split}", files[split])]


def _lines(path):
    return path.read_text(encoding="utf-8-sig").splitlines()


def _columns(lines, *names):
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [tuple(row[name] for name in names) for row in rows]


def numbers(run, metric):
    """The metric of each seed in percent, of the test file where there is one."""
    summary = json.loads((run / "summary.json").read_text())
    return [100 * seed.get("test", seed["dev"])[metric] for seed in summary["seeds"]]


def show(output):
    print(
        "\n| task | student | method | unlabelled | mean | spread | of the teacher's | times as fast |\n|---|---|---|---|---|---|---|---|"
    )
    for path in sorted(output.glob("*/*.json")):
        cell = json.loads(path.read_text())
        mean, spread = (
            statistics.mean(cell["seeds"]),
            statistics.stdev(cell["seeds"]) if len(cell["seeds"]) > 1 else 0.0,
        )
        kept = f"{100 * mean / cell['teacher']:.0f} %"
        names = (cell["task"], cell["student"], cell["method"], "yes" if cell["unlabelled"] else "no")
        print("|", " | ".join((*names, f"{mean:.1f}", f"{spread:.1f}", kept, f"{cell['speed']:.1f}")), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--glue", type=Path, help="folder with rte/, stsb/ and mrpc/")
    parser.add_argument("--reviews", type=Path, help="folder with train.tsv, dev.tsv and test.tsv")
    parser.add_argument("--corpus", type=Path, nargs="+", help="text files, of the general distillation")
    parser.add_argument(
        "--steps", type=int, default=1500, help="updates of 32 rows of 64 tokens, of the general distillation"
    )
    parser.add_argument("--students", nargs="+", choices=STUDENTS, default=list(STUDENTS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--unlabelled", nargs="+", choices=("no", "yes"), default=["no", "yes"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    folder, metric = a.output / a.task, TASKS[a.task][3]
    folder.mkdir(parents=True, exist_ok=True)
    files = prepare(a, folder)
    teacher = teach(a, files, folder / "teacher")
    for unlabelled in (value == "yes" for value in a.unlabelled):
        for student in a.students:
            for method in a.methods:
                if (method in ("gold", "minilm") and unlabelled) or (method == "soft" and a.task == "stsb"):
                    continue
                name = f"{student}-{method}{'-unlabelled' if unlabelled else ''}"
                if (folder / f"{name}.json").exists():
                    continue
                run = study(a, files, teacher, student, method, unlabelled, folder / name)
                rows = {row["model"]: row for row in json.loads((run / "distillation.json").read_text())["rows"]}
                speed = rows["student"]["texts_per_second"] / rows["teacher"]["texts_per_second"]
                cell = {"task": a.task, "student": student, "method": method, "unlabelled": unlabelled}
                cell |= {"seeds": numbers(run, metric), "teacher": numbers(teacher, metric)[0], "speed": speed}
                (folder / f"{name}.json").write_text(json.dumps(cell) + "\n")
                print(cell, flush=True)
    show(a.output)


if __name__ == "__main__":
    main()
