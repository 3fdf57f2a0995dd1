"""The settings of a run of GLUE or SuperGLUE. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from pathlib import Path

from bert_tf.config import build
from bert_tf.errors import ConfigError
from bert_tf.runs.experiment import Experiment
from bert_tf.runs.study_plan import merge
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning

#: The task from whose run others may start.
MNLI = "mnli"


@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """A run of all tasks of a benchmark, as in configs/benchmarks/.

    Attributes:
        finetune: what `FinetuneConfig` takes, common to all tasks; the kind of the task and the files are each task's
            own.
        tasks: name of a task -> what differs for it.
        from_mnli: whether tasks start from a model fine-tuned on MNLI: of GLUE RTE, STS-B and MRPC, as RoBERTa and
            ALBERT did, of SuperGLUE BoolQ, CB and RTE, as BERT++ did. true: MNLI of the same run of GLUE; a text: the
            folder of a run that was fine-tuned on MNLI.
    """

    finetune: dict = dataclasses.field(default_factory=dict)
    tasks: dict[str, dict] = dataclasses.field(default_factory=dict)
    from_mnli: bool | str = False


def plan_benchmark(benchmark, config, folders, output):
    """The fine-tuning of each task, every setting checked.

    Args:
        benchmark: a `Benchmark`.
        config: `BenchmarkConfig`.
        found: name -> folder, in order, as `Benchmark.find` returns them.
        output: the folder of all runs.

    Returns:
        list of `Experiment`, in the order in which they run: MNLI before those that start from it. Their folders have the
        names of the tasks.

    Raises:
        ConfigError: an unknown task, or a setting of any task that is wrong.
    """
    for name in config.tasks:
        benchmark.check_name(name, f"tasks.{name}: ")
    names, start = list(folders), config.from_mnli
    if start is True:
        if MNLI not in benchmark.tasks:
            raise ConfigError(f"{benchmark.title} has no MNLI; give a run fine-tuned on it, from_mnli=glue/mnli")
        if MNLI not in folders:
            raise ConfigError("from_mnli=true needs MNLI; add its folder, or set from_mnli=false")
        names.sort(key=lambda name: name in benchmark.from_mnli)
        start = str(Path(output) / MNLI)
    experiments = []
    for name in names:
        task, folder = benchmark.tasks[name], folders[name]
        settings = merge({"task": task.settings, "data": {"columns": task.columns}}, config.finetune)
        if start and name in benchmark.from_mnli:
            settings["init_from"] = start
        settings = merge(settings, config.tasks.get(name))
        for key in ("preset", "kind"):
            fixed = task.settings.get(key)
            if fixed and settings["task"][key] != fixed:
                raise ConfigError(f"tasks.{name}.task.{key} is {settings['task'][key]}; it must be {fixed}, remove it")
        data = {"train": str(folder / task.train), "dev": str(folder / task.dev)}
        if task.other_dev and (folder / task.other_dev).is_file():
            data["test"] = str(folder / task.other_dev)
        settings = build(FinetuneConfig, merge(settings, {"data": data}), f"tasks.{name}")
        check_finetuning(settings)
        experiments.append(Experiment(task.title, settings, Path(output) / name))
    return experiments
