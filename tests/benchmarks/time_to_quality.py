"""What each library learns from the same text in the same time: held-out masked LM loss, parts of speech, sentiment.

    python tests/benchmarks/time_to_quality.py train.jsonl held_out.jsonl --tokenizer TOKENIZER --minutes 8 30 \
        --torch-python PYTHON --garden-python PYTHON --output FOLDER \
        --parts-of-speech train.conll dev.conll --tags labels.yaml --sentiment train.tsv dev.tsv

bert_tf is `bert-tf pretrain` with --config. The peers train a BERT of --layers and --hidden-size with their own model,
masking, loss and loop (`time_to_quality_peers.py`), at the same rate of 15 % and with a learning rate that rises and
falls with the time. All get the text as rows of token ids of the same WordPiece vocabulary: the time for that is not
counted. The clock runs from the start of the program to its last update.

All models then go the same way through bert_tf: the masked LM loss on the held-out rows, with 15 % masked, and two tasks,
fine-tuned with three seeds, each with the better of two learning rates on the dev file. What is done is in --output; the
same command goes on from there.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from side_by_side import cpu

PEERS = ("KerasHub", "Model Garden", "transformers")
TASKS = {"parts_of_speech": ("finetune/tagging", "accuracy"), "sentiment": ("finetune/classification", "accuracy")}
RATES = (5e-4, 1e-3)


def bert_tf(*arguments, **settings):
    command = [sys.executable, "-m", "bert_tf", *map(str, arguments)]
    for name, value in settings.items():
        command += ["--set", f"{name.replace('__', '.')}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def write_rows(a):
    """The shards of both texts, and rows.npy for the peers: int32 [N, L], padded."""
    from bert_tf.tokenizers import load_tokenizer
    from tfrecords import ShardReader

    for name, text in (("train", a.text), ("held_out", a.held_out)):
        if not (a.output / name).exists():
            packing = ["--format", "full_sentences", "--sequence-length", a.length]
            bert_tf("shards", text, "--tokenizer", a.tokenizer, "--output", a.output / name, *packing)
    tokenizer = load_tokenizer(a.tokenizer)
    if not (a.output / "rows.npy").exists():
        batches = ShardReader(a.output / "train", tokenizer).dataset(256, seed=0, epochs=1, drop_remainder=False)
        batches = [batch["token_ids"].numpy() for batch in batches]
        rows = np.full((sum(map(len, batches)), a.length), tokenizer.pad_id, np.int32)
        start = 0
        for batch in batches:
            rows[start : start + len(batch), : batch.shape[1]] = batch
            start += len(batch)
        np.save(a.output / "rows.npy", rows)
    return tokenizer


def train_ours(a, minutes, folder):
    """As many updates as fit, by the rate of a first run of some seconds, which is not counted: (updates, seconds)."""
    common = {"data__shards": a.output / "train", "train__log_every": 10, "train__checkpoint_every": 10**9}
    bert_tf("pretrain", "--config", a.config, "--output", folder / "rate", train__steps=200, **common)
    lines = [json.loads(line) for line in (folder / "rate" / "metrics.jsonl").read_text().splitlines()]
    rate = np.median(
        [line["tokens_per_second"] for line in lines if line["step"] > 100 and "tokens_per_second" in line]
    )
    from bert_tf import config
    from bert_tf.training.pretrain_config import PretrainConfig

    tokens = config.load(PretrainConfig, a.config, {"data": {"shards": "shards"}}).train.batch_size * a.length
    steps = int((60 * minutes - a.start_up) * rate / tokens)
    common |= {"train__log_every": 100}
    start = time.perf_counter()
    bert_tf("pretrain", "--config", a.config, "--output", folder / "model", train__steps=steps, **common)
    return steps, time.perf_counter() - start


def train_peer(a, name, tokenizer, minutes, folder):
    """(updates, seconds)."""
    settings = {
        "rows": str(a.output / "rows.npy"), "vocabulary": str(Path(a.tokenizer) / "vocab.txt"), "seconds": 60 * minutes,
        "pad": tokenizer.pad_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id, "mask": tokenizer.mask_id,
        "vocabulary_size": tokenizer.vocabulary_size, "output": str(folder / "model"), "layers": a.layers,
        "hidden_size": a.hidden_size, "heads": a.hidden_size // 64, "batch": a.batch, "learning_rate": a.learning_rate,
    }  # fmt: skip
    python = {"Model Garden": a.garden_python, "transformers": a.torch_python}.get(name, sys.executable)
    program = str(Path(__file__).with_name("time_to_quality_peers.py"))
    start = time.perf_counter()
    subprocess.run([python, program, name, json.dumps(settings)], check=True, stdout=sys.stderr)
    return json.loads((folder / "model" / "updates.json").read_text()), time.perf_counter() - start


def judge(a, folder):
    """Held-out loss and tasks of the model in folder/model."""
    import bert_tf
    from tfrecords import MaskedLMCorruption, MaskingConfig, ShardReader

    model = folder / "model"
    opened = bert_tf.load(model)
    objective, tokenizer = opened.objective, opened.tokenizer
    objective.compile()
    reader = ShardReader(a.output / "held_out", tokenizer)
    corrupt = MaskedLMCorruption(tokenizer, MaskingConfig())
    held_out = reader.dataset(32, seed=0, epochs=1, shuffle=False, drop_remainder=False, corrupt=corrupt)
    metrics = objective.evaluate(held_out, verbose=0, return_dict=True)
    found = {"loss": metrics["masked_lm_loss"], "accuracy": metrics["masked_lm_accuracy"]}
    for task, (config, metric) in TASKS.items():
        files = getattr(a, task)
        if files:
            means = []
            for rate in RATES:
                run = folder / f"{task}-{rate}"
                data = ["--train", files[0], "--dev", files[1], "--init-from", model, "--output", run]
                more = {"task__labels": a.tags.read_text()} if a.tags and task == "parts_of_speech" else {}
                bert_tf("finetune", "--config", config, *data, optimizer__learning_rate=rate, train__seeds=3, **more)
                dev = json.loads((run / "summary.json").read_text())["dev"]
                means.append((dev["mean"][metric], dev["spread"][metric]))
            found[task] = max(means)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("held_out", type=Path)
    parser.add_argument("--tokenizer", required=True, help="a WordPiece vocabulary")
    parser.add_argument("--minutes", nargs="+", type=float, default=[8, 30])
    parser.add_argument("--only", nargs="+", choices=("bert_tf", *PEERS))
    parser.add_argument("--config", default="pretrain/bert_laptop", help="of bert_tf")
    parser.add_argument("--start-up", type=float, default=20, help="seconds before the first update of bert_tf")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden-size", type=int, default=256)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of the peers")
    parser.add_argument("--parts-of-speech", nargs=2, metavar=("TRAIN", "DEV"))
    parser.add_argument(
        "--tags", type=Path, help="YAML list of all tags, where --parts-of-speech has some in DEV alone"
    )
    parser.add_argument("--sentiment", nargs=2, metavar=("TRAIN", "DEV"))
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--garden-python", default=sys.executable)
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    tokenizer = write_rows(a)
    for minutes in a.minutes:
        for name in a.only or ("bert_tf", *PEERS):
            folder = a.output / f"{name.replace(' ', '_')}-{minutes:g}"
            trained, judged = folder / "trained.json", folder / "judged.json"
            if not trained.exists():
                folder.mkdir(exist_ok=True)
                if name == "bert_tf":
                    updates, seconds = train_ours(a, minutes, folder)
                else:
                    updates, seconds = train_peer(a, name, tokenizer, minutes, folder)
                trained.write_text(json.dumps({"updates": updates, "seconds": seconds, "cpu": cpu()}))
            if not judged.exists():
                judged.write_text(json.dumps(judge(a, folder)))
    show(a)


def show(a):
    columns = ["library", "minutes", "seconds", "updates", "held-out loss", "accuracy", *TASKS]
    print("|", " | ".join(columns), "|")
    print("|---" * len(columns) + "|")
    for minutes in a.minutes:
        for name in ("bert_tf", *PEERS):
            folder = a.output / f"{name.replace(' ', '_')}-{minutes:g}"
            if (folder / "judged.json").exists():
                trained, found = (json.loads((folder / file).read_text()) for file in ("trained.json", "judged.json"))
                cells = [name, f"{minutes:g}", f"{trained['seconds']:.0f}", trained["updates"]]
                cells += [f"{found['loss']:.3f}", f"{100 * found['accuracy']:.1f}"]
                cells += [f"{100 * found[t][0]:.1f} ± {100 * found[t][1]:.1f}" if t in found else "" for t in TASKS]
                print("|", " | ".join(map(str, cells)), "|")


if __name__ == "__main__":
    main()
