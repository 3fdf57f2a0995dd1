"""Fine-tuning: trains a task on a pretrained encoder and writes a run directory.

The task says what its data, model and metrics are; this file only trains it. Nothing here knows
one task from another.
"""

import dataclasses
import io
import json
import math
import shutil
import statistics
import sys

import keras
import tensorflow as tf

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.backend.dtype_policy import dtype_policy
from bert_tf.backend.tensorflow.tpu import is_tpu
from bert_tf.errors import NonFiniteError
from bert_tf.files import writes_to
from bert_tf.interrupts import Interrupted
from bert_tf.models.families import describe
from bert_tf.progress import Progress
from bert_tf.reporting import guarded, keep_findings, write_report
from bert_tf.training import inputs
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning  # noqa: F401
from bert_tf.training.freezing import Freezing
from bert_tf.training.layer_decay import set_layer_decay
from bert_tf.training.learning import FromLabels
from bert_tf.training.optimization import make_optimizer, make_schedule, sampled
from bert_tf.training.precision import resolve
from bert_tf.training.run_directory import CONFIG, FINISHED, METRICS, SUMMARY, Finished, RunDirectory
from bert_tf.training.strategies import check_agreement, feed_batches, is_chief, of_chief, strategy_of, training_in

#: The checkpoints of the newest epoch, beside those of the best; gone when the run is finished.
LAST = "last"


@writes_to("output")
def finetune(config, output):
    """Fine-tunes `config.train.seeds` times and reports the mean and spread of the metrics.

    Args:
        config: FinetuneConfig.
        output: the run directory; with several seeds it holds one run a seed and its summary
            names the best, which later commands then use.

    Returns:
        dict: "metric" (the name that chose the best epoch), "test_metric" (what tables show of the test file), "dev"
            and,
        with a test file, "test": each {"mean": metrics, "spread": sample standard deviations (several seeds),
            "baselines"};
        "seeds" (every seed's metrics), "best" (the best seed's run within `output`), "warnings".

    Raises:
        ConfigError, DataError, RunDirectoryError, NonFiniteError: as `pretrain`.
        Interrupted: Ctrl-C or SIGTERM; the epochs that were finished are saved.
    """
    check_finetuning(config)
    # Before anything else runs on TensorFlow: a TPU would wipe its memory, workers must find each other.
    strategy = strategy_of(config.train)
    with training_in(output, strategy) as in_place:
        return finetune_seeds(config, output, strategy, in_place)


def finetune_seeds(config, output, strategy, in_place, before=lambda: None, learning=None):
    """What `finetune` does, in a directory that is locked.

    Args:
        config, output: as for `finetune`.
        strategy: the `tf.distribute.Strategy`.
        in_place: of `lock_directory`; None in a worker that is not the chief.
        before: function() that is called before the first file is written.
        learning: what is trained, and from what; None for `FromLabels`.
    """
    writes = is_chief(strategy)
    seeds = range(config.train.seed, config.train.seed + config.train.seeds)
    folder = RunDirectory.claim(output, config, in_place)
    # Nothing is written before the data are read and the model and its optimizer are built: a
    # command that fails until then can be corrected and run again.
    learning = learning or FromLabels(config)
    task = learning.make_task()
    tokens = config.train.batch_size * task.config.sequence_length
    config = resolve(config, folder, strategy, learning.model_config, tokens)
    task, data = learning.read(task)
    identities = learning.identities()
    first = next(iter(data.values()))
    chosen = ", ".join(f"{role} {column!r}" for role, column in first.columns.items())
    if chosen and writes:  # found by their usual names, they may be other columns than the user means
        print(f"columns of {first.path}: {chosen}", file=sys.stderr, flush=True)
    inputs.check(folder.path, identities)

    def begin():
        before()
        folder.record(config)
        inputs.record(folder.path, identities)

    results = {}
    for seed in seeds:
        run = folder if len(seeds) == 1 else RunDirectory(folder.path / f"seed-{seed}", in_place)
        one = dataclasses.replace(config, train=dataclasses.replace(config.train, seed=seed, seeds=1))
        results[run.path] = _finetune_once(one, run, folder, task, data, strategy, begin, learning)
    summary = _summarize(results, folder, task, learning.trains_head)
    if "train" not in data:
        summary["warnings"].append("there are no baselines: they guess by the labels of data.train, which is not given")
    if not writes:
        return summary
    folder.check_in_place("the summary")
    with files.atomic_write(folder.path / SUMMARY) as file:
        json.dump(summary, file, indent=1)
    with guarded(f"the report of {folder.path}"):
        write_report(folder.path)
    return summary


