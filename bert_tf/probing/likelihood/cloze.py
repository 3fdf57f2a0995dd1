"""Cloze questions by kind of knowledge: which word does a model put into the blank?

As LAMA (Petroni et al. 2019, section 4) with the whole vocabulary as candidates; beside it a choice among a few
options, which also compares models with different vocabularies.
"""

import dataclasses
from pathlib import Path

import numpy as np
from absl import logging

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.probing.likelihood.engine import LikelihoodProbe, Question, fill
from bert_tf.probing.rows import json_files
from bert_tf.tasks.rows.opening import read_dicts
from bert_tf.tasks.rows.values import BadRow

BLANK = "___"
_FOLDER = Path(__file__).parent.parent / "sets"
#: The questions that come with the library, by language.
CLOZE_SETS = {"english": _FOLDER / "english.tsv", "korean": _FOLDER / "korean.tsv"}
#: The blank of LAMA's sentences, and the places of its templates.
MASK, SUBJECT, OBJECT = "[MASK]", "[X]", "[Y]"
#: LAMA's sentences with more words are left out, as by the authors' code.
MOST_WORDS = 100


def cloze_question(kind, text, answers, options=()):
    """The `Question` of a text with one blank.

    Args:
        kind: str, the kind of knowledge.
        text: str with `___` where a word is missing.
        answers: the words that are right.
        options: the words of which the model chooses, the first answer first; empty where it chooses from all tokens.

    Example:
        cloze_question("facts", "Paris is in ___.", ["France"], ["France", "Italy"]).texts[1]  # 'Paris is in Italy.'
    """
    words = list(dict.fromkeys((*options, *answers)))
    facts = {"options": len(options), "answers": [words.index(answer) for answer in answers]}
    return Question((kind,), *fill(text, BLANK, words), facts)


class Cloze(LikelihoodProbe):
    """Which word fills a blank? A row for each kind of question.

    "right": the fraction of questions whose answer is the most probable of the options; "chance": of an option drawn at
    random; "no context": "right" where the model sees the options alone, unknown for a decoder without a start token
    (GPT-1), which predicts no first token. "P@1", "P@5": the fraction of the ranked questions with an answer among the 1
    or 5 most probable tokens of the whole vocabulary; "median rank": of the best answer, from 1. Ranked are those with
    an answer of one token. A decoder sees the text before the blank alone.

    Example:
        question = cloze_question("films", "a ___ film", ["good"], ["good", "bad"])
        Cloze().run(scorer, [question])["films"]["right"]
    """

    name, title = "cloze", "cloze questions"
    columns = ("right", "chance", "no context", "random", "P@1", "P@5", "median rank", "questions")
    note = "right: the answer is the most probable option; P@1, P@5, rank: among the whole vocabulary"

    def read(self, questions="english", most=None):
        """Reads a TSV, CSV or JSON-lines file with the columns `kind`, `text`, `answers` and `options`.

        `text` has the blank `___`. Answers and options are separated by `|`; the first answer need not be repeated among
        the options.

        Args:
            questions: the file, or a key of `CLOZE_SETS`.
            most: as of `Probe.read`.

        Raises:
            DataError: a text without exactly one blank, an empty answer, or fewer than two options; with the number of
                the row.
        """
        path = CLOZE_SETS.get(questions, questions)
        return read_dicts(path, ("kind", "text", "answers", "options"), _question)[:most]

    def warn(self, scorer, questions):
        words = sorted({text[slice(*span)] for q in questions for text, span in zip(q.texts, q.spans)})
        unknown = [word for word in words if scorer.tokenizer.unk_id in scorer.tokenizer.encode(word)]
        if unknown:
            logging.warning(
                "%d of the %d options and answers, such as '%s', hold an unknown token, so their scores say nothing; choose "
                "questions in the language of the model", len(unknown), len(words), unknown[0]
            )  # fmt: skip

    def texts(self, question, scorer):
        filled = super().texts(question, scorer)
        words = [text[slice(*span)] for text, span in filled] if scorer.predicts_first_token else []
        return filled + [(word, (0, len(word))) for word in words]

    def answer(self, question, scores):
        count, options = len(question.texts), question.facts["options"]
        chosen = []
        for of_options in ([value for value, _ in some[:options]] for some in (scores[:count], scores[count:])):
            chosen.append(of_options[0] > max(of_options[1:]) if of_options else float("nan"))
        answer = {"right": chosen[0], "no context": chosen[1], "chance": 1 / options if options else float("nan")}
        of_answers = [scores[i][1].ranks for i in question.facts["answers"]]
        ranks = [int(of_tokens[0]) + 1 for of_tokens in of_answers if len(of_tokens) == 1]
        if ranks:
            answer |= {"P@1": min(ranks) <= 1, "P@5": min(ranks) <= 5, "median rank": min(ranks)}
        return answer

    def combine(self, answers):
        ranks = [answer["median rank"] for answer in answers if "median rank" in answer]
        median = {"median rank": float(np.median(ranks)) if ranks else float("nan"), "ranked": len(ranks)}
        return super().combine(answers) | median

    def summary(self, answered):
        rows = super().summary(answered)
        if len(rows) > 1:
            sums = {name: sum(of_kind[name] for of_kind in rows.values()) for name in ("questions", "ranked")}
            rows["mean of kinds"] = super().combine(list(rows.values())) | sums
        return rows


