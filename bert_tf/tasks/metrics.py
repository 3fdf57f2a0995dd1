"""The metrics of fine-tuning tasks, by scikit-learn and SciPy over the whole evaluation set.

All take arrays over every example at once, never batch means, so they are exact for any batch size. Both packages are
imported on first use: they take a second to load, and most commands compute no metric.
"""

import numpy as np


def accuracy(labels, predictions):
    """The fraction of equal entries of two int arrays."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


def confusion(labels, predictions, num_labels):
    """int array [num_labels, num_labels] of counts; rows are the true labels, columns the predictions."""
    from sklearn.metrics import confusion_matrix

    return confusion_matrix(labels, predictions, labels=range(num_labels))


def f1_scores(labels, predictions, num_labels):
    """float array [num_labels], the F1 of each label; 0 for a label neither true nor predicted anywhere."""
    from sklearn.metrics import f1_score

    return f1_score(labels, predictions, labels=range(num_labels), average=None, zero_division=0)


def macro_f1(labels, predictions):
    """The mean of the F1 over the labels that are true or predicted somewhere."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels, predictions, average="macro", zero_division=0))


def by_label(labels, predictions, names):
    """{name: {"precision", "recall", "f1", "support"}} of each label; 0 where undefined.

    Args:
        labels, predictions: int arrays.
        names: str, one a label. `support` is the number of examples with the label.
    """
    from sklearn.metrics import precision_recall_fscore_support

    numbers = range(len(names))
    scores = precision_recall_fscore_support(labels, predictions, labels=numbers, average=None, zero_division=0)
    return {
        name: {"precision": float(precision), "recall": float(recall), "f1": float(f1), "support": int(support)}
        for name, precision, recall, f1, support in zip(names, *scores)
    }


def matthews(labels, predictions):
    """Matthews correlation coefficient (Matthews 1975; for several classes Gorodkin 2004).

    0 if all labels or all predictions are the same.
    """
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(labels, predictions))


def pearson(labels, predictions):
    """Pearson's correlation of two float arrays; 0 if either is constant."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, labels, predictions)


def spearman(labels, predictions):
    """Spearman's rank correlation, equal values having the mean of their ranks; 0 if either is constant."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, labels, predictions)


def _correlation(function, labels, predictions):
    x, y = np.asarray(labels, np.float64), np.asarray(predictions, np.float64)
    return float(function(x, y).statistic) if np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0


def collapse(labels, predictions, names, what="example"):
    """A warning if all predictions are one class and the labels are not, else None.

    Fine-tuning large encoders on small data does this in some runs (Devlin et al. 2019, section 4.1;
    Mosbach et al. 2021): the dev metric is then the majority baseline and another seed may be fine.
    """
    predicted = np.unique(predictions)
    if len(predicted) != 1 or len(np.unique(labels)) < 2:
        return None
    hits = float(np.mean(np.asarray(labels) == predicted[0]))
    return (
        f"collapsed: every {what} is predicted '{names[predicted[0]]}', which is right for {100 * hits:.1f} % "
        "of them; try another seed, a lower learning rate, a longer warm-up or more epochs"
    )


def log_softmax(logits):
    """float64 log probabilities over the last axis."""
    from scipy.special import log_softmax as log_softmax_of

    return log_softmax_of(np.asarray(logits, np.float64), axis=-1)
