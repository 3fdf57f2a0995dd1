"""ReCoRD: its files, and its scorer. No TensorFlow is imported."""

import collections
import dataclasses

from bert_tf.errors import DataError
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.spans.scorer import f1, normalize_squad
from bert_tf.tasks.tables.files import member, read_objects

#: The mark in a query that an entity is to fill.
PLACEHOLDER = "@placeholder"


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The entities that may fill the placeholder of a query.

    Attributes:
        texts: tuple of str, each once, sorted.
        mentions: tuple of int, how often the passage marks each.
    """

    texts: tuple
    mentions: tuple

    @classmethod
    def of(cls, entities):
        """Of a list of str, the marked entities of a passage."""
        counts = collections.Counter(entities)
        texts = tuple(sorted(counts))
        return cls(texts, tuple(counts[text] for text in texts))


def read_record(path, columns, labelled):
    """`Examples` of a file of ReCoRD, one for each query: the passage, the query, and `Candidates` in `details`.

    `labels` holds for each the list of accepted answers. Files of Hugging Face's datasets, with a query a row and the
    entities as texts, are read, too.

    Raises:
        DataError: a row that lacks a passage, an entity, a query, its placeholder or an answer; with file and line.
    """
    found, about = read_objects(
        path, columns, "record reads ReCoRD's .jsonl files", lambda row, where: read_row(row, where, labelled)
    )
    if not found:
        raise DataError(f"{path} holds no query; it must hold one at least")
    return dataclasses.replace(examples_of(found, labelled), **about)


def examples_of(queries, labelled):
    """`Examples` of what `read_row` returns."""
    passages, texts, candidates, answers, ids = (list(x) for x in zip(*queries)) if queries else ([] for _ in range(5))
    labels = answers if labelled else None
    return Examples(texts=passages, text_pairs=texts, labels=labels, details=candidates, ids=ids)


def row_of(given, where):
    """The only query of an input of `predict`: a dict with "passage", "query" and "entities", or the same as JSON.

    Returns:
        What `read_row` has in its list.
    """
    if isinstance(given, str):
        given = parse_json(given, f"{where}, which must be a JSON object with 'passage', 'query' and 'entities',")
    if not isinstance(given, dict):
        raise DataError(f"{where} must be a dict with 'passage', 'query' and 'entities', got {brief(given)}")
    found = read_row(given, where, labelled=False)
    if len(found) != 1:
        raise DataError(f"{where} has {len(found)} queries; give one at a time, or a file")
    return found[0]


def read_row(row, where, labelled):
    """A list of (passage, query, `Candidates`, accepted answers or None, {"id": ...} or {}) of a row."""
    if isinstance(row.get("passage"), dict):
        passage = row["passage"]
        text = member(passage, "text", str, where)
        marked = [_entity(text, entity, where) for entity in member(passage, "entities", list, where)]
        queries = member(row, "qas", list, where)
    else:
        text, queries = member(row, "passage", str, where), [row]
        marked = member(row, "entities", list, where)
    if not marked or not all(isinstance(entity, str) and entity.strip() for entity in marked):
        raise DataError(f"{where}: the entities are {brief(marked)}; there must be one at least, each a text")
    candidates, found = Candidates.of(marked), []
    for query in queries:
        asked = member(query, "query", str, where)
        if PLACEHOLDER not in asked:
            raise DataError(f"{where}: the query {brief(asked)} has no {PLACEHOLDER}; correct the row")
        answers = _answers(query, where) if labelled else None
        found.append((text, asked, candidates, answers, {"id": query["idx"]} if "idx" in query else {}))
    return found


def _entity(text, entity, where):
    start, end = (entity.get(key) if isinstance(entity, dict) else None for key in ("start", "end"))
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end < len(text)):
        raise DataError(
            f"{where}: an entity is {brief(entity)}; it must have 'start' and 'end', its first and last character in the "
            f"passage of {len(text)}"
        )
    return text[start : end + 1]


def _answers(query, where):
    answers = member(query, "answers", list, where)
    texts = [answer.get("text") if isinstance(answer, dict) else answer for answer in answers]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: the answers are {brief(answers)}; there must be one at least, each with a 'text'")
    return texts


def scores_of(predictions, answers):
    """(exact match, F1) of each prediction, the largest over the accepted answers, as ReCoRD's `evaluation.py`.

    Its formulas are those of SQuAD 1.1: texts in lower case, without punctuation and articles; F1 of words.

    Args:
        predictions: list of str.
        answers: list of lists of str.

    Returns:
        Two lists of floats.
    """
    exact, similar = [], []
    for prediction, accepted in zip(predictions, answers, strict=True):
        said, wanted = normalize_squad(prediction), [normalize_squad(text) for text in accepted]
        exact.append(float(said in wanted))
        similar.append(max(f1(text.split(), said.split()) for text in wanted))
    return exact, similar
