"""Successive halving: all rows of a study get a short training, and the better half of them a longer one."""

import dataclasses
import math
from pathlib import Path

from bert_tf.errors import ConfigError, NonFiniteError
from bert_tf.runs.study import run_study
from bert_tf.runs.study_plan import merge, plan


def run_halving(config, corpus, tokenizer, output, held_out=None):
    """Runs the rounds of a study with `halving`; each round pretrains its rows from scratch.

    Jamieson and Talwalkar 2016 (arXiv:1502.07943), with the number of updates as the resource. The row "a" is
    "a-round-1", "a-round-2" and so on in folders and tables. The same call continues an interrupted search.

    Args:
        config: StudyConfig with `halving`. `train.steps` of a row is what it gets in the last round; rows that shall be
            compared for the same time have as many steps as they do in that time.
        corpus, tokenizer, output, held_out: of `run_study`.

    Returns:
        The `Table` of `run_study`, with the rows of all rounds.

    Raises:
        ConfigError: `halving.metric` is not in the table; and as `run_study`.
        NonFiniteError: every row of a round diverged.
    """
    plan(config, Path(output), held_out is not None)  # before the settings are shortened
    halving, rows, names = config.halving, {}, list(config.rows)
    for number in range(1, halving.rounds + 1):
        part = halving.keep ** (halving.rounds - number)
        new = {f"{name}-round-{number}": _shorten(config, name, part) for name in names}
        rows |= new
        settings = dataclasses.replace(config, rows=rows, halving=None)
        table = run_study(settings, corpus, tokenizer, output, held_out, list(new))
        this_round = {f"{name}-round-{number}": name for name in names}
        scores = {this_round[row]: means for row, means in table.means().items() if row in this_round}
        if not scores:
            raise NonFiniteError(
                f"every row of round {number} of {halving.rounds} diverged ({', '.join(names)}); start the search in another "
                "folder, with a lower learning rate, a longer warm-up or a smaller clip"
            )
        order = [table.rows[i][0] for i in table.ranked(halving.metric)] if halving.metric in table.lower else []
        names = [this_round[row] for row in order if row in this_round]  # the others diverged
        if not names:
            name, means = next(iter(scores.items()))
            raise ConfigError(f"halving.metric is '{halving.metric}', and row '{name}' has: {', '.join(means)}")
        print(f"\n== round {number} of {halving.rounds}, from best to worst: {', '.join(names)}", flush=True)
        names = names[: math.ceil(halving.keep * len(names))]
    return table


def _shorten(config, name, part):
    """A copy of a row with `part` of its updates and of its warm-up."""
    row = dict(config.rows[name] or {})
    train = merge(config.pretrain, row.get("pretrain")).get("train") or {}
    together = train.get("steps_per_execution", 1)
    steps = max(1, round(part * train["steps"] / together)) * together
    shorter = {"train": {"steps": steps}}
    warmup = (merge(config.pretrain, row.get("pretrain")).get("optimizer") or {}).get("warmup_steps")
    if warmup:
        shorter["optimizer"] = {"warmup_steps": round(part * warmup)}
    row["pretrain"] = merge(row.get("pretrain"), shorter)
    return row
