"""Fine-tuning: a task and a trained encoder in, a run directory out.

The task says what its data, model and metrics are; this file only trains it. Nothing here knows
one task from another.
"""

import dataclasses
import json
import shutil
import statistics
from typing import Literal

import keras

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.errors import ConfigError
from bert_tf.progress import Progress
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.encoders import load_encoder
from bert_tf.training.optimization import OptimizerConfig, make_optimizer, precision
from bert_tf.training.run_directory import METRICS, SUMMARY, RunDirectory
from bert_tf.training.strategies import make_strategy


@dataclasses.dataclass(frozen=True)
class FinetuneTrainConfig:
    """How long and on what.

    Attributes:
        epochs: passes over the training data.
        batch_size: examples of an update.
        early_stopping: stop after so many epochs without a better dev metric; None = never. The
            best epoch is kept in either case.
        seeds: how many runs, with seed, seed + 1, ...; mean and spread are reported.
        pretrained: False starts from fresh weights: the same model without its pretraining.
    """

    epochs: int = 3
    batch_size: int = 32
    accumulation_steps: int = 1
    precision: Literal["float32", "mixed_bfloat16"] = "float32"
    strategy: str = "auto"
    xla: bool | None = None
    seed: int = 0
    seeds: int = 1
    early_stopping: int | None = None
    pretrained: bool = True


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """What is trained from what; the task itself is configured in its own section.

    The defaults are Devlin et al. 2019, appendix A.3, with bias correction and a longer warm-up,
    which make small data sets stable (Mosbach et al. 2021, section 6).
    """

    init_from: str = ""
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=2e-5, warmup_fraction=0.1, bias_correction=True)
    train: FinetuneTrainConfig = FinetuneTrainConfig()


def finetune(make_task, train_file, dev_file, config, output, record):
    """Fine-tunes `config.train.seeds` times and reports the mean and spread of the dev metrics.

    Args:
        make_task: function(tokenizer) -> Task.
        train_file, dev_file: what `task.read` reads.
        config: FinetuneConfig.
        output: the run directory; with several seeds it holds one run a seed and its summary
            names the best, which later commands then use.
        record: the whole experiment as a dataclass, written to config.yaml.

    Returns:
        dict: "metrics" (mean), "spread" (sample standard deviation, with several seeds), "seeds"
        (the metrics of each), "baseline", "best" (path of the best run), "warnings".

    Raises:
        ConfigError, DataError, RunDirectoryError, NonFiniteError: as `pretrain`.
    """
    if not config.init_from:
        raise ConfigError("init_from must name the run directory to start from")
    seeds = [config.train.seed + i for i in range(config.train.seeds)]
    with files.lock_directory(output):
        folder = RunDirectory.create_or_continue(output, record)
        runs = {s: folder.path if len(seeds) == 1 else folder.path / f"seed-{s}" for s in seeds}
        results = {}
        for seed, path in runs.items():
            one = dataclasses.replace(config, train=dataclasses.replace(config.train, seed=seed))
            results[seed] = _finetune_once(make_task, train_file, dev_file, one, RunDirectory(path), record)
        summary = _summarize(results, runs)
        with files.atomic_write(folder.path / SUMMARY) as file:
            json.dump(summary, file, indent=1)
    return summary


def _finetune_once(make_task, train_file, dev_file, config, run, record):
    train = config.train
    with make_strategy(train.strategy).scope(), precision(train.precision):
        keras.utils.set_random_seed(train.seed)  # the head, and the encoder where not pretrained
        encoder, tokenizer = load_encoder(config.init_from, trained=train.pretrained)
        task = make_task(tokenizer)
        examples, dev = task.read(train_file), task.read(dev_file)
        _start(run, task, tokenizer, encoder, record)
        model = task.model(encoder)
        steps = task.steps_per_epoch(examples, train.batch_size)
        model.compile(
            optimizer=make_optimizer(config.optimizer, steps * train.epochs),
            accumulation_steps=train.accumulation_steps,
            xla=train.xla,
            seed=train.seed,
        )
        finished = run.path / "finished.json"
        if not finished.exists():
            best = _train(model, task, examples, dev, steps, train, run)
            with files.atomic_write(finished) as file:
                json.dump({"metrics": best, "baseline": task.baseline(examples, dev)}, file, indent=1)
    return json.loads(finished.read_text(encoding="utf-8")) | {"metric": task.metric}


