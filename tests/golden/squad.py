"""Writes tests/fixtures/squad/scores.json: predictions, accepted answers and the scores of the official scorers.

Run by hand; only the standard library is used:

    python tests/golden/squad.py tests/fixtures/squad

The functions follow `evaluate-v1.1.py` and `evaluate-v2.0.py` of SQuAD and `evaluate-korquad_v1.0.py` of KorQuAD statement
by statement, question by question in dicts, and share nothing with the library. All scores are percent, as there.
"""

import collections
import json
import random
import re
import string
import sys
from pathlib import Path

ENGLISH = "the The a an cat Cat, cats. dog-house (dog) 'dog' U.S. US 1,000 naïve é — – ... The-end An.".split() + [
    "  ",
    "\n",
]
KOREAN = '서울 서울에서 《춘향전》 〈시〉 ‘말’ (1999년) 1999년 "인용" 부산, 부산. a The'.split() + ["  "]


def squad_normalize(s):
    exclude = set(string.punctuation)
    text = "".join(ch for ch in s.lower() if ch not in exclude)
    text = re.sub(re.compile(r"\b(a|an|the)\b", re.UNICODE), " ", text)
    return " ".join(text.split())


def korquad_normalize(s):
    for mark in ["'", '"', "《", "》", "<", ">", "〈", "〉", "\\(", "\\)", "‘", "’"]:
        s = re.sub(mark, " ", s)
    exclude = set(string.punctuation)
    return " ".join("".join(ch for ch in s.lower() if ch not in exclude).split())


def harmonic(common, prediction, truth):
    num_same = sum(common.values())
    if num_same == 0:
        return 0
    precision, recall = 1.0 * num_same / len(prediction), 1.0 * num_same / len(truth)
    return (2 * precision * recall) / (precision + recall)


def f1_version_1(prediction, truth):
    a, b = squad_normalize(prediction).split(), squad_normalize(truth).split()
    return harmonic(collections.Counter(a) & collections.Counter(b), a, b)


def f1_korquad(prediction, truth):
    a = [c for token in korquad_normalize(prediction).split() for c in token]
    b = [c for token in korquad_normalize(truth).split() for c in token]
    return harmonic(collections.Counter(a) & collections.Counter(b), a, b)


def f1_version_2(gold, pred):
    a, b = (squad_normalize(s).split() if s else [] for s in (gold, pred))
    if len(a) == 0 or len(b) == 0:
        return int(a == b)
    return harmonic(collections.Counter(a) & collections.Counter(b), b, a)


def version_1(golds, preds, f1, normalize):
    exact = score = total = 0
    for qid, truths in golds.items():
        total += 1
        if qid not in preds:
            continue
        exact += max(normalize(preds[qid]) == normalize(t) for t in truths)
        score += max(f1(preds[qid], t) for t in truths)
    return {"em": 100.0 * exact / total, "f1": 100.0 * score / total}


def raw_version_2(golds, preds):
    exact_scores, f1_scores = {}, {}
    for qid, truths in golds.items():
        truths = [t for t in truths if squad_normalize(t)]
        if not truths:
            truths = [""]
        if qid not in preds:
            continue
        exact_scores[qid] = max(int(squad_normalize(t) == squad_normalize(preds[qid])) for t in truths)
        f1_scores[qid] = max(f1_version_2(t, preds[qid]) for t in truths)
    return exact_scores, f1_scores


def apply_no_ans_threshold(scores, na_probs, qid_to_has_ans, na_prob_thresh):
    new_scores = {}
    for qid, s in scores.items():
        pred_na = na_probs[qid] > na_prob_thresh
        new_scores[qid] = float(not qid_to_has_ans[qid]) if pred_na else s
    return new_scores


def find_best_thresh(preds, scores, na_probs, qid_to_has_ans):
    num_no_ans = sum(1 for k in qid_to_has_ans if not qid_to_has_ans[k])
    cur_score = best_score = num_no_ans
    best_thresh = 0.0
    for qid in sorted(na_probs, key=lambda k: na_probs[k]):
        if qid not in scores:
            continue
        if qid_to_has_ans[qid]:
            diff = scores[qid]
        else:
            diff = -1 if preds[qid] else 0
        cur_score += diff
        if cur_score > best_score:
            best_score, best_thresh = cur_score, na_probs[qid]
    return 100.0 * best_score / len(scores), best_thresh


def version_2(golds, preds, na_probs, thresh):
    has = {qid: bool(truths) for qid, truths in golds.items()}
    raw = dict(zip(("em", "f1"), raw_version_2(golds, preds)))
    result = {}
    for name, scores in raw.items():
        decided = apply_no_ans_threshold(scores, na_probs, has, thresh)
        for prefix, qids in (
            ("", list(decided)),
            ("has_answer_", [q for q in decided if has[q]]),
            ("no_answer_", [q for q in decided if not has[q]]),
        ):
            if qids:
                result[prefix + name] = 100.0 * sum(decided[q] for q in qids) / len(qids)
        result[f"best_{name}"], result[f"best_{name}_threshold"] = find_best_thresh(preds, scores, na_probs, has)
    return result


def case(seed, words, questions, missing, impossible):
    draw = random.Random(seed)

    def text(least=1):
        return " ".join(draw.choice(words) for _ in range(draw.randint(least, 4)))

    golds, preds, na_probs = {}, {}, {}
    for number in range(questions):
        qid = f"q{number}"
        none = impossible and draw.random() < 0.4
        golds[qid] = [] if none else [text() for _ in range(draw.randint(1, 3))]
        if draw.random() >= missing:
            preds[qid] = draw.choice(golds[qid]) if golds[qid] and draw.random() < 0.5 else text(0)
        # Some are equal, and questions without an answer have larger ones more often.
        na_probs[qid] = round(draw.gauss(1.0 if none else -1.0, 1.5), 1)
    return {"golds": golds, "preds": preds, "na_probs": na_probs}


def main(folder):
    cases = []
    for seed, missing in ((0, 0.0), (1, 0.2)):
        data = case(seed, ENGLISH, 60, missing, impossible=False)
        cases.append(
            {"scorer": "squad", "version": 1}
            | data
            | {"scores": version_1(data["golds"], data["preds"], f1_version_1, squad_normalize)}
        )
        data = case(seed + 10, KOREAN, 60, missing, impossible=False)
        scores = version_1(data["golds"], data["preds"], f1_korquad, korquad_normalize)
        cases.append({"scorer": "korquad", "version": 1} | data | {"scores": scores})
    for seed, missing, thresh in ((20, 0.0, 0.0), (21, 0.0, -0.7), (22, 0.3, 0.5), (23, 0.0, -100.0)):
        data = case(seed, ENGLISH, 60, missing, impossible=True)
        if seed == 23:  # nothing is better than no answer at all
            data["preds"] = dict.fromkeys(data["preds"], "wrong")
        scores = version_2(data["golds"], data["preds"], data["na_probs"], thresh)
        cases.append({"scorer": "squad", "version": 2, "threshold": thresh} | data | {"scores": scores})
    content = json.dumps(cases, ensure_ascii=False, separators=(",", ":"))
    (folder / "scores.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
