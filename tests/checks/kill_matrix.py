"""Whether runs that are killed at random moments go on as if nothing had been.

    python tests/checks/kill_matrix.py [--kills 10] [--seed 0] [--places one remat mirrored multi_worker finetune]
        [--resume-with 2 1 4]

In each place a tiny run is left alone once, and then killed `--kills` times, each time in a folder of
its own: by SIGKILL from inside at one of its moments (a step done, a file about to be written, renamed or
removed, half a line of metrics, half a file of a checkpoint), or from outside at any time. Four in ten
moments are of a checkpoint being saved; three in ten runs are ended by Ctrl-C or SIGTERM at any time, which
they answer themselves; every fourth run is killed again when it goes on. Of several
workers all are killed, or the chief alone, or another alone, and then it says how long the survivor
took to end. What comes out must be what the run left alone came to, bit by bit. `--resume-with` lets the killed
runs of several workers go on with these numbers of workers in turn; with another number than before, the steps
must be the same ones and the losses equal to 1e-5. Then the model has no dropout, whose masks hang on the replica.

A kill takes some ten seconds on two cores: with what is preset, ten minutes.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

STEPS = 12
MODEL = {
    "family": "bert",
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 32,
    "max_positions": 32,
}
PLACES = {"one": 1, "remat": 1, "mirrored": 1, "multi_worker": 2, "finetune": 1}  # and how many processes
PATIENCE = 300  # seconds for whatever should end by itself
processes = multiprocessing.get_context("forkserver")


class Moments:
    """Counts and names the moments of a run in this process, and kills it at one of them.

    Args:
        output: the run directory; files elsewhere do not count.
        kill_at: the number of the last moment; None = go on to the end.
        log: file that receives a line a moment: its time and its name.
    """

    def __init__(self, output, kill_at, log):
        self.output, self.kill_at, self.log = str(output), kill_at, open(log, "a", encoding="utf-8", buffering=1)
        self.count, self.saving = 0, ""

    def pass_by(self, name):
        self.log.write(json.dumps([time.time(), self.saving + name]) + "\n")
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def watch(self):
        from bert_tf.training import checkpoints
        from bert_tf.training.metrics_log import MetricsLog
        from bert_tf.training.monitor import EpochProgress, Monitor

        sys.addaudithook(self._audit)
        save, save_file, write = checkpoints.Checkpoints.save, checkpoints.save_file, MetricsLog.write

        def saved(run, model, step, **state):
            self.saving = f"saving {run.folder.name}: "
            save(run, model, step, **state)
            self.saving = ""

        def half_saved(tensors, path):
            save_file(tensors, path)
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) // 2])
            self.pass_by(f"half of {path.name}")
            path.write_bytes(whole)

        def half_written(log, line):
            write(log, line)
            path = Path(log.file.name)
            if path.is_relative_to(self.output):
                whole = path.read_bytes()
                kept = len(whole) - 10
                os.truncate(path, kept)
                self.pass_by("half a line of metrics.jsonl")
                log.file.write(whole[kept:].decode())
                log.file.flush()

        def stepped(cls):
            original = cls.on_train_batch_end

            def on_train_batch_end(callback, batch, logs=None):
                self.pass_by("a step is done")
                original(callback, batch, logs)
                self.pass_by("a step is logged")

            cls.on_train_batch_end = on_train_batch_end

        checkpoints.Checkpoints.save, checkpoints.save_file, MetricsLog.write = saved, half_saved, half_written
        stepped(Monitor)
        stepped(EpochProgress)

    def _audit(self, event, arguments):
        if event == "open":
            path, mode, _ = arguments
            if isinstance(path, str | os.PathLike) and mode and set(mode) & set("wax+"):
                self._touch("writing", path)
        elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir"):
            target = arguments[1] if event == "os.rename" else arguments[0]
            parent = arguments[-1]
            if parent >= 0:
                target = os.path.join(os.readlink(f"/proc/self/fd/{parent}"), target)
            self._touch(event.removeprefix("os."), target)

    def _touch(self, what, path):
        path = os.path.abspath(os.fspath(path))
        if f"{path}/".startswith(f"{self.output}/"):
            self.pass_by(re.sub(r"\.[0-9a-f]{8}\.bert_tf", ".bert_tf", f"{what} {os.path.relpath(path, self.output)}"))


def train(place, experiment, output, kill_at, log, environment):
    """What a process of a run does."""
    os.environ.update(environment)
    terminal = os.open(f"{log}.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(terminal, 1)
    os.dup2(terminal, 2)
    import tensorflow as tf

    from bert_tf import config
    from bert_tf.training.finetuning import FinetuneConfig, finetune
    from bert_tf.training.pretraining import PretrainConfig, pretrain

    if place == "mirrored":
        devices = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    Moments(output, kill_at, log).watch()
    if place == "finetune":
        finetune(config.load(FinetuneConfig, experiment), output)
    else:
        pretrain(config.load(PretrainConfig, experiment), output)


def start(place, folder, output, victims=None, workers=None):
    """Starts the processes of a run; `victims` is a dict from worker to the moment at which it dies."""
    workers, environments = workers or PLACES[place], [{}]
    experiment = folder / f"{place}.yaml"
    if workers == 1 < PLACES[place]:
        experiment = folder / f"{place}-on-one.yaml"
    elif workers > 1:
        sockets = [socket.create_server(("localhost", 0)) for _ in range(workers)]
        cluster = {"worker": [f"localhost:{s.getsockname()[1]}" for s in sockets]}
        for s in sockets:
            s.close()
        tasks = [{"type": "worker", "index": i} for i in range(workers)]
        environments = [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": t})} for t in tasks]
    running = []
    for i, environment in enumerate(environments):
        log = Path(f"{output}.{i}")
        log.unlink(missing_ok=True)
        arguments = (place, experiment, output, (victims or {}).get(i), log, environment)
        running.append(processes.Process(target=train, args=arguments))
        running[-1].start()
    return running


def wait(running):
    """Waits for all to end; True if all did and well."""
    end = time.monotonic() + PATIENCE
    for process in running:
        process.join(max(0, end - time.monotonic()))
    well = all(process.exitcode == 0 for process in running)
    for process in running:
        process.kill()
        process.join()
    return well


def moments(output, worker=0):
    log = Path(f"{output}.{worker}")
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def what_it_came_to(output):
    """Everything that a run leaves behind and that must not differ."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from bert_tf.tokenizers import load_tokenizer
    from bert_tf.training.run_directory import RunDirectory

    run = RunDirectory.open(output)
    folder, state = run.checkpoints.latest()
    left = {"metrics.jsonl": [{k: v for k, v in m.items() if k != "tokens_per_second"} for m in run.metrics()]}
    left |= {
        "step": state["step"],
        "tokenizer": load_tokenizer(output / "tokenizer").fingerprint,
        "config": run.config(),
    }
    left |= {name: (folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}
    for name in ("finished.json", "summary.json"):
        left[name] = (output / name).exists() and json.loads((output / name).read_text(encoding="utf-8"))
    board = (output / "tensorboard").exists() and EventAccumulator(str(output / "tensorboard"), {"tensors": 0}).Reload()
    for tag in board.Tags()["tensors"] if board else ():
        if tag != "tokens_per_second":
            left[f"tensorboard {tag}"] = {e.step: e.tensor_proto.SerializeToString() for e in board.Tensors(tag)}
    left["checkpoints"] = sorted(p.name for p in (output / "checkpoints").iterdir())
    left["half written files"] = sorted(p.name for p in output.rglob(".*.bert_tf"))
    return left


def rounded_differences(output, expected):
    """The metrics of a run that went on with another number of workers and are not within 1e-5 of the expected ones."""
    metrics = what_it_came_to(output)["metrics.jsonl"]
    if [m.keys() for m in metrics] != [m.keys() for m in expected["metrics.jsonl"]]:
        return ["metrics.jsonl"]
    return sorted(
        {
            name
            for one, other in zip(metrics, expected["metrics.jsonl"])
            for name, value in other.items()
            if not math.isclose(one[name], value, rel_tol=5e-5 if name == "gradient_norm" else 1e-5, abs_tol=1e-9)
        }
    )


def kill_once(place, folder, output, draws, how, kinds):
    """Starts a run and kills it; returns what was hit, and a survivor's end."""
    if how in ("from outside", "signal"):
        times = [at for at, _ in kinds]
        running = start(place, folder, output)
        began = time.time()
        while not Path(f"{output}.0").exists() and time.time() - began < PATIENCE:
            time.sleep(0.02)
        while not moments(output) and time.time() - began < PATIENCE:
            time.sleep(0.02)
        time.sleep(draws.uniform(0, times[-1] - times[0]))
        if how == "signal":
            number, sent = draws.choice([signal.SIGINT, signal.SIGTERM]), time.monotonic()
            for process in running:
                os.kill(process.pid, number)
            for process in running:
                process.join(PATIENCE)
            ended = f"; all ended {time.monotonic() - sent:.1f} s after {number.name}"
            wait(running)
            return f"'{(moments(output) or [(0, 'nothing')])[-1][1]}'", ended
        for process in running:
            process.kill()
        wait(running)
        return f"from outside, after '{(moments(output) or [(0, 'nothing')])[-1][1]}'", ""
    victim = 1 if how == "worker" else 0
    names = [name for _, name in kinds]
    chosen = [i for i, name in enumerate(names) if how != "saving" or name.startswith("saving")]
    running = start(place, folder, output, {victim: draws.choice(chosen)})
    running[victim].join(PATIENCE)
    dead, survival = time.monotonic(), ""
    others = [p for p in running if p is not running[victim]]
    if how not in ("chief", "worker"):
        for process in others:
            process.kill()
    wait(running)
    if running[victim].exitcode != -signal.SIGKILL:
        survival = " (it had ended before)"
    elif how in ("chief", "worker"):
        said = Path(f"{output}.{1 - victim}.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        error = next((line for line in reversed(said) if "Error: " in line), "nothing")
        survival = f"; after {time.monotonic() - dead:.0f} s the survivor ended with {error[:80]}"
    return (moments(output, victim) or [(0, "before its first moment")])[-1][1], survival


def matrix(place, folder, kills, seed, resume_with):
    """Prints a row for every kill of a place; returns how many runs came to something else."""
    whole = folder / place / "whole"
    whole.parent.mkdir(exist_ok=True)
    began = time.monotonic()
    if not wait(start(place, folder, whole)):
        sys.exit(f"the run left alone failed; see {whole}.0.txt")
    expected = what_it_came_to(whole)
    print(f"{place:<14}left alone: {time.monotonic() - began:.0f} s, {len(moments(whole))} moments", flush=True)
    hows = [
        "saving",
        "signal",
        "anywhere",
        "saving",
        "from outside",
        "signal",
        "saving",
        "anywhere",
        "signal",
        "saving",
    ]
    if PLACES[place] > 1:
        hows = [
            "worker",
            "chief",
            "signal",
            "saving",
            "from outside",
            "worker",
            "saving",
            "chief",
            "signal",
            "anywhere",
        ]
    differing = 0
    for kill in range(kills):
        draws, how, output = random.Random(f"{seed} {place} {kill}"), hows[kill % len(hows)], folder / place / str(kill)
        hits = []
        for _ in range(2 if kill % 4 == 3 else 1):
            hits.append("".join(kill_once(place, folder, output, draws, how, moments(whole, int(how == "worker")))))
        workers = resume_with[kill % len(resume_with)] if PLACES[place] > 1 else 1
        as_before = workers == PLACES[place]
        wrong, verdict = [], "bitwise" if as_before else "to 1e-5"
        if not wait(start(place, folder, output, workers=workers)):
            wrong, verdict = ["all"], f"FAILED to go on, see {output}.0.txt"
        elif as_before:
            result = what_it_came_to(output)
            wrong = [name for name in expected | result if expected.get(name) != result.get(name)]
        else:
            wrong = rounded_differences(output, expected)
        if wrong and verdict in ("bitwise", "to 1e-5"):
            verdict = f"DIFFERS in {', '.join(wrong)}"
        differing += bool(wrong)
        print(f"{place:<14}{how:<14}{workers} {verdict:<9} {', and again '.join(hits)}", flush=True)
        if not wrong:
            shutil.rmtree(output)
    return differing


def prepare(folder, resume_with):
    """Writes the experiments of all places, and what they read."""
    from bert_tf import config, samples
    from bert_tf.tokenizers import train_wordpiece
    from tfrecords.shards.writer import ShardsConfig, write_shards

    sample = Path(samples.__file__).parent / "state_of_the_union.jsonl"
    texts = [json.loads(line)["text"][:8000] for line in sample.read_text(encoding="utf-8").splitlines()[:3]]
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts), encoding="utf-8")
    tokenizer = train_wordpiece(texts, 300, lowercase=True)
    write_shards(
        [folder / "corpus.jsonl"], folder / "shards", tokenizer, ShardsConfig(sequence_length=32), progress=False
    )
    pretraining = {
        "model": MODEL,
        "data": {"shards": str(folder / "shards"), "eval_shards": str(folder / "shards"), "eval_batches": 2},
        "optimizer": {"learning_rate": 3e-3, "warmup_steps": 2},
    }
    train = {"steps": STEPS, "batch_size": 8, "log_every": 2, "checkpoint_every": 3, "eval_every": 6}
    remat = {"strategy": "one", "accumulation_steps": 2, "remat": True}
    for place, settings in {"one": {}, "remat": remat, "mirrored": {}, "multi_worker": {}}.items():
        (folder / place).mkdir()
        config.save(pretraining | {"train": train | {"strategy": place} | settings}, folder / f"{place}.yaml")
    if set(resume_with) != {PLACES["multi_worker"]}:
        still = pretraining | {"model": MODEL | {"dropout": 0.0, "attention_dropout": 0.0}}
        for name, strategy in (("multi_worker", "multi_worker"), ("multi_worker-on-one", "one")):
            config.save(still | {"train": train | {"strategy": strategy}}, folder / f"{name}.yaml")
    words = sorted(set(texts[0].split()))[:40]
    lines = [f"the {word} of {other}\t{len(word) % 2}" for word, other in zip(words, reversed(words))]
    (folder / "labelled.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf-8")
    finetuning = {
        "init_from": str(folder / "one" / "whole"),
        "data": {split: str(folder / "labelled.tsv") for split in ("train", "dev", "test")},
        "task": {"sequence_length": 16},
        "optimizer": {"learning_rate": 1e-3},
        "train": {"epochs": 4, "batch_size": 8, "strategy": "one"},
    }
    config.save(finetuning, folder / "finetune.yaml")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="in each place")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--resume-with", type=int, nargs="+", default=[2], help="numbers of workers, in turn")
    parser.add_argument("--folder", type=Path, help="where the runs go; made, and kept if one differs")
    arguments = parser.parse_args()
    # TensorFlow is imported once, by the server that every process of a run is forked from.
    processes.set_forkserver_preload(["bert_tf.training.pretraining", "bert_tf.training.finetuning", "bert_tf.tasks"])
    folder = arguments.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder, arguments.resume_with)
    if "one" not in arguments.places:  # finetuning starts from it
        wait(start("one", folder, folder / "one" / "whole"))
    differing = sum(
        matrix(place, folder, arguments.kills, arguments.seed, arguments.resume_with) for place in arguments.places
    )
    if differing:
        sys.exit(f"{differing} of {arguments.kills * len(arguments.places)} runs differ; they are in {folder}")
    shutil.rmtree(folder)
    print(f"all {arguments.kills * len(arguments.places)} runs went on as they should")


if __name__ == "__main__":
    main()
