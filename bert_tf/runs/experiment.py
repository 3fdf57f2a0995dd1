"""One run of many, and its numbers. No TensorFlow is imported."""

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One run of many.

    Attributes:
        name: what is printed of it.
        config: its settings, such as a `FinetuneConfig`; those of fine-tuning name in `init_from` where it starts.
        folder: its run directory.
    """

    name: str
    config: object
    folder: Path


def numbers(result, metric):
    """(mean, sample standard deviation or None) of a metric, of `summary["dev"]` or `summary["test"]` of a fine-tuning."""
    return result["mean"][metric], result.get("spread", {}).get(metric)