def _finetune_once(config, run, folder, task, data, strategy, begin, learning):
    """Trains one seed unless it is finished, and returns the content of finished.json."""
    finished = run.path / FINISHED
    writes, trained = is_chief(strategy), files.is_there(finished)
    check_agreement(strategy, int(trained), f"whether {run.path} is finished")
    if not trained:
        result = _train_and_measure(config, run, folder, task, data, strategy, begin, writes, learning)
        if not writes:
            return result
        run.check_in_place("the result")
        with files.atomic_write(finished) as file:
            json.dump(result, file, indent=1)
    if writes:  # not earlier: a run that is killed while it evaluates resumes from the last epoch
        shutil.rmtree(run.path / LAST, ignore_errors=True)
    result = configuration.to_dict(configuration.read_record(Finished, finished))
    return {name: value for name, value in result.items() if value is not None}  # without a test file there is no test


def _train_and_measure(config, run, folder, task, data, strategy, begin, writes, learning):
    """Trains and returns the content of finished.json. Only the chief writes, and evaluates the test file."""
    train, examples, dev, test = config.train, learning.examples(data), data["dev"], data.get("test")
    with strategy.scope(), dtype_policy(train.precision):
        keras.utils.set_random_seed(train.seed)  # the head, and the encoder where not pretrained
        model = learning.make_model(task, train)
        steps = task.steps_per_epoch(examples, train.batch_size, static_shapes=is_tpu(strategy))
        freezing = Freezing(model, train, learning.source)
        total = steps * train.epochs
        optimizer = make_optimizer(config.optimizer, total)
        if train.layer_decay:
            set_layer_decay(optimizer, model, train.layer_decay, train.layer_decay_variant)
        trained = learning.make_trained(model)
        trained.compile(
            optimizer=optimizer,
            accumulation_steps=train.accumulation_steps,
            remat=train.remat,
            xla=train.xla,
            seed=train.seed,
        )
        if trained is not model:  # its checkpoints are written and read without what is around it
            model.compile(optimizer=trained.optimizer)
        freezing.build(model.optimizer)
        if writes:
            begin()
            run.keep_tokenizer(task.tokenizer)
            with files.explain_disk_errors(run.path):
                task.save(run.path)
            record = configuration.to_dict(config) | {"model": describe(model.backbone.config)}
            configuration.save(record, run.path / CONFIG)
            _keep_findings(run, learning_rate=sampled(make_schedule(config.optimizer, total), total))
        learning.prepare(task, model, examples, dev, folder.path, writes)
        result = {"metric": task.metric, "seed": train.seed, "baselines": {}}
        # Before the training, in case the metric is undefined there.
        for split, measured in (("dev", dev), ("test", test)):
            if measured is not None and (writes or split == "dev"):
                result["baselines"][split] = task.baselines(data["train"], measured) if "train" in data else {}
        kept = _best if learning.trains_head else _last
        result["dev"] = _train(model, trained, task, examples, dev, steps, train, run, writes, freezing, kept)
        task = task.tuned(result["dev"])
        if writes:
            with files.explain_disk_errors(run.path):
                task.save(run.path)
        if test is not None and writes:
            run.checkpoints.restore(model)
            result["test"] = task.evaluate(model, test, train.batch_size, findings=True)
            _keep_findings(run, test=result["test"].pop("findings"))
    return result


def _train(model, trained, task, examples, dev, steps, train, run, writes, freezing, kept):
    """Trains epoch by epoch; the data of an epoch depends only on the seed and the epoch.

    `trained` is fitted: the model, or one around it. `checkpoints/` receives the model of each epoch that `kept` names
        of
    those so far, the best or the last; later commands load its newest one.
    `last/` holds the newest epoch, from which an interrupted run resumes. A line of metrics.jsonl
    holds the epoch's mean `train_loss` and the metrics on the dev file.

    Returns:
        The metrics of the epoch that is kept.
    """
    last = Checkpoints(run.path / LAST)
    state = last.restore(trained)
    first = state["epoch"] + 1 if state else 0
    check_agreement(model.distribute_strategy, first, f"the epoch from which {run.path} resumes")
    history = state["history"] if state else []
    if writes and not state:  # the best epochs of an earlier start do not count
        shutil.rmtree(run.checkpoints.folder, ignore_errors=True)
    if writes:
        _write_metrics(history, run)
    stream = None if writes else io.StringIO()
    progress = Progress(
        f"fine-tuning, seed {train.seed},", train.epochs * steps, "steps", done=first * steps, stream=stream
    )
    saved = first
    try:
        for epoch in range(first, train.epochs):
            if train.early_stopping and history and epoch - kept(history, task) > train.early_stopping:
                break
            data = _epoch(model.distribute_strategy, task, examples, train, epoch)
            changed = freezing.set_epoch(epoch)
            if changed:
                trained.make_train_function(force=True)
            if writes and freezing.active and (changed or epoch == first):
                freezing.say(epoch)
            shown = _Steps(progress, epoch * steps, compiling=changed or epoch == first)
            fitted = trained.fit(data, steps_per_epoch=steps, epochs=1, verbose=0, callbacks=[shown]).history
            step = (epoch + 1) * steps
            metrics = task.evaluate(model, dev, train.batch_size, findings=True) if writes else {task.metric: 0.0}
            findings = metrics.pop("findings", {})
            _check_finite(metrics, step)
            # The workers stop together.
            metrics[task.metric] = of_chief(model.distribute_strategy, metrics[task.metric])
            history.append({"step": step, "epoch": epoch, "train_loss": fitted["loss"][-1]} | _plain(metrics))
            if not writes:
                continue
            run.check_in_place(f"epoch {epoch + 1}")
            _write_metrics(history, run)
            _write_events(history[-1], run)
            if kept(history, task) == epoch:
                _keep_findings(run, dev=findings)
                run.checkpoints.save(model, step, epoch=epoch)
            last.save(trained, step, epoch=epoch, history=history)
            saved = epoch + 1
    except Interrupted as error:
        kept = f"{saved} of {train.epochs} epochs are saved" if saved else f"no epoch of {train.epochs} was finished"
        again = "" if saved == train.epochs else f" at the beginning of epoch {saved + 1}"
        message = f"interrupted; {kept} in {run.path}, and the same command continues{again}"
        raise Interrupted(error.number, message) from None
    line = history[kept(history, task)]
    said, name = ("best dev", task.metric) if kept is _best else ("the last epoch is kept:", "train_loss")
    progress.finish(f"{said} {name} {line[name]:.4f} after epoch {line['epoch'] + 1}")
    return line