def _start(run, task, tokenizer, encoder, record):
    """Makes the run directory self-contained before the first step."""
    run.keep_tokenizer(tokenizer)
    task.save(run.path)
    configuration.save(configuration.to_dict(record) | {"model": encoder.config.to_dict()}, run.path / "config.yaml")


def _train(model, task, examples, dev, steps, train, run):
    """Epoch by epoch; the data of an epoch depends on nothing but the seed and its number.

    `checkpoints/` receives the epochs that were the best so far, so that its newest is what later
    commands load; `last/` the newest epoch of all, from which an interrupted run goes on.

    Returns:
        The metrics of the best epoch.
    """
    last = Checkpoints(run.path / "last")
    state = last.restore(model)
    first = state["epoch"] + 1 if state else 0
    run.forget_metrics_after(state["step"] if state else -1)
    progress = Progress(f"fine-tuning, seed {train.seed},", train.epochs * steps, "steps", done=first * steps)
    history = run.metrics()
    for epoch in range(first, train.epochs):
        if train.early_stopping and epoch - _best(history, task.metric) > train.early_stopping:
            break
        data = task.dataset(examples, batch_size=train.batch_size, training=True, seed=train.seed, epoch=epoch)
        fitted = model.fit(data, epochs=1, verbose=0, callbacks=[_Steps(progress, epoch * steps)]).history
        step = (epoch + 1) * steps
        metrics = task.evaluate(model, dev, train.batch_size)
        history.append({"step": step, "epoch": epoch, "loss": fitted["loss"][-1]} | _plain(metrics))
        with open(run.path / METRICS, "a", encoding="utf-8") as file:
            file.write(json.dumps(history[-1]) + "\n")
        if _best(history, task.metric) == epoch:
            run.checkpoints.save(model, step, epoch=epoch)
        last.save(model, step, epoch=epoch)
    best = history[_best(history, task.metric)]
    progress.finish(f"best dev {task.metric} {best[task.metric]:.4f} after epoch {best['epoch'] + 1}")
    shutil.rmtree(last.folder, ignore_errors=True)
    return best


def _best(history, metric):
    """The epoch with the best dev metric, the first of equals."""
    return max(range(len(history)), key=lambda i: history[i][metric])


def _plain(metrics):
    return {k: v for k, v in metrics.items() if isinstance(v, (int, float, str, bool))}


def _summarize(results, runs):
    metric = next(iter(results.values()))["metric"]
    best = max(results, key=lambda seed: results[seed]["metrics"][metric])
    names = [k for k, v in results[best]["metrics"].items() if isinstance(v, float) and k != "loss"]
    values = {n: [r["metrics"][n] for r in results.values()] for n in names}
    summary = {
        "metric": metric,
        "metrics": {n: statistics.mean(v) for n, v in values.items()},
        "seeds": {str(seed): r["metrics"] for seed, r in results.items()},
        "baseline": results[best]["baseline"],
        "best": str(runs[best].name if len(runs) > 1 else "."),
        "warnings": [f"seed {s}: {r['metrics']['warning']}" for s, r in results.items() if r["metrics"].get("warning")],
    }
    if len(results) > 1:
        summary["spread"] = {n: statistics.stdev(v) for n, v in values.items()}
    return summary


class _Steps(keras.callbacks.Callback):
    def __init__(self, progress, done):
        super().__init__()
        self.progress, self.done = progress, done

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        self.progress.update(self.done, f"loss {logs['loss']:.4f}")
