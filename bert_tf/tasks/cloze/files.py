"""ReCoRD: its files. No TensorFlow is imported."""

import collections
import dataclasses

from bert_tf.parsing import brief
from bert_tf.tasks.examples import Example
from bert_tf.tasks.rows.values import BadRow, member

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


def read_row(row, labelled):
    """The `Example` of each query in a row of ReCoRD: the passage, the query, the accepted answers, and `Candidates` in `details`.

    Rows of Hugging Face's datasets, with one query and the entities as texts, are read, too.

    Raises:
        BadRow: the row lacks a passage, an entity, a query, its placeholder or an answer.
    """
    if isinstance(row.get("passage"), dict):
        passage = row["passage"]
        text = member(passage, "text", str)
        marked = [_entity(text, entity) for entity in member(passage, "entities", list)]
        queries = member(row, "qas", list)
    else:
        text, queries = member(row, "passage", str), [row]
        marked = member(row, "entities", list)
    if not marked or not all(isinstance(entity, str) and entity.strip() for entity in marked):
        raise BadRow(f"the entities are {brief(marked)}; there must be one at least, each a text, correct the row")
    if not queries:
        raise BadRow("there is no query; add one, or remove the row")
    candidates, examples = Candidates.of(marked), []
    for query in queries:
        words = member(query, "query", str)
        if PLACEHOLDER not in words:
            raise BadRow(f"the query {brief(words)} has no {PLACEHOLDER}; correct the row")
        answers = _answers(query) if labelled else None
        identifier = {"id": query["idx"]} if "idx" in query else None
        examples.append(Example(text, words, label=answers, id=identifier, details=candidates))
    return examples


def _entity(text, entity):
    start, end = (entity.get(key) if isinstance(entity, dict) else None for key in ("start", "end"))
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end < len(text)):
        raise BadRow(
            f"an entity is {brief(entity)}; it must have 'start' and 'end', its first and last character in the passage of "
            f"{len(text)}, correct the row"
        )
    return text[start : end + 1]


def _answers(query):
    answers = member(query, "answers", list)
    texts = [answer.get("text") if isinstance(answer, dict) else answer for answer in answers]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise BadRow(
            f"the answers are {brief(answers)}; there must be one at least, each with a 'text', correct the row"
        )
    return texts
