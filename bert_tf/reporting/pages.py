"""The pages of one run, and of several runs together."""

from bert_tf.markup import h
from bert_tf.reporting.curves import baselines_of
from bert_tf.reporting.document import details, section
from bert_tf.reporting.examples import findings_section
from bert_tf.reporting.parts import curves, distinct, header, kept, line_labels, settings_of, tile
from bert_tf.reporting.tables import ASIDE, configuration, differences, metrics_table, runs_table
from bert_tf.table import finite, number_text


def run_page(run):
    """(title, parts) of the page of one `Run`."""
    if run.tunes:
        parts = _finetuning_parts(run)
    else:
        parts = _pretraining_parts(run)
    return f"{run.name} · {_kind(run)}", [header(run.name, _about(run)), *kept(parts), _settings(run)]


def runs_page(runs):
    """(title, parts) of the page on which runs are compared."""
    names = distinct([run.name for run in runs])
    labels, legend = line_labels(names)
    entries = []
    for color, (label, run) in enumerate(zip(labels, runs, strict=True)):
        entries += [(label if seed is run.best else "", color, seed) for seed in run.curves if seed.lines]
    paths = [[h("dt", label), h("dd", str(run.path))] for label, run in zip(labels, runs, strict=True)]
    found = [differences(labels, [settings_of(run) for run in runs])]
    parts = [
        legend,
        section("Results", runs_table(names, [_results(run) for run in runs]), note=_results_note(runs)),
        section("Curves", curves(entries), note="Pale: training, where something else is in the same chart."),
        section("What differs in the configuration", found),
        section("Runs", h("dl", paths)),
    ]
    return " · ".join(names), [header(f"{len(runs)} runs", ", ".join(dict.fromkeys(map(_kind, runs)))), *kept(parts)]


def _kind(run):
    return "fine-tuning" if run.tunes else "pretraining"


def _about(run):
    """One line: what was done with which model."""
    task, model = run.config.get("task") or {}, run.best.config.get("model") or {}
    objective = run.config.get("objective") or {}
    about = [_kind(run).capitalize(), task.get("kind") if run.tunes else objective.get("name"), model.get("family")]
    sizes = [(model.get("num_layers"), "layers"), (model.get("hidden_size"), "wide")]
    about += [f"{value} {unit}" for value, unit in sizes if isinstance(value, int)]
    steps = max((line["step"] for one in run.curves for line in one.lines), default=0)
    wanted = (run.config.get("train") or {}).get("steps")
    of = f" of {number_text(wanted)}" if isinstance(wanted, int) and wanted > steps else ""
    about.append(f"{number_text(steps)}{of} steps")
    if run.seeds:
        about.append(f"{len(run.seeds)} seeds")
    return " · ".join(str(part) for part in about if part)


def _settings(run):
    return section("Configuration", configuration(settings_of(run)))


# -- pretraining ---------------------------------------------------------------------------------


def _pretraining_parts(run):
    known = _results(run)
    baselines = baselines_of(run, "dev")
    tiles = []
    for name, value in known.items():
        base = name.removeprefix("eval_")
        others = [(b, metrics[base]) for b, metrics in baselines.items() if base in metrics]
        if others or (name.startswith("eval_") and base != "loss"):
            where = "held-out" if name.startswith("eval_") else "training"
            tiles.append(tile(f"{where} {base}", value, None, others))
    return [
        h("div", tiles[:6], class_="tiles") if tiles else None,
        section("Curves", curves([("", 0, run)])),
        section("Metrics", metrics_table(_measured(known, baselines)), note="The last that were logged.")
        if known
        else None,
    ]


