"""Pretraining: trains a model on shards and writes a run directory."""

import contextlib
import dataclasses
import tempfile

import keras
import tensorflow as tf
from absl import logging

from bert_tf import files, interrupts
from bert_tf.backend.dtype_policy import dtype_policy
from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError
from bert_tf.files import writes_to
from bert_tf.models.families import build_backbone, build_config, describe
from bert_tf.objectives.registry import OBJECTIVES
from bert_tf.reporting import guarded, keep_findings, write_report
from bert_tf.training import inputs
from bert_tf.training.baselines import unigram
from bert_tf.training.checkpoints import Checkpoints
from bert_tf.training.monitor import Monitor
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.precision import resolve
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining  # noqa: F401
from bert_tf.training.run_directory import RunDirectory
from bert_tf.training.starting import initialize, initialize_embeddings
from bert_tf.training.strategies import check_agreement, explain_lost_workers, feed, feed_batches, is_chief, strategy_of
from tfrecords.reading.reader import ShardReader, shards_tokenizer
from tfrecords.shards.manifest import Manifest


@writes_to("output")
def pretrain(config, output, teaching=None):
    """Trains to `config.train.steps`, from the last undamaged checkpoint in `output` if there is one.

    The same call after an interruption resumes the run, with the same result bit for bit; for a
    finished run it returns at once.

    Args:
        config: PretrainConfig.
        output: the run directory.
        teaching: what makes another loss around the objective, of `bert_tf.distillation`; None for none.

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
    if teaching is None:
        check_pretraining(config)
    # First of all: the workers of a cluster must find each other before anything runs.
    strategy = strategy_of(config.train)
    tokenizer = shards_tokenizer(config.data.shards)
    reader = ShardReader(config.data.shards, tokenizer)
    of_model = OBJECTIVES[config.objective.name].model_tokenizer(tokenizer, config.objective)
    model_config = build_config(config.model, of_model.vocabulary_size, of_model.pad_id)
    check_fit(config, model_config, reader, of_model)
    data = dataclasses.replace(config.data, sequence_length=reader.sequence_length)
    objective = config.objective.for_shards(reader.manifest.packing, reader.sequence_length)
    config = dataclasses.replace(config, model=describe(model_config), data=data, objective=objective)
    with contextlib.ExitStack() as stack:
        stack.enter_context(explain_lost_workers())
        in_place = None
        if is_chief(strategy):
            in_place = stack.enter_context(files.lock_directory(output))
        run = RunDirectory.claim(output, config, in_place)
        tokens = config.train.batch_size * reader.sequence_length
        config = resolve(config, run, strategy, model_config, tokens)
        run.checkpoints = Checkpoints(run.path / "checkpoints", config.train.keep_checkpoints)
        data = _identities(config, reader) | (teaching.identities() if teaching else {})
        inputs.check(run.path, data)
        with reader.explain_errors():
            baseline = unigram(reader.uncorrupted(config.train.seed), tokenizer)
            objective, state = _objective(config, model_config, of_model, run, strategy, teaching)
            step = state["step"]
            check_agreement(strategy, step, f"the step from which {output} resumes")
            if not is_chief(strategy):  # the others write to a temporary folder
                run = RunDirectory(stack.enter_context(tempfile.TemporaryDirectory()))
            dataset, held_out = _datasets(config, reader, tokenizer, step, strategy)
            # Nothing was written so far: a command that fails above can be corrected and run again.
            run.record(config)
            inputs.record(run.path, data)
            run.keep_tokenizer(of_model)
            run.forget_metrics_after(step, state.get("metrics_lines"))
            known = {name: baseline[key] for name, key in OBJECTIVES[config.objective.name].unigram.items()}
            with guarded(f"the baseline in the report of {run.path}"):
                keep_findings(run.path, baselines={"unigram": known} if known else {})
            if step < config.train.steps:
                _fit(config, objective, dataset, held_out, run, state, baseline, shown=is_chief(strategy))
            else:  # it may have been killed before it wrote its report
                with guarded(f"the report of {run.path}"):
                    write_report(run.path)
            run.check_in_place("its result")
        metrics = run.metrics()[-1] if run.metrics() else {"step": step}
    metrics |= {f"unigram_{name}": value for name, value in known.items()}
    return run, metrics


def _identities(config, reader):
    """What the run is trained on, for `inputs`."""
    data = {"data.shards": (config.data.shards, inputs.of_shards(reader.manifest))}
    if config.data.eval_shards:
        held_out = Manifest.load(config.data.eval_shards)
        data["data.eval_shards"] = (config.data.eval_shards, inputs.of_shards(held_out))
    return data


def _objective(config, model_config, tokenizer, run, strategy, teaching):
    """The compiled objective, restored or initialised; the state of its checkpoint, of step 0 where there is none."""
    train = config.train
    with strategy.scope(), dtype_policy(train.precision):
        keras.utils.set_random_seed(train.seed)  # initial weights
        backbone = build_backbone(model_config, pooler=config.objective.needs_pooler)
        objective = OBJECTIVES[config.objective.name].model_class.from_settings(backbone, config.objective)
        trained = teaching.wrap(objective) if teaching else objective
        trained.compile(
            optimizer=make_optimizer(config.optimizer, train.steps),
            accumulation_steps=train.accumulation_steps,
            steps_per_execution=train.steps_per_execution,
            remat=train.remat,
            xla=train.xla,
            cpu_kernels=train.cpu_kernels,
            seed=train.seed,
        )
        state = run.checkpoints.restore(trained)
        if state:
            logging.info("continuing from step %d", state["step"])
            return trained, state
        if teaching:
            teaching.start(objective)
        if train.init_from:
            initialize(objective, tokenizer, open_source(train.init_from), fresh=train.init_fresh)
        if train.init_embeddings_from:
            initialize_embeddings(objective, tokenizer, open_source(train.init_embeddings_from))
    return trained, {"step": 0}


def _datasets(config, reader, tokenizer, step, strategy):
    """What `fit` and `evaluate` are given from `step` on; the second is None without held-out shards."""
    train, data = config.train, config.data
    corrupt = OBJECTIVES[config.objective.name].make_corruption(config.objective, tokenizer, reader)

    def part(index, inputs):
        arguments = {"start_step": step, "corrupt": corrupt, "num_inputs": inputs}
        return reader.dataset(train.batch_size, train.seed, input_index=index, **arguments)

    dataset = feed(strategy, train.batch_size, part)
    if not data.eval_shards:
        return dataset, None
    held_out = ShardReader(data.eval_shards, tokenizer)
    for field in ("sequence_length", "target_length", "pair_task", "row_segments"):
        ours, theirs = getattr(reader.manifest, field), getattr(held_out.manifest, field)
        if ours != theirs:
            raise ConfigError(f"data.eval_shards were packed with {field} {theirs}, data.shards with {ours}")
    # Masked once and the same at every evaluation.
    measured = held_out.dataset(
        train.batch_size, train.seed, epochs=1, shuffle=False, drop_remainder=False, corrupt=corrupt
    )
    measured = measured.take(data.eval_batches).prefetch(tf.data.AUTOTUNE)
    return dataset, feed_batches(strategy, measured, rows=train.batch_size)


def _fit(config, objective, dataset, held_out, run, state, baseline, shown):
    train, step = config.train, state["step"]

    def evaluate():
        return objective.evaluate(held_out, verbose=0, return_dict=True)

    monitor = Monitor(
        run,
        step,
        train.steps,
        train.log_every,
        train.checkpoint_every,
        train.batch_size * baseline["tokens_per_example"],
        running_sums=state.get("running_sums"),
        headline=[(name, baseline[known]) for name, known in OBJECTIVES[config.objective.name].unigram.items()],
        evaluate=evaluate if held_out is not None else None,
        eval_every=train.eval_every,
        shown=shown,
    )
    begin = f"; step {step:,} is the newest that is saved" if step else " and no step was done"
    with interrupts.defer_signals(
        "saving a checkpoint after this step", f"interrupted{begin}; the same command continues from there"
    ):
        objective.fit(dataset, steps_per_epoch=train.steps - step, epochs=1, verbose=0, callbacks=[monitor])


def check_fit(config, model_config, reader, tokenizer):
    """Refuses a model that cannot read the shards.

    Args:
        config: the `PretrainConfig`.
        model_config: the configuration of the backbone.
        reader: the `ShardReader`.
        tokenizer: of the model.

    Raises:
        ConfigError: names the setting.
    """
    length, vocabulary = reader.sequence_length, tokenizer.vocabulary_size
    if config.data.sequence_length not in (None, length):
        raise ConfigError(
            f"data.sequence_length={config.data.sequence_length}, but the shards hold {length} tokens a row"
        )
    positions = model_config.max_positions
    if length > positions:
        raise ConfigError(
            f"the shards hold sequences of {length} tokens, the model has {positions} positions; "
            "set model.max_positions, or write shards with a smaller sequence length"
        )
    if vocabulary > model_config.vocabulary_size:
        raise ConfigError(
            f"the tokenizer has {vocabulary} tokens, model.vocabulary_size is {model_config.vocabulary_size}"
        )
    segments, layout = getattr(model_config, "num_segments", None), tokenizer.layout
    used = 1 + max(layout.second_segment, layout.end_segment if layout.at_end else 0)
    if segments is not None and model_config.reads_segments and segments < used:
        raise ConfigError(
            f"the layout '{tokenizer.layout_name}' of the tokenizer has {used} segments, model.num_segments is {segments}; "
            f"set model.num_segments={used}"
        )
