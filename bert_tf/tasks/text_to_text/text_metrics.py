"""Metrics of generated texts: exact match, labels, numbers, answers to questions, BLEU and ROUGE."""

import collections
import importlib

import numpy as np

from bert_tf.errors import Advice, ConfigError
from bert_tf.tasks import metrics
from bert_tf.tasks.spans.scorer import raw_scores
from bert_tf.tasks.text_to_text.t5_formats import class_of, names_referent, number_of

#: What `task.text_metrics` names -> (the package, the metrics).
TEXT_METRICS = {"bleu": ("sacrebleu", ("bleu",)), "rouge": ("rouge_score", ("rouge1", "rouge2", "rougeLsum"))}
#: What targets are -> the metrics that are always there.
SCORES = {
    "labels": ("accuracy", "f1", "f1_macro", "matthews", "question_exact_match"),
    "number": ("pearson", "spearman"),
    "answers": ("answer_em", "answer_f1"),
    "referent": ("accuracy",),
    "texts": (),
}


def check_packages(names):
    """Refuses metrics whose packages are not installed.

    Raises:
        ConfigError: names the package and the extra that has it.
    """
    for name in names:
        package, _ = TEXT_METRICS[name]
        try:
            importlib.import_module(package)
        except ImportError:
            raise ConfigError(
                f"task.text_metrics has '{name}', which needs the package {package.replace('_', '-')}, and it is not "
                "installed; install it with pip install 'bert_tf[text-metrics]', or set ",
                Advice("task.text_metrics", "[]"),
            ) from None


def label_scores(targets, texts, labels, groups=None):
    """Accuracy, F1 and Matthews correlation of texts that should be labels, as fractions.

    A text that is not a label counts as the number -1, which is always wrong: `unparsable` is how many there are.
    `f1`, with two labels, is of the second one.

    Args:
        targets, texts: lists of str.
        labels: tuple of str.
        groups: None, or what the examples of one question have in common (MultiRC): then `question_exact_match` is the
            fraction of questions of which every example is right.
    """
    from sklearn.metrics import f1_score, matthews_corrcoef

    true, predicted = (np.array([class_of(text, labels) for text in side]) for side in (targets, texts))
    scores = {"accuracy": metrics.accuracy(true, predicted), "unparsable": int(np.sum(predicted < 0))}
    if len(labels) == 2:
        # As T5 has it: in place of -1 the label that is wrong.
        judged = np.where(predicted < 0, 1 - true, predicted)
        scores["f1"] = float(f1_score(true, judged, labels=[1], average=None, zero_division=0)[0])
    # As T5's `mean_multiclass_f1`: over all labels, 0 for one that neither side has.
    scores["f1_macro"] = float(f1_score(true, predicted, labels=range(len(labels)), average="macro", zero_division=0))
    scores["matthews"] = float(matthews_corrcoef(true, predicted))
    if groups is not None:
        right = collections.defaultdict(lambda: True)
        for group, a, b in zip(groups, true, predicted):
            right[group] &= bool(a == b)
        scores["question_exact_match"] = float(np.mean(list(right.values())))
    return scores


def number_scores(targets, texts):
    """Correlations of texts that should be numbers; one that is none counts as -1, `unparsable` counts them."""
    true, predicted = (np.array([number_of(text) for text in side]) for side in (targets, texts))
    return {
        "pearson": metrics.pearson(true, predicted),
        "spearman": metrics.spearman(true, predicted),
        "unparsable": int(np.sum(predicted == -1.0)),
    }


def referent_scores(targets, texts, labels):
    """WSC: `accuracy` of whether the text names the target, compared with the bools `labels`."""
    predicted = np.array([names_referent(text, target) for text, target in zip(texts, targets)])
    return {"accuracy": metrics.accuracy(np.array(labels, int), predicted), "unparsable": int(np.sum(predicted < 0))}


def answer_scores(answers, texts, scorer="squad"):
    """SQuAD's exact match and F1 of words, each the largest over the accepted answers.

    Rajpurkar et al. 2016, section 6.1: without capitals, punctuation, articles and further white space.

    Args:
        answers: list of lists of str.
        texts: list of str.
        scorer: of `spans.scorer.SCORERS`, which normalizes the texts.
    """
    em, f1 = raw_scores(answers, texts, scorer)
    return {"answer_em": float(em.mean()), "answer_f1": float(f1.mean())}


def free_text_scores(targets, texts, names, bleu_tokenize="intl"):
    """The metrics that `names`, of TEXT_METRICS, stand for.

    Returns:
        "bleu": 0 to 100, with "bleu_signature" (str), both by sacrebleu; "rouge1", "rouge2", "rougeLsum": means of the
        examples' F-measures, 0 to 1, by rouge-score. As T5 has it, " . " ends a sentence for rougeLsum. rouge-score
        compares only the letters a to z and digits: in other scripts it finds nothing.
    """
    scores = {}
    if "bleu" in names:
        from sacrebleu.metrics import BLEU

        bleu = BLEU(tokenize=bleu_tokenize)
        scores["bleu"] = float(bleu.corpus_score(texts, [targets]).score)
        scores["bleu_signature"] = str(bleu.get_signature())
    if "rouge" in names:
        from rouge_score.rouge_scorer import RougeScorer

        kinds = TEXT_METRICS["rouge"][1]
        scorer = RougeScorer(kinds)
        sides = [[text.replace(" . ", " .\n") for text in side] for side in (targets, texts)]
        each = [scorer.score(target=target, prediction=text) for target, text in zip(*sides)]
        scores |= {kind: float(np.mean([one[kind].fmeasure for one in each])) for kind in kinds}
    return scores