@dataclasses.dataclass(frozen=True)
class Lama(Cloze):
    """LAMA's questions without options (Petroni et al. 2019; facebookresearch/LAMA).

    The data is under CC BY-NC and does not come with the library.

    Attributes:
        relations: path of LAMA's relations.jsonl, whose templates then replace the sentences of the relations that it
            names, as the authors do for T-REx and Google-RE; None for the sentences.

    Example:
        row = '{"sub_label": "Paris", "obj_label": "France", "masked_sentences": ["Paris is in [MASK]."]}'
        Path("P17.jsonl").write_text(row)
        Lama().read("P17.jsonl")[0].texts  # ('Paris is in France.',)
    """

    relations: str | None = None

    name = "lama"

    def read(self, path, most=None):
        """Reads LAMA's questions.

        Args:
            path: a .jsonl file, such as ConceptNet/test.jsonl, or a folder of them, such as TREx.
            most: as of `Probe.read`.

        Returns:
            list of `Question`. The kind is the relation (`predicate_id` or `pred`), else the name of the file. Facts that
            more judges refused than confirmed, repeated facts and sentences above 100 words are left out.

        Raises:
            DataError: no question, no JSON, or a row without an object or a sentence; with file and line.
        """
        templates, questions = {}, {}
        for _, rows in json_files(self.relations, ("relation", "template")) if self.relations else ():
            templates = {row["relation"]: row["template"] for row in rows}
        for _, facts in json_files(path, ("obj_label",), lambda row, name: _fact(row, templates, name)):
            questions |= {fact: cloze_question(*fact) for fact in list(filter(None, facts))[:most]}
        if not questions:
            raise DataError(f"{path} holds no questions; give a .jsonl file of LAMA, or a folder of them")
        return list(questions.values())


def _question(row):
    """The `Question` of a row of cloze questions."""
    blanks = row["text"].count(BLANK)
    if blanks != 1:
        raise BadRow(f"{brief(row['text'])} has {blanks} blanks {BLANK}; it must have one")
    answers, options = ([x.strip() for x in row[name].split("|") if x.strip()] for name in ("answers", "options"))
    if not answers:
        raise BadRow("there is no answer; give at least one")
    options = list(dict.fromkeys((answers[0], *options)))
    if len(options) < 2 or set(options[1:]) & set(answers):
        raise BadRow("there must be options beside the answer, and no other one may be right")
    return cloze_question(row["kind"], row["text"], answers, options)


def _fact(row, templates, name):
    """(kind, text, answers) of a row of LAMA; None where it is left out."""
    kind = str(row.get("predicate_id") or row.get("pred") or name)
    judgments = row.get("judgments") or ()
    if not all(isinstance(judgment, dict) for judgment in judgments):
        raise BadRow("'judgments' must be a list of objects, each with a 'judgment'")
    judged = [judgment.get("judgment") for judgment in judgments]
    if judged.count("no") > judged.count("yes"):
        return None
    if kind in templates:
        if not isinstance(row.get("sub_label"), str):
            raise BadRow(f"there is no text 'sub_label', which the template of {kind} needs")
        text = templates[kind].replace(SUBJECT, row["sub_label"]).replace(OBJECT, BLANK)
    else:
        sentences = row.get("masked_sentences")
        if not isinstance(sentences, list) or not sentences or not isinstance(sentences[0], str):
            raise BadRow("'masked_sentences' must be a list of texts")
        # Of several masks the first one is the blank, and the others are left out.
        text = sentences[0].replace(MASK, BLANK, 1).replace(MASK, "")
    if text.count(BLANK) != 1 or len(text.split()) > MOST_WORDS:
        return None
    return kind, text, (row["obj_label"],)
