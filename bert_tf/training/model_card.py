"""The model card of a published model: the README.md that the Hugging Face Hub shows, with its metadata."""

import math
import os.path
from collections.abc import Mapping

from bert_tf.hub import is_hub_address
from bert_tf.parsing import dump_yaml
from bert_tf.training.run_records import (
    FINISHED,
    METRICS,
    NOT_RESULTS,
    REPORT,
    Findings,
    Finished,
    read_metrics,
    read_optional,
)

#: What the Hub calls what a model does: of a kind of task, or of an objective.
PIPELINES = {
    "classification": "text-classification",
    "multi_label": "text-classification",
    "regression": "text-classification",
    "tagging": "token-classification",
    "question_answering": "question-answering",
    "text_to_text": "text2text-generation",
    "masked_lm": "fill-mask",
    "causal_lm": "text-generation",
}
#: The arguments of `transformers.pipeline(...)` in the example of a card.
_EXAMPLES = {
    "question-answering": 'question="Who wrote it?", context="Ada Lovelace wrote it."',
    "fill-mask": '"The {mask} of the United States."',
    "text-generation": '"The state of"',
}
#: The settings that are paths.
_PATHS = ("train", "dev", "test", "shards", "eval_shards", "init_from", "init_embeddings_from", "imported_from", "path")
_NOT_SCORES = (*NOT_RESULTS, "epoch", "examples", "collapsed", "unknown_tokens", "train_loss", "warning")


def model_card(opened, name, license=None, encoder_only=False):
    """The text of README.md.

    Scores stand beside their baselines. Of the files of a training the names are told, not the folders.

    Args:
        opened: the `OpenedModel` that is published.
        name: of the model, for the title.
        license: an identifier of the Hub, such as "apache-2.0"; None: the card names none.
        encoder_only: whether the heads are left out.

    Example:
        print(model_card(bert_tf.load("run"), "sentiment", license="apache-2.0"))
    """
    source = opened.source
    task = None if encoder_only or source.task is None else opened.task
    objective = None if encoder_only or task or opened.objective_settings is None else opened.objective_settings.name
    pipeline = PIPELINES.get(task.kind if task else objective)
    settings = _without_folders(source.settings)
    base = source.settings.get("init_from") or (source.settings.get("train") or {}).get("init_from")
    base = base or source.settings.get("imported_from") or ("" if source.format == "run" else str(source.path))
    metadata = {"library_name": "transformers", "tags": ["bert_tf", opened.family]}
    metadata |= {"license": license} if license else {}
    metadata |= {"pipeline_tag": pipeline} if pipeline else {}
    if base and is_hub_address(base):
        metadata["base_model"] = base.removeprefix("hf://").partition("@")[0]
    rows = _results(opened, task)
    scores = [{"type": metric, "name": f"{metric} ({split})", "value": value} for split, metric, value, _ in rows]
    if task and scores:
        about = {"task": {"type": pipeline or task.kind}, "dataset": {"name": _dataset(settings), "type": "local"}}
        metadata["model-index"] = [{"name": name, "results": [about | {"metrics": scores}]}]
    parts = [
        f"---\n{dump_yaml(metadata)}---\n",
        f"# {name}\n",
        _about(opened, task, objective, base),
        _use(name, pipeline, opened),
        _table(rows),
        _labels(task),
        _training(settings, source),
    ]
    return "\n".join(part for part in parts if part)


def _about(opened, task, objective, base):
    config = opened.config
    sizes = [
        f"{getattr(config, key)} {words}"
        for key, words in (("num_layers", "layers"), ("hidden_size", "hidden units"), ("vocabulary_size", "tokens"))
        if hasattr(config, key)
    ]
    does = f"fine-tuned for the task `{task.kind}`" if task else f"pretrained with the objective `{objective}`"
    does = does if task or objective else "without a head"
    begins = (
        f" It started from `{base if is_hub_address(base) else os.path.basename(base.rstrip('/'))}`." if base else ""
    )
    return f"A model of the family `{opened.family}` ({', '.join(sizes)}), {does}.{begins} Written by bert_tf.\n"