def _keep_findings(run, **findings):
    with guarded(f"a part of the report of {run.path}"):
        keep_findings(run.path, **findings)


def _write_metrics(history, run):
    """Writes metrics.jsonl again, with one line for each epoch."""
    with files.atomic_write(run.path / METRICS) as file:
        file.writelines(json.dumps(line) + "\n" for line in history)


def _write_events(line, run):
    """Writes the metrics of an epoch for TensorBoard."""
    with files.explain_disk_errors(run.path):
        writer = tf.summary.create_file_writer(str(run.path / "tensorboard"))
        with writer.as_default(step=line["step"]):
            for name, value in line.items():
                if isinstance(value, float):
                    tf.summary.scalar(name, value)
        writer.close()


def _check_finite(metrics, step):
    for name, value in metrics.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise NonFiniteError(
                f"after step {step}: {name} on data.dev is not finite; start a new run with a lower learning rate, a longer "
                "warm-up or a smaller clip"
            )


def _epoch(strategy, task, examples, train, epoch):
    """The batches of a training epoch, for a TPU all of one shape."""
    static = is_tpu(strategy)
    data = task.dataset(examples, train.batch_size, training=True, seed=train.seed, epoch=epoch, static_shapes=static)
    return feed_batches(strategy, data, rows=data.element_spec["token_ids"].shape[0])


def _best(history, task):
    """The epoch with the best dev metric, the first of equals."""
    return max(range(len(history)), key=lambda i: task.sign * history[i][task.metric])


def _last(history, task):
    """The last epoch, where the dev metric judges nothing that is trained."""
    return len(history) - 1


def _plain(metrics):
    return {k: v for k, v in metrics.items() if isinstance(v, (int, float, str, bool))}


def _summarize(results, folder, task, trains_head):
    """Mean and spread over the seeds, and which was best: by the dev metric; without a trained head by the training loss."""
    metric = next(iter(results.values()))["metric"]
    name, sign = (metric, task.sign) if trains_head else ("train_loss", -1)
    best = max(results, key=lambda path: sign * results[path]["dev"][name])
    summary = {"metric": metric, "test_metric": task.test_metric}
    summary |= {"best": str(best.relative_to(folder.path)), "seeds": list(results.values())}
    for split in ("dev", "test"):
        if not all(split in result for result in results.values()):  # a worker that measured none
            continue
        names = [k for k, v in results[best][split].items() if isinstance(v, float)]
        values = {n: [r[split][n] for r in results.values()] for n in names}
        summary[split] = {"mean": {n: statistics.mean(v) for n, v in values.items()}}
        if len(results) > 1:
            summary[split]["spread"] = {n: statistics.stdev(v) for n, v in values.items()}
        summary[split]["baselines"] = results[best]["baselines"][split]
    if not trains_head:
        summary["warnings"] = [
            f"the terms compare layers alone, so that the head is not trained: {metric} says nothing about this model, "
            "and the best seed has the lowest train_loss; train the head by a second run with init_from"
        ]
        return summary
    summary["warnings"] = [
        f"seed {r['seed']}: {r['dev']['warning']}" for r in results.values() if "warning" in r["dev"]
    ]
    for split in ("dev", "test"):
        not_above = split in summary and task.not_above(summary[split]["mean"], summary[split]["baselines"])
        summary["warnings"] += [f"{split}: {not_above}"] if not_above else []
    return summary


class _Steps(keras.callbacks.Callback):
    def __init__(self, progress, done, compiling):
        super().__init__()
        self.progress, self.done, self.compiling = progress, done, compiling

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        if self.compiling:
            self.compiling = False
            self.progress.restart(self.done)
        self.progress.update(self.done, f"loss {logs['loss']:.4f}")
