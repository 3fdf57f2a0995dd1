"""What a fine-tuned model does with the examples of a file: labels, confusion, calibration, errors."""

import itertools

from bert_tf.markup import h
from bert_tf.reporting.diagrams import reliability, scatter
from bert_tf.reporting.document import details, section
from bert_tf.reporting.tables import confusion_table, fold, labels_table
from bert_tf.table import number_text

#: Errors that are seen at once; the others are folded away.
FIRST_ERRORS = 8


def findings_section(split, findings):
    """The section of one split, such as "dev"; None where the task has no findings."""
    scores = findings.get("labels") or findings.get("entities")
    parts = []
    if scores:
        parts.append(h("div", h("h3", "Scores"), fold(labels_table(findings))))
    if scores and "confusion" in findings:
        parts.append(confusion_table(list(scores), findings["confusion"]))
    if (findings.get("calibration") or {}).get("bins"):
        parts.append(reliability(findings["calibration"]))
    if (findings.get("scatter") or {}).get("true"):
        parts.append(scatter(findings["scatter"]))
    grid = h("div", parts, class_="findings") if parts else None
    return section(f"On the {split} file", grid, _errors(findings))


def _errors(findings):
    errors = findings.get("errors")
    if errors is None:
        return None
    is_counted = "wrong" in findings
    if not errors:
        return h("p", "No example is wrong.") if is_counted else None
    confident = any("confidence" in error for error in errors)
    parts = [h("h3", f"{'Most confident' if confident else 'Worst' if is_counted else 'Largest'} errors")]
    if is_counted:
        parts.append(h("p", f"{len(errors)} of the {number_text(findings['wrong'])} wrong ones.", class_="note"))
    if any("marks" in one for one in errors):
        legend = [h("mark", verdict, class_=verdict) for verdict in ("right", "wrong", "missed")]
        means = ("as it should be", "predicted and not true", "true and not predicted")
        parts.append(h("p", [[mark, f" {text}. "] for mark, text in zip(legend, means)], class_="note"))
    first, more = ([_error(one) for one in some] for some in (errors[:FIRST_ERRORS], errors[FIRST_ERRORS:]))
    folded_away = details(f"{len(more)} more", h("ol", more)) if more else None
    return h("div", parts, h("ol", first), folded_away, class_="errors")


def _error(one):
    facts = [h("span", one["where"], class_="quiet")] if "where" in one else []
    for name in ("true", "predicted"):
        if name in one:
            facts.append(h("span", f"{name} ", h("b", h("bdi", number_text(one[name])), class_=name)))
    if "confidence" in one:
        facts.append(h("span", "confidence ", h("data", f"{one['confidence']:.3f}", value=one["confidence"])))
    texts = [h("p", one["before"], class_="text", dir="auto")] if "before" in one else []
    texts.append(h("p", mark_text(one["text"], one.get("marks", ())), class_="text", dir="auto"))
    return h("li", h("p", facts, class_="facts"), texts)


def mark_text(text, marks):
    """The text as children for `h`, with marks in it that may overlap.

    Args:
        text: str.
        marks: lists (start, end, verdict, label): characters [start, end) of the text.
    """
    edges = sorted({0, len(text), *(min(max(p, 0), len(text)) for start, end, *_ in marks for p in (start, end))})
    children = []
    for first, last in itertools.pairwise(edges):
        here = [mark for mark in marks if mark[0] <= first and last <= mark[1]]
        part = text[first:last]
        if not here:
            children.append(part)
            continue
        # A label stands once, where its mark begins.
        begins = [h("span", str(label), class_=f"kind {kind}") for start, _, kind, label in here if start == first]
        children.append(h("mark", begins, part, class_=" ".join(sorted({mark[2] for mark in here}))))
    return children
