"""Pretraining: trains a model on shards and writes a run directory."""

import contextlib
import tempfile

import keras
import tensorflow as tf
from absl import logging

from bert_tf import interrupts
from bert_tf.backend.dtype_policy import dtype_policy
from bert_tf.errors import ConfigError
from bert_tf.files import writes_to
from bert_tf.training import data_identity
from bert_tf.training.baselines import unigram
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.monitor import Monitor
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.precision import resolve
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining  # noqa: F401
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.run_records import keep_findings, update_report
from bert_tf.training.shards_recipe import ShardsRecipe
from bert_tf.training.strategies import check_agreement, feed, feed_batches, is_chief, locked, strategy_of
from tfrecords.reading.reader import ShardReader


@writes_to("output")
def pretrain(config, output):
    """Trains to `config.train.steps`, from the last undamaged checkpoint in `output` if there is one.

    The same call after an interruption resumes the run, with the same result bit for bit; for a
    finished run it returns at once.

    Args:
        config: PretrainConfig.
        output: the run directory.

    Returns:
        A pair: the RunDirectory; dict of the last logged metrics, with the unigram baseline of those of them that
        have one: `unigram_masked_lm_loss`, `unigram_causal_lm_accuracy`, ...

    Raises:
        ConfigError: settings that contradict each other, the shards or the model.
        DataError: shards that are damaged, or of another tokenizer or schema.
        RunDirectoryError: `output` is in use, holds another run or one that was trained on other
            data, cannot be written, or was moved.
        NonFiniteError: a loss, gradient or weight became NaN or infinite.
        Interrupted: Ctrl-C or SIGTERM; the step that was under way is saved.
        WorkerLostError: of several workers, another one ended.
    """
    check_pretraining(config)
    # First of all: the workers of a cluster must find each other before anything runs.
    strategy = strategy_of(config.train)
    return pretrain_recipe(ShardsRecipe(config), output, strategy)


def pretrain_recipe(recipe, output, strategy):
    """What `pretrain` does, for any recipe of pretraining.

    Args:
        recipe: a `ShardsRecipe`.
        output: the run directory.
        strategy: of `make_strategy`.

    Returns, raises: as `pretrain`.
    """
    config, reader = recipe.config, recipe.data
    with locked(output, strategy) as in_place, contextlib.ExitStack() as stack:
        run = RunDirectory.claim(output, config, in_place)
        tokens = config.train.batch_size * reader.sequence_length
        config = resolve(config, run, strategy, recipe.model_config, tokens)
        run.checkpoints = Checkpoints(run.path / "checkpoints", config.train.keep_checkpoints)
        identities = recipe.identities()
        data_identity.check(run.path, identities)
        with reader.explain_errors():
            unigrams = unigram(reader.uncorrupted(config.train.seed), recipe.shards_tokenizer)
            baseline = {metric: unigrams[key] for metric, key in recipe.objective.unigram.items()}
            model, state = _make_model(config, recipe, run, strategy)
            step = state["step"]
            check_agreement(strategy, step, f"the step from which {output} resumes")
            if not is_chief(strategy):  # the others write to a temporary folder
                run = RunDirectory(stack.enter_context(tempfile.TemporaryDirectory()))
            dataset, held_out = _datasets(config, recipe, step, strategy)
            # Nothing was written so far: a command that fails above can be corrected and run again.
            run.record(config)
            data_identity.record(run.path, identities)
            run.keep_tokenizer(recipe.tokenizer)
            run.forget_metrics_after(step, state.get("metrics_lines"))
            keep_findings(run.path, baselines={"unigram": baseline} if baseline else {})
            if step < config.train.steps:
                tokens_per_step = config.train.batch_size * unigrams["tokens_per_example"]
                monitor = Monitor(run, config.train, state, tokens_per_step, baseline, shown=is_chief(strategy))
                with strategy.scope():
                    _fit(model, dataset, held_out, monitor)
            else:  # it may have been killed before it wrote its report
                update_report(run.path)
            run.check_in_place("its result")
        metrics = run.metrics()[-1] if run.metrics() else {"step": step}
    return run, metrics | {f"unigram_{name}": value for name, value in baseline.items()}


def _make_model(config, recipe, run, strategy):
    """(the compiled model that is fitted, restored or initialized; the state of its checkpoint, of step 0 without one)."""
    train = config.train
    with strategy.scope(), dtype_policy(train.precision):
        keras.utils.set_random_seed(train.seed)  # initial weights
        model = recipe.make_model()
        fitted = recipe.wrap(model)
        fitted.compile(make_optimizer(config.optimizer, train.steps), **train.compiled)
        state = run.checkpoints.restore(fitted)
        if state:
            logging.info("continuing from step %d", state["step"])
            return fitted, state
        recipe.start(model, run.path)
    return fitted, {"step": 0}


def _datasets(config, recipe, step, strategy):
    """What `fit` and `evaluate` are given from `step` on; the second is None without held-out shards."""
    train, data, reader, tokenizer = config.train, config.data, recipe.data, recipe.shards_tokenizer
    corrupt = recipe.objective.make_corruption(config.objective, tokenizer, reader)

    def part(index, inputs):
        arguments = {"start_step": step, "corrupt": corrupt, "num_inputs": inputs}
        return reader.dataset(train.batch_size, train.seed, input_index=index, **arguments)

    dataset = feed(strategy, train.batch_size, part)
    if not data.eval_shards:
        return dataset, None
    held_out = ShardReader(data.eval_shards, tokenizer)
    for field in ("sequence_length", "target_length", "pair_task", "row_segments"):
        trained, measured = getattr(reader.manifest, field), getattr(held_out.manifest, field)
        if trained != measured:
            raise ConfigError(f"data.eval_shards were packed with {field} {measured}, data.shards with {trained}")
    # Masked once and the same at every evaluation.
    batches = held_out.dataset(
        train.batch_size, train.seed, epochs=1, shuffle=False, drop_remainder=False, corrupt=corrupt
    )
    batches = batches.take(data.eval_batches).prefetch(tf.data.AUTOTUNE)
    return dataset, feed_batches(strategy, batches, rows=train.batch_size)


def _fit(model, dataset, held_out, monitor):
    """Does the steps that are left, and evaluates on `held_out`, unless it is None."""
    step = monitor.step
    if held_out is not None:
        monitor.evaluate = lambda: model.evaluate(held_out, verbose=0, return_dict=True)
    begin = f"; step {step:,} is the newest that is saved" if step else " and no step was done"
    with interrupts.defer_signals(
        "saving a checkpoint after this step", f"interrupted{begin}; the same command continues from there"
    ):
        model.fit(dataset, steps_per_epoch=monitor.train.steps - step, epochs=1, verbose=0, callbacks=[monitor])
