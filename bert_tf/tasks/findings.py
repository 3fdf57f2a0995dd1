"""What a fine-tuned model does with each example, in the few numbers and texts that a report shows.

`Task.findings` returns a dict with any of these keys; a run keeps it in report.json.

    labels       {label: {"precision", "recall", "f1", "support"}}, as `Task.report`
    entities     the same of types of entities
    confusion    counts by true label, then by predicted one, in the order of `labels`
    calibration  of `calibration`
    scatter      of `scatter`: true and predicted numbers
    errors       list of `error`, the most confident first
    wrong        how many errors there are in all
"""

import numpy as np

#: Bins of `calibration`.
BINS = 15
#: Errors that are kept of a data file.
MOST_ERRORS = 30
#: Characters of a text that are kept, around its first mark.
MOST_CHARACTERS = 700
#: Points that a scatter plot keeps.
MOST_POINTS = 1500


def calibration(confidences, correct):
    """How often a model is right that says that it is right with some probability.

    The expected calibration error is that of Guo et al. 2017 (equation 3), with their 15 bins of equal width: the mean
    distance between confidence and accuracy of the bins, weighted by their counts.

    Args:
        confidences: float [N], the probability of each prediction, in [0, 1].
        correct: bool [N].

    Returns:
        {"ece": float, "bins": [{"low", "high", "count", "confidence", "accuracy"}]}, of bins (low, high] that are not empty;
        0 is in the first.

    Example:
        calibration([0.9, 0.9, 0.6], [True, False, True])["ece"]  # (2 * 0.4 + 0.4) / 3 = 0.4
    """
    confidences, correct = np.asarray(confidences, np.float64), np.asarray(correct, bool)
    number = np.clip(np.ceil(confidences * BINS) - 1, 0, BINS - 1).astype(int)
    bins_with_examples, error = [], 0.0
    for i in range(BINS):
        inside = number == i
        if not inside.any():
            continue
        confidence, accuracy = float(confidences[inside].mean()), float(correct[inside].mean())
        error += abs(confidence - accuracy) * float(inside.mean())
        limits = {"low": i / BINS, "high": (i + 1) / BINS}
        bins_with_examples.append(limits | {"count": int(inside.sum()), "confidence": confidence, "accuracy": accuracy})
    return {"ece": error, "bins": bins_with_examples}


def scatter(true, predicted):
    """{"true", "predicted": lists of floats}; of more than 1,500 examples every k-th."""
    every = max(1, -(-len(true) // MOST_POINTS))
    return {"true": [float(x) for x in true[::every]], "predicted": [float(x) for x in predicted[::every]]}


def worst(wrong, badness):
    """The indexes of the errors to show.

    Args:
        wrong: bool [N], which examples are errors.
        badness: float [N], such as the confidence in what is wrong.

    Returns:
        list of int: at most 30 indexes of errors, the largest badness first; of equals the first.
    """
    (indexes,) = np.nonzero(wrong)
    return indexes[np.argsort(-np.asarray(badness)[indexes], kind="stable")][:MOST_ERRORS].tolist()


def errors(wrong, badness, error):
    """{"wrong": how many there are, "errors": those of `worst`}; `error` is function(index) -> what `error` below returns."""
    return {"wrong": int(np.sum(wrong)), "errors": [error(index) for index in worst(wrong, badness)]}


def error(examples, index, true=None, predicted=None, confidence=None, text=None, before=None, marks=()):
    """One wrong example, for "errors" of the findings.

    Args:
        examples: `Examples`.
        index: which of them.
        true, predicted: what is right, and what the model says: str or numbers; None where `marks` show it.
        confidence: the probability that the model gives its prediction; None if it has none.
        text: the text that the marks count in; None for that of the example.
        before: what stands before this text, such as the question about it; None for the first text of a pair.
        marks: (start, end, verdict, label): characters [start, end) of the text. The verdict is "right" (true and
            predicted), "wrong" (predicted, but not true) or "missed" (true, but not predicted).

    Returns:
        A dict for JSON; long texts are cut, around the first mark where there is one.
    """
    if text is None:  # the second text of a pair stands below the first
        pairs = examples.text_pairs
        text, before = (examples.texts[index], None) if pairs is None else (pairs[index], examples.texts[index])
    marks = sorted(tuple(mark) for mark in marks)
    begin = max(0, marks[0][0] - MOST_CHARACTERS // 3) if marks and len(text) > MOST_CHARACTERS else 0
    shown, cut = _cut(text[begin:])
    moved = bool(begin) - begin
    shown_marks = [[s + moved, min(e, begin + cut) + moved, *rest] for s, e, *rest in marks if s < begin + cut]
    result = {"where": f"{examples.unit} {examples.lines[index]}"} if examples.lines is not None else {}
    if before is not None:
        result["before"] = _cut(before)[0]
    result["text"] = "…" * bool(begin) + shown
    for name, value in (("true", true), ("predicted", predicted), ("confidence", confidence), ("marks", shown_marks)):
        if value is not None and value != []:
            result[name] = _cut(value)[0] if isinstance(value, str) else value
    return result


def _cut(text):
    """(the beginning of a text, how many of its characters that is)."""
    if len(text) <= MOST_CHARACTERS:
        return text, len(text)
    return text[:MOST_CHARACTERS] + "…", MOST_CHARACTERS
