"""The page of one run."""

from bert_tf.markup import h
from bert_tf.reporting.curves import baselines_of
from bert_tf.reporting.document import details, section
from bert_tf.reporting.examples import findings_section
from bert_tf.reporting.parts import curves, header, settings_of, tile
from bert_tf.reporting.tables import configuration, metrics_table, runs_table
from bert_tf.table import finite, number_text
from bert_tf.training.run_records import NOT_RESULTS


def run_page(run):
    """(title, parts) of the page of one `Run`."""
    splits = splits_of(run)
    warnings = [h("p", text, class_="warning") for text in (run.summary.warnings if run.summary else [])]
    if run.is_finetuning and not splits:
        warnings.append(h("p", "This run is not finished.", class_="warning"))
    tiles, done = [*_tiles(run, splits)][:6], [seed for seed in run.seeds if seed.finished]
    seeds = runs_table([s.name for s in done], [results_of(s) for s in done], run.best.name if run.summary else None)
    entries = [(one.name if run.seeds else "", color, one) for color, one in enumerate(run.curves)]
    parts = [
        header(run.name, _about(run)),
        *warnings,
        h("div", tiles, class_="tiles") if tiles else None,
        section("Curves", curves(entries), note=_curves_note(run)),
        section("Metrics", metrics_table(splits).html(), note=note_of([run])) if splits else None,
        section("Seeds", seeds.html()) if done else None,
        *_all_findings(run),
        section("Configuration", configuration(settings_of(run))),
    ]
    return f"{run.name} · {kind_of(run)}", parts


def kind_of(run):
    """What was done, for titles."""
    return "fine-tuning" if run.is_finetuning else "pretraining"


def _about(run):
    """One line: what was done with which model."""
    task, model = run.config.get("task") or {}, run.best.config.get("model") or {}
    objective = run.config.get("objective") or {}
    what = task.get("kind") if run.is_finetuning else objective.get("name")
    about = [kind_of(run).capitalize(), what, model.get("family")]
    sizes = [(model.get("num_layers"), "layers"), (model.get("hidden_size"), "wide")]
    about += [f"{value} {unit}" for value, unit in sizes if isinstance(value, int)]
    steps = max((line["step"] for one in run.curves for line in one.lines), default=0)
    planned = (run.config.get("train") or {}).get("steps")
    of = f" of {number_text(planned)}" if isinstance(planned, int) and planned > steps else ""
    about.append(f"{number_text(steps)}{of} steps")
    if run.seeds:
        about.append(f"{len(run.seeds)} seeds")
    return " · ".join(str(part) for part in about if part)


def _tiles(run, splits):
    """The numbers that are seen first: those of the metric of a task, or with a baseline, or on held-out text."""
    record = run.summary or run.finished
    for split, result in splits.items():
        for name, value in result["mean"].items():
            baselines = baselines_of(run.best, split).items()
            others = [(other, metrics[name]) for other, metrics in baselines if finite(metrics.get(name))]
            is_shown = others or (split == "held-out" and name != "loss")
            if finite(value) and (name == record.metric if run.is_finetuning else is_shown):
                yield tile(f"{split} {name}", value, result["spread"].get(name), others)
    for split in splits:
        calibration = _findings(run.best, split).get("calibration") if run.is_finetuning else None
        if calibration:
            seed = f" of {run.best.name}" if run.seeds else ""
            yield tile(f"{split} calibration error (ECE){seed}", calibration["ece"], None, [])


def splits_of(run):
    """{split: {"mean", "spread", "baselines"}}: of a fine-tuning of all seeds where they are finished."""
    if not run.is_finetuning:
        splits = {split: {"mean": {}, "spread": {}, "baselines": {}} for split in ("training", "held-out")}
        last = sorted(results_of(run).items(), key=lambda pair: ("loss" not in pair[0], pair[0] != "loss", pair[0]))
        for name, value in last:
            split = "held-out" if name.startswith("eval_") else "training"
            splits[split]["mean"][name.removeprefix("eval_")] = value
        splits = {split: numbers for split, numbers in splits.items() if numbers["mean"]}
        if splits:
            list(splits.values())[-1]["baselines"] = baselines_of(run, "dev")
        return splits
    splits = {}
    for split in ("dev", "test"):
        summary = getattr(run.summary, split) if run.summary else None
        if summary:
            splits[split] = {name: summary.get(name) or {} for name in ("mean", "spread", "baselines")}
        elif run.finished and getattr(run.finished, split):
            numbers = {k: v for k, v in getattr(run.finished, split).items() if finite(v)}
            splits[split] = {"mean": numbers, "spread": {}, "baselines": baselines_of(run, split)}
    return splits


def results_of(run):
    """{metric: value}: of a fine-tuning those of its best epoch, of a pretraining the last ones."""
    if run.is_finetuning:
        numbers = {f"{split} {name}": v for split, r in splits_of(run).items() for name, v in r["mean"].items()}
        return {name: v for name, v in numbers.items() if finite(v) and name.partition(" ")[2] not in _NOT_SHOWN}
    last = {}
    for line in run.lines:
        last |= {name: value for name, value in line.items() if finite(value) and name not in NOT_RESULTS}
    return last


_NOT_SHOWN = ("step", "epoch", "examples", "words", "train_loss", "unknown_tokens")


def note_of(runs):
    """Which of their numbers `results_of` has."""
    if all(run.is_finetuning for run in runs):
        return "Of the best epoch; of several seeds the mean."
    return None if any(run.is_finetuning for run in runs) else "The last that were logged."


def _curves_note(run):
    several = "Pale: training. " if run.seeds else ""
    return (several + "The ring marks the best epoch." * any(one.finished for one in run.curves)) or None


def _findings(run, split):
    return (getattr(run.findings, split) if run.findings else None) or {}


def _all_findings(run):
    """The examples of the best seed, and folded away those of the others."""
    best = run.best
    if best.findings is None:
        return []
    parts = [findings_section(split, _findings(best, split)) for split in ("dev", "test")]
    if run.seeds and any(parts):
        parts.insert(0, h("p", f"The following shows {best.name}, which later commands use.", class_="note lead"))
    for seed in run.seeds:
        if seed is not best:
            sections = [findings_section(split, _findings(seed, split)) for split in ("dev", "test")]
            parts.append(None if sections == [None, None] else details(f"the same of {seed.name}", sections))
    return parts
