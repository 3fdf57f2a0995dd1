"""The fine-tuning of one seed, from the model to finished.json."""

import contextlib
import math
import shutil

import keras

from bert_tf import config as configuration
from bert_tf import files
from bert_tf.backend.dtype_policy import dtype_policy
from bert_tf.errors import NonFiniteError
from bert_tf.interrupts import Interrupted
from bert_tf.models.families import describe
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.freezing import Freezing
from bert_tf.training.layer_decay import set_layer_decay
from bert_tf.training.metrics_log import MetricsLog
from bert_tf.training.monitor import EpochProgress, make_progress
from bert_tf.training.optimization import make_optimizer, make_schedule, sampled
from bert_tf.training.run_records import CONFIG, FINISHED, Finished, keep_findings
from bert_tf.training.strategies import check_agreement, feed_batches, is_chief, of_chief, static_shapes

#: The checkpoints of the newest epoch, beside those of the best; gone when the run is finished.
LAST = "last"


class SeedRun:
    """The fine-tuning of one seed.

    `checkpoints/` receives the model of each epoch that is the best so far (the newest, where the recipe does not train
    the head); later commands load its newest one. `last/` holds the newest epoch, from which an interrupted run resumes.
    A line of metrics.jsonl holds the epoch's mean `train_loss` and the metrics on the dev file. The data of an epoch
    depend on the seed and the epoch alone.

    Of several workers only the chief writes, and measures the test file.

    Args:
        config: the `FinetuneConfig` of this seed alone.
        recipe: the `LabelsRecipe`.
        run: the `RunDirectory` of this seed.
        folder: the directory of all seeds.
        strategy: of `make_strategy`.
        begin: function() that records the settings and the data in `folder`; called before the first file is written.
    """

    def __init__(self, config, recipe, run, folder, strategy, begin):
        self.config, self.train, self.recipe, self.strategy = config, config.train, recipe, strategy
        self.run, self.folder, self.begin, self.writes = run, folder, begin, is_chief(strategy)
        self.task, self.examples, self.data = recipe.data.task, recipe.data.examples, recipe.data.files
        self.last = Checkpoints(run.path / LAST)

    def result(self):
        """The content of finished.json. The seed is trained unless it is finished."""
        path = self.run.path / FINISHED
        is_finished = files.is_there(path)
        check_agreement(self.strategy, int(is_finished), f"whether {self.run.path} is finished")
        if not is_finished:
            with self.strategy.scope(), dtype_policy(self.train.precision):
                result = self.train_and_measure()
            if not self.writes:
                return result
            self.run.check_in_place("the result")
            files.write_json(path, result)
        if self.writes:  # not earlier: a run that is killed while it evaluates resumes from the last epoch
            shutil.rmtree(self.last.folder, ignore_errors=True)
        result = configuration.to_dict(configuration.read_record(Finished, path))
        # Without a test file there is no test.
        return {name: value for name, value in result.items() if value is not None}

    def train_and_measure(self):
        """The content of finished.json, of a new or an interrupted run."""
        self._make_model()
        if self.writes:
            self._record()
        self.recipe.start(self.model, self.folder if self.writes else None)
        result = {"metric": self.task.metric, "seed": self.train.seed}
        result["baselines"] = self._baselines()  # before the training, in case the metric is undefined there
        result["dev"] = self._train()
        self.task = self.task.with_thresholds(result["dev"])
        if self.writes:
            self.task.save(self.run.path)
            if "test" in self.data:
                result["test"] = self._measure_test()
        return result

    def _make_model(self):
        """Makes the model and the one that is fitted, which may be around it."""
        train, task = self.train, self.task
        keras.utils.set_random_seed(train.seed)  # the head, and the encoder where not pretrained
        self.model = self.recipe.make_model()
        self.steps = task.steps_per_epoch(self.examples, train.batch_size, static_shapes=static_shapes(self.strategy))
        self.freezing = Freezing(self.model, train, self.recipe.source)
        optimizer = make_optimizer(self.config.optimizer, self.steps * train.epochs)
        if train.trainable.layer_decay:
            set_layer_decay(optimizer, self.model, train.trainable.layer_decay, train.trainable.layer_decay_variant)
        self.fitted = self.recipe.wrap(self.model)
        self.fitted.compile(optimizer, **train.compiled)
        if self.fitted is not self.model:  # its checkpoints are written and read without what is around it
            self.model.compile(optimizer=self.fitted.optimizer)
        self.freezing.build(self.model.optimizer)

    def _record(self):
        """Writes what describes the run, before it is trained."""
        self.begin()
        self.run.keep_tokenizer(self.task.tokenizer)
        self.task.save(self.run.path)
        record = configuration.to_dict(self.config) | {"model": describe(self.model.backbone.config)}
        configuration.save(record, self.run.path / CONFIG)
        updates = self.steps * self.train.epochs
        keep_findings(self.run.path, learning_rate=sampled(make_schedule(self.config.optimizer, updates), updates))

    def _baselines(self):
        """Split -> the metrics of guesses by the labels of the training file; none without that file."""
        splits = [split for split in ("dev", "test") if split in self.data and (self.writes or split == "dev")]
        train = self.data.get("train")
        return {split: {} if train is None else self.task.baselines(train, self.data[split]) for split in splits}

    def _train(self):
        """Trains epoch by epoch, and returns the line of metrics of the epoch that is kept."""
        first = self._resume()
        progress = make_progress(
            f"fine-tuning, seed {self.train.seed}", self.train.epochs * self.steps, first * self.steps, self.writes
        )
        try:
            for epoch in range(first, self.train.epochs):
                if self._stops_early(epoch):
                    break
                train_loss = self._fit(epoch, progress, resumes=epoch == first)
                line, findings = self._measure(epoch, train_loss)
                self.history.append(line)
                if self.writes:
                    self._save(epoch, findings)
        except Interrupted as error:
            raise Interrupted(error.number, self._interruption()) from None
        kept = self.history[self._kept_epoch()]
        if self.recipe.trains_head:
            outcome = f"best dev {self.task.metric} {kept[self.task.metric]:.4f}"
        else:
            outcome = f"the last epoch is kept: train_loss {kept['train_loss']:.4f}"
        progress.finish(f"{outcome} after epoch {kept['epoch'] + 1}")
        return kept

    def _resume(self):
        """Restores the newest epoch, and returns the number of the one to train next."""
        state = self.last.restore(self.fitted)
        self.saved = state["epoch"] + 1 if state else 0
        check_agreement(self.strategy, self.saved, f"the epoch from which {self.run.path} resumes")
        self.history = state["history"] if state else []
        if self.writes and not state:  # the best epochs of an earlier start do not count
            shutil.rmtree(self.run.checkpoints.folder, ignore_errors=True)
        if self.writes:
            self.run.write_metrics(self.history)
        return self.saved

    def _stops_early(self, epoch):
        """Whether the epochs since the best one are as many as `train.early_stopping`."""
        patience = self.train.early_stopping
        return bool(patience and self.history) and epoch - self._kept_epoch() > patience

    def _fit(self, epoch, progress, resumes):
        """Trains an epoch, and returns the mean loss; `resumes`: whether it is the first of this process."""
        seed, static = self.train.seed, static_shapes(self.strategy)
        size = self.train.batch_size
        data = self.task.dataset(self.examples, size, training=True, seed=seed, epoch=epoch, static_shapes=static)
        has_changed = self.freezing.set_epoch(epoch)
        if has_changed:
            self.fitted.make_train_function(force=True)
        if self.writes and self.freezing.active and (has_changed or resumes):
            self.freezing.print_count(epoch)
        shown = EpochProgress(progress, epoch * self.steps, compiling=has_changed or resumes)
        batches = feed_batches(self.strategy, data, rows=data.element_spec["token_ids"].shape[0])
        fitted = self.fitted.fit(batches, steps_per_epoch=self.steps, epochs=1, verbose=0, callbacks=[shown])
        return fitted.history["loss"][-1]

    def _measure(self, epoch, train_loss):
        """(the line of metrics of an epoch, the findings of its model on the dev file)."""
        metrics, step, name = {self.task.metric: 0.0}, (epoch + 1) * self.steps, self.task.metric
        if self.writes:
            metrics = self.task.evaluate(self.model, self.data["dev"], self.train.batch_size, findings=True)
        findings = metrics.pop("findings", {})
        _check_finite(metrics, step)
        metrics[name] = of_chief(self.strategy, metrics[name])  # the workers stop together
        plain = {key: value for key, value in metrics.items() if isinstance(value, (int, float, str, bool))}
        return {"step": step, "epoch": epoch, "train_loss": train_loss} | plain, findings

    def _save(self, epoch, findings):
        line = self.history[-1]
        self.run.check_in_place(f"epoch {epoch + 1}")
        with contextlib.closing(MetricsLog(self.run)) as log:
            log.write(line)
        if self._kept_epoch() == epoch:
            keep_findings(self.run.path, dev=findings)
            self.run.checkpoints.save(self.model, line["step"], epoch=epoch)
        self.last.save(self.fitted, line["step"], epoch=epoch, history=self.history)
        self.saved = epoch + 1

    def _kept_epoch(self):
        """The best epoch so far; the last one where the dev metric judges nothing that is trained."""
        return best_epoch(self.history, self.task) if self.recipe.trains_head else len(self.history) - 1

    def _interruption(self):
        saved, epochs = self.saved, self.train.epochs
        kept = f"{saved} of {epochs} epochs are saved" if saved else f"no epoch of {epochs} was finished"
        place = "" if saved == epochs else f" at the beginning of epoch {saved + 1}"
        return f"interrupted; {kept} in {self.run.path}, and the same command continues{place}"

    def _measure_test(self):
        """The metrics of the epoch that is kept on the test file."""
        self.run.checkpoints.restore(self.model)
        metrics = self.task.evaluate(self.model, self.data["test"], self.train.batch_size, findings=True)
        keep_findings(self.run.path, test=metrics.pop("findings"))
        return metrics


def best_epoch(history, task):
    """The epoch with the best dev metric, the first of equals."""
    return max(range(len(history)), key=lambda epoch: task.sign * history[epoch][task.metric])


def _check_finite(metrics, step):
    for name, value in metrics.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise NonFiniteError(
                f"after step {step}: {name} on data.dev is not finite; start a new run with a lower learning rate, a longer "
                "warm-up or a smaller clip"
            )