def _use(name, pipeline, opened):
    lines, address = ["## Use\n", "```python"], f"hf://{name}" if "/" in name else name
    if pipeline and pipeline != "text2text-generation":
        mask = getattr(opened.tokenizer, "role_tokens", {}).get("mask", "[MASK]")
        given = _EXAMPLES.get(pipeline, '"A text."').replace("{mask}", mask)
        lines += [
            "from transformers import pipeline\n",
            f'pipeline("{pipeline}", "{name}")({given})',
            "```\n",
            "```python",
        ]
    lines += ["import bert_tf\n", f'model = bert_tf.load("{address}")', "```\n"]
    return "\n".join(lines)


def _results(opened, task):
    """(split, metric, value, {baseline: value}) of what the training measured; empty where the files do not say it."""
    if opened.source.format != "run" or (opened.source.task is not None and task is None):
        return []
    folder = opened.source.path
    rows = []
    if task:
        finished = read_optional(Finished, folder / FINISHED)
        splits = {} if finished is None else {"dev": finished.dev, "test": finished.test or {}}
        baselines = {} if finished is None else finished.baselines
    else:
        lines = read_metrics(folder / METRICS)
        held_out = [line for line in lines if any(key.startswith("eval_") for key in line)]
        split, line = ("held-out", held_out[-1]) if held_out else ("training", lines[-1] if lines else {})
        splits = {split: {k.removeprefix("eval_"): v for k, v in line.items() if k.startswith("eval_") or not held_out}}
        findings = read_optional(Findings, folder / REPORT)
        baselines = {split: findings.baselines if findings else {}}
    for split, metrics in splits.items():
        for metric, value in metrics.items():
            if (
                metric not in _NOT_SCORES
                and isinstance(value, (int, float))
                and not isinstance(value, bool)
                and math.isfinite(value)
            ):
                beside = {
                    key: scores[metric] for key, scores in (baselines.get(split) or {}).items() if metric in scores
                }
                rows.append((split, metric, value, beside))
    return rows


def _table(rows):
    if not rows:
        return ""
    names = list(dict.fromkeys(name for *_, beside in rows for name in beside))
    cells = [["data", "metric", "this model", *names]]
    cells += [
        [split, metric, f"{value:.4g}", *(f"{b[n]:.4g}" if n in b else "" for n in names)]
        for split, metric, value, b in rows
    ]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    lines.insert(1, "|" + "---|" * len(cells[0]))
    return "## Results\n\n" + "\n".join(lines) + "\n"


def _labels(task):
    if task is None or not task.labels:
        return ""
    shown = [f"`{label}`" for label in task.labels[:50]]
    more = f" and {len(task.labels) - 50} more" if len(task.labels) > 50 else ""
    return f"## Labels\n\n{', '.join(shown)}{more}\n"


def _training(settings, source):
    if not settings:
        return ""
    data = settings.get("data") or {}
    files = [f"{key}: `{data[key]}`" for key in ("train", "dev", "test", "shards", "eval_shards") if data.get(key)]
    told = f"## Training\n\nData: {', '.join(files)}.\n\n" if files else "## Training\n\n"
    if "imported_from" in settings:
        return told + f"```yaml\n{dump_yaml(settings)}```\n"
    command = "bert-tf finetune" if source.task is not None else "bert-tf pretrain"
    return told + f"The same again: `{command}` with this config.yaml:\n\n```yaml\n{dump_yaml(settings)}```\n"


def _dataset(settings):
    data = settings.get("data") or {}
    return data.get("train") or "unknown"


def _without_folders(settings):
    """The settings with the names of files and folders in place of their paths, which say where somebody works."""
    if not isinstance(settings, Mapping):
        return settings
    return {
        key: os.path.basename(value.rstrip("/")) if key in _PATHS and _is_path(value) else _without_folders(value)
        for key, value in settings.items()
    }


def _is_path(value):
    return isinstance(value, str) and "://" not in value
