"""The settings of a run of GLUE. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from pathlib import Path

from bert_tf.config import build, nearest
from bert_tf.errors import ConfigError
from bert_tf.tasks.glue_files import GLUE_FILES
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning
from bert_tf.training.study_plan import merge

#: The task from whose run others may start, and these others (Liu et al. 2019, section 5.1; Lan et al. 2020, section 4.9).
MNLI, FROM_MNLI = "mnli", ("rte", "stsb", "mrpc")


@dataclasses.dataclass(frozen=True)
class GlueConfig:
    """GLUE, as in configs/benchmarks/glue.yaml.

    Attributes:
        finetune: what `FinetuneConfig` takes, common to all tasks; the preset and the files are each task's own.
        tasks: name of a task -> what differs for it.
        from_mnli: whether RTE, STS-B and MRPC start from the fine-tuned MNLI, as RoBERTa and ALBERT did.
    """

    finetune: dict = dataclasses.field(default_factory=dict)
    tasks: dict = dataclasses.field(default_factory=dict)
    from_mnli: bool = False


def plan_glue(config, found, output):
    """The fine-tuning of each task, every setting checked.

    Args:
        config: `GlueConfig`.
        found: preset -> folder, in order, as `find_glue` returns them.
        output: the folder of all runs.

    Returns:
        dict: preset -> `FinetuneConfig`, in the order in which they run: MNLI before those that start from it.

    Raises:
        ConfigError: an unknown task, or a setting of any task that is wrong.
    """
    for name in config.tasks:
        if name not in GLUE_FILES:
            raise ConfigError(f"tasks.{name}: GLUE has no such task{nearest(name, GLUE_FILES)}")
    names = list(found)
    if config.from_mnli:
        if MNLI not in found:
            raise ConfigError("from_mnli=true needs MNLI; add its folder, or set from_mnli=false")
        names.sort(key=lambda name: name in FROM_MNLI)
    plans = {}
    for name in names:
        files, folder = GLUE_FILES[name], found[name]
        other = files.other_dev and folder / files.other_dev
        settings = merge(config.finetune, config.tasks.get(name))
        settings = merge(settings, {
            "task": {"preset": name},
            "data": {"train": str(folder / "train.tsv"), "dev": str(folder / files.dev)}
            | ({"test": str(other)} if other and other.is_file() else {}),
        } | ({"init_from": str(Path(output) / MNLI)} if config.from_mnli and name in FROM_MNLI else {}))  # fmt: skip
        plans[name] = build(FinetuneConfig, settings, f"tasks.{name}")
        check_finetuning(plans[name])
    return plans