def _measured(known, baselines):
    """The last numbers of a pretraining as `metrics_table` takes them."""
    held_out = {name.removeprefix("eval_"): value for name, value in known.items() if name.startswith("eval_")}
    training = {name: value for name, value in known.items() if not name.startswith("eval_")}
    names = sorted(training, key=lambda name: ("loss" not in name, name != "loss", name))
    found = {"training": {"mean": {name: training[name] for name in names}, "spread": {}, "baselines": {}}}
    if held_out:
        found["held-out"] = {"mean": held_out, "spread": {}, "baselines": {}}
    list(found.values())[-1]["baselines"] = baselines
    return found


def _results(run):
    """{metric: value}: of a fine-tuning those of its best epoch, of a pretraining the last ones."""
    if run.tunes:
        return {
            f"{split} {name}": value
            for split, result in splits_of(run).items()
            for name, value in result["mean"].items()
            if finite(value) and name not in ("step", "epoch", *_COUNTS)
        }
    last = {}
    for line in run.lines:
        last |= {name: value for name, value in line.items() if finite(value) and name not in ASIDE}
    return last


_COUNTS = ("examples", "words", "train_loss", "unknown_tokens")


def _results_note(runs):
    if all(run.tunes for run in runs):
        return "Of the best epoch; of several seeds the mean."
    return None if any(run.tunes for run in runs) else "The last that were logged."


# -- fine-tuning ---------------------------------------------------------------------------------


def splits_of(run):
    """{split: {"mean", "spread", "baselines"}} of a fine-tuning, of all seeds where they are finished."""
    found = {}
    for split in ("dev", "test"):
        summary = getattr(run.summary, split) if run.summary else None
        if summary:
            found[split] = {name: summary.get(name) or {} for name in ("mean", "spread", "baselines")}
        elif run.finished and getattr(run.finished, split):
            numbers = {k: v for k, v in getattr(run.finished, split).items() if finite(v)}
            found[split] = {"mean": numbers, "spread": {}, "baselines": baselines_of(run, split)}
    return found


def _finetuning_parts(run):
    splits, metric = splits_of(run), _metric(run)
    tiles = []
    for split, result in splits.items():
        others = [
            (name, metrics[metric]) for name, metrics in result["baselines"].items() if finite(metrics.get(metric))
        ]
        if finite(result["mean"].get(metric)):
            tiles.append(tile(f"{split} {metric}", result["mean"][metric], result["spread"].get(metric), others))
    for split in splits:
        calibration = _findings(run.best, split).get("calibration")
        if calibration:
            seed = f" of {run.best.name}" if run.seeds else ""
            tiles.append(tile(f"{split} calibration error (ECE){seed}", calibration["ece"], None, []))
    warnings = [h("p", text, class_="warning") for text in (run.summary.warnings if run.summary else [])]
    if not splits:
        warnings.append(h("p", "This run is not finished.", class_="warning"))
    parts = [*warnings, h("div", tiles, class_="tiles") if tiles else None]
    parts.append(section("Curves", curves(_entries(run)), note=_curves_note(run)))
    if splits:
        note = "Mean ± sample standard deviation over the seeds. " if run.seeds else ""
        parts.append(section("Metrics", metrics_table(splits), note=f"{note}Of the epoch with the best dev {metric}."))
    if run.seeds:
        done = [seed for seed in run.seeds if seed.finished]
        best = run.best.name if run.summary else None
        parts.append(
            section("Seeds", runs_table([s.name for s in done], [_results(s) for s in done], best) if done else None)
        )
    return parts + _all_findings(run)


def _entries(run):
    if not run.seeds:
        return [("", 0, run)]
    return [(seed.name, color, seed) for color, seed in enumerate(run.seeds)]


def _curves_note(run):
    several = "Pale: training. " if run.seeds else ""
    return f"{several}The ring marks the best epoch." if any(one.finished for one in run.curves) else several or None


def _metric(run):
    known = run.summary or run.finished
    return known.metric if known else None


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
            found = kept([findings_section(split, _findings(seed, split)) for split in ("dev", "test")])
            parts.append(details(f"the same of {seed.name}", found) if found else None)
    return parts
