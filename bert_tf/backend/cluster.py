"""The cluster that the environment variable TF_CONFIG describes; for training on several machines, on every backend."""

import os
from typing import Any

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import parse_json


def workers() -> list[str]:
    """The addresses of the cluster, chief and workers; empty without one.

    Raises:
        ConfigError: TF_CONFIG holds something else.
    """
    return [address for job in _jobs().values() for address in job]


def own_number() -> int:
    """The place of this process among `workers`.

    Raises:
        ConfigError: TF_CONFIG does not say it.
    """
    try:
        task = _described().get("task", {})
        kinds = list(_jobs())
        before = kinds[: kinds.index(task["type"])]
        index = range(len(_jobs()[task["type"]]))[int(task["index"])]
        return sum(len(_jobs()[kind]) for kind in before) + index
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise _invalid(f'it has no "task" that is one of its workers ({error})') from None


def need_two_workers() -> None:
    """Raises ConfigError where TF_CONFIG does not describe several workers."""
    if len(workers()) == 1:
        raise ConfigError(
            "strategy 'multi_worker' is for two workers or more, and TF_CONFIG lists one; name the others there, or set "
            "train.strategy to one or mirrored"
        )
    if not workers():
        raise ConfigError(
            "strategy 'multi_worker' needs the environment variable TF_CONFIG with the addresses of all workers, such as "
            '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'
        )


def joined_too_late(name: str, error: Exception) -> ConfigError:
    """The error for a cluster that is joined after `name`, the backend, has computed something."""
    return ConfigError(
        f"the cluster must be joined before anything else runs on {name}; call "
        f"bert_tf.training.strategies.make_strategy first. {name} says: {error}"
    )


def _jobs():
    """Kind of worker -> addresses."""
    try:
        cluster = _described().get("cluster", {})
        return {kind: list(cluster.get(kind, ())) for kind in ("chief", "worker")}
    except (AttributeError, TypeError) as error:
        raise _invalid(error) from None


def _described() -> dict[str, Any]:
    try:
        return parse_json(os.environ.get("TF_CONFIG") or "{}", "TF_CONFIG")
    except DataError as error:
        raise _invalid(error) from None


def _invalid(problem):
    return ConfigError(f"the environment variable TF_CONFIG is not a valid cluster description: {problem}")
