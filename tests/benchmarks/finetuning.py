"""Fine-tuning beside transformers on PyTorch: the same checkpoint, data, batches, rate and epochs; quality and seconds.

    python tests/benchmarks/finetuning.py rte rte/train.tsv rte/dev.tsv --checkpoint MODEL --torch-python PYTHON \
        --seeds 3 --output figures.jsonl

The tasks: rte, mrpc, stsb (GLUE's files), tagging (CoNLL), choices (ARC), squad (version 2.0; f1 and em at the best
threshold, of the questions with and without answer at the threshold 0). MODEL is a Hugging Face directory of a BERT.
Each run is a process of its own, from the files to the metric of the last epoch, and the two libraries take turns. The
seconds are those of the whole process: of the clock, and of the CPU, which count where other work runs beside it. Both
libraries use the cores that the command may use (`taskset -c 0` for one). What is done is in --output, one line a run;
the same command goes on from there, and prints the means and spreads of all that is in it. The files are read by bert_tf
for both.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import cpu

#: Task -> (configuration, settings, the metric).
TASKS = {
    "rte": ("finetune/classification", ["task.preset=rte"], "accuracy"),
    "mrpc": ("finetune/classification", ["task.preset=mrpc"], "f1"),
    "stsb": ("finetune/regression", ["task.preset=stsb"], "spearman"),
    "tagging": ("finetune/tagging", ["data.columns.tag_scheme=conlleval"], "f1"),
    "choices": ("finetune/multiple_choice", ["data.columns.skip_malformed=true"], "accuracy"),
    "squad": ("finetune/published/squad2", [], "best_f1"),
}
#: Of squad, also kept in the file.
MORE = ("best_em", "best_f1_threshold", "has_answer_f1", "no_answer_f1")
LIBRARIES = ("bert_tf", "transformers")


def settings_of(a):
    return [
        *TASKS[a.task][1], f"task.sequence_length={a.length}", f"optimizer.learning_rate={a.rate}", f"train.epochs={a.epochs}",
        f"train.batch_size={a.batch}", f"train.precision={a.precision}", "optimizer.warmup_fraction=0.1",
        "optimizer.weight_decay=0.01", "optimizer.schedule=after", "optimizer.epsilon=1e-8",
    ]  # fmt: skip


def ours(a, seed, folder):
    """The dev metrics after the last epoch."""
    command = [
        sys.executable,
        "-m",
        "bert_tf",
        "finetune",
        "--config",
        TASKS[a.task][0],
        "--init-from",
        str(a.checkpoint),
    ]
    command += ["--train", str(a.train), "--dev", str(a.dev), "--output", str(folder / "run")]
    for setting in [*settings_of(a), f"train.seed={seed}"]:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])


def theirs(a, seed, folder):
    """As `ours`, by finetuning_peer.py, whose predictions are judged by the same scorers."""
    train, dev = (_neutral(a, path, folder / f"{name}.json") for name, path in (("train", a.train), ("dev", a.dev)))
    arguments = {
        "task": a.task, "checkpoint": str(a.checkpoint), "train": str(train), "dev": str(dev), "seed": seed, "rate": a.rate,
        "epochs": a.epochs, "batch": a.batch, "length": a.length, "output": str(folder / "predictions.json"),
    }  # fmt: skip
    peer = Path(__file__).with_name("finetuning_peer.py")
    subprocess.run([a.torch_python, str(peer), json.dumps(arguments)], check=True, stdout=subprocess.DEVNULL)
    rows, predicted = json.loads(dev.read_text()), json.loads((folder / "predictions.json").read_text())
    if a.task == "squad":
        return score_answers([row["answers"] for row in rows], predicted)
    return {TASKS[a.task][2]: score(a.task, [row["label"] for row in rows], predicted)}


def score_answers(answers, predicted):
    from types import SimpleNamespace

    from bert_tf.tasks.spans.scorer import scores_with_impossible

    accepted = [SimpleNamespace(texts=[answer["text"] for answer in one]) for one in answers]
    return scores_with_impossible(
        accepted, [one["text"] for one in predicted], [one["null_odds"] for one in predicted], 0.0
    )


def score(task, labels, predicted):
    from scipy.stats import spearmanr
    from seqeval.metrics import f1_score as entity_f1
    from sklearn.metrics import accuracy_score, f1_score

    if task == "stsb":
        return float(spearmanr(labels, predicted).statistic)
    if task == "tagging":
        return float(entity_f1(labels, predicted))
    return float(f1_score(labels, predicted, pos_label="1") if task == "mrpc" else accuracy_score(labels, predicted))


def _neutral(a, path, target):
    """The examples of a file as a JSON list of {"inputs", "label"}; of squad {"question", "context", "answers"}."""
    if a.task == "squad":
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
        target.write_text(json.dumps([
            {"question": qa["question"], "context": paragraph["context"], "answers": qa["answers"]}
            for paragraph in paragraphs for qa in paragraph["qas"]
        ]))  # fmt: skip
        return target
    from bert_tf.cli.settings import apply_overrides
    from bert_tf.config import build, find, read_yaml
    from bert_tf.tasks.build import build_task
    from bert_tf.tokenizers import load_tokenizer
    from bert_tf.training.finetune_config import FinetuneConfig

    config = build(FinetuneConfig, apply_overrides(read_yaml(find(TASKS[a.task][0])), settings_of(a)))
    examples = build_task(config.task, load_tokenizer(a.checkpoint)).read(path)
    labels = examples.labels
    if a.task == "tagging":
        inputs = examples.words
    elif a.task == "choices":
        inputs = [[question.question, *question.options] for question in examples.details]
        count = statistics.mode(map(len, inputs))  # the collator of transformers needs equal numbers of options
        inputs, labels = zip(*((x, y) for x, y in zip(inputs, labels, strict=True) if len(x) == count))
    else:
        inputs = list(zip(examples.texts, examples.text_pairs))
    target.write_text(json.dumps([{"inputs": x, "label": y} for x, y in zip(inputs, labels, strict=True)]))
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    for name in ("train", "dev"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--torch-python", default=sys.executable, help="the Python that has PyTorch and transformers")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--precision", default="auto", help="of bert_tf; transformers has float32")
    parser.add_argument("--only", choices=LIBRARIES)
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    about = {name: getattr(a, name) for name in ("task", "epochs", "batch", "rate", "length")}
    for seed in range(a.seeds):
        for library, run in zip(LIBRARIES, (ours, theirs)):
            key = about | {"library": library, "seed": seed}
            done = [line for line in _lines(a.output) if key.items() <= line.items()]
            if done or a.only not in (None, library):
                continue
            with tempfile.TemporaryDirectory() as folder:
                start, used = time.perf_counter(), cpu_seconds()
                metrics = run(a, seed, Path(folder))
                spent = {"seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds() - used, "cpu": cpu()}
            metric = metrics[TASKS[a.task][2]]
            more = {name: metrics[name] for name in MORE if name in metrics}
            with open(a.output, "a", encoding="utf-8") as file:
                file.write(json.dumps(key | {"metric": metric} | spent | more) + "\n")
            print(
                f"{a.task}, seed {seed}, {library}: {TASKS[a.task][2]} {metric:.4f}, {spent['seconds']:.0f} s",
                flush=True,
            )
    _print(_lines(a.output))


def cpu_seconds():
    """What all processes that this one started, and that have ended, used of the CPU."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _print(lines):
    print(
        "\n| task | library | metric | mean | spread | seeds | seconds | CPU seconds |\n|---|---|---|---|---|---|---|---|"
    )
    for task in TASKS:
        for library in LIBRARIES:
            found = [line for line in lines if (line["task"], line["library"]) == (task, library)]
            if found:
                values = [100 * line["metric"] for line in found]
                spread = f"{statistics.stdev(values):.1f}" if len(values) > 1 else ""
                seconds = (
                    f"{statistics.median(line[key] for line in found):.0f}" for key in ("seconds", "cpu_seconds")
                )
                cells = (task, library, TASKS[task][2], f"{statistics.mean(values):.1f}", spread, len(values), *seconds)
                print("|", " | ".join(map(str, cells)), "|")


if __name__ == "__main__":
    main()
