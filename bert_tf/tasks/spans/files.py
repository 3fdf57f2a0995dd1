"""Reads questions: SQuAD 1.1 and 2.0, KorQuAD, MRQA, tables of questions and contexts, and Python objects."""

import dataclasses

from bert_tf.errors import DataError
from bert_tf.parsing import brief
from bert_tf.tasks.examples import Example, read_examples
from bert_tf.tasks.rows.opening import open_table
from bert_tf.tasks.rows.table import Table
from bert_tf.tasks.rows.values import BadRow
from bert_tf.tasks.spans.questions import Questions, check_answers, check_text


def open_questions(data, columns, labelled, row_of=None):
    """The table of questions, a row for each.

    A JSON object with "data" is read as SQuAD (Rajpurkar et al. 2016 and 2018; KorQuAD 1.0 has the same form), JSON
    lines that begin with a "header" as MRQA (Fisch et al. 2019). All else is a table with the columns question and
    context, and for labels JSON or Parquet with answers.

    Args:
        data, columns, row_of: of `open_table`.
        labelled: whether the answers are read.

    Raises:
        DataError: a file in another format.
    """
    table = open_table(data, columns, row_of)
    if table.format in ("jsonl", "parquet", None):
        first = table.first() if table.rows else {}
        if "data" in first and table.is_file:
            return _of_questions(table, _squad(table, _list(first, "data", table.path)))
        if "header" in first and table.is_file:
            return _of_questions(table, _mrqa(table))
    elif labelled or table.format not in ("tsv", "csv"):
        raise DataError(
            f"{table.path}: question answering reads SQuAD and MRQA files, JSON and Parquet with question, context and answers, and, "
            "for predict alone, TSV and CSV with question and context; if this is one of them, set data.columns.format"
        )
    return table


def _of_questions(table, rows):
    return Table(table.path, list(enumerate(rows, 1)), "jsonl", "item", ["id", "question", "context", "answers"])


def _squad(table, articles):
    for number, article in enumerate(articles):
        where = f"{table.path}, article {number}"
        for paragraph in _list(article, "paragraphs", where):
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            for question in _list(paragraph, "qas", where):
                if not isinstance(question, dict) or question.get("id") is None:
                    raise DataError(f"{where}: a question is {brief(question)}; it must have an id")
                yield {
                    "id": question["id"],
                    "question": question.get("question"),
                    "context": context,
                    "answers": question.get("answers"),
                    "is_impossible": question.get("is_impossible", False),
                }


def _mrqa(table):
    for line, row in table.rows[1:]:
        where = table.where(line)
        for question in _list(row, "qas", where) if row is not None else ():
            name = question.get("qid", question.get("id")) if isinstance(question, dict) else None
            if name is None:
                raise DataError(f"{where}: a question is {brief(question)}; it must have a qid")
            yield {
                "id": name,
                "question": question.get("question"),
                "context": row.get("context"),
                "answers": question.get("answers"),
                "detected_answers": question.get("detected_answers") or [],
            }


def read_questions(table, columns, labelled):
    """`Questions` of a table of `open_questions`.

    Args:
        table: a `Table`.
        columns: `QuestionColumns`. With `skip_malformed` wrong questions are left out and counted.
        labelled: whether the answers are read.

    Raises:
        DataError: a missing column, or a bad question; with file and question id.
    """
    has_ids, identifier = table.unit == "item", table.id_key()
    question_key, context_key = table.find(columns, "question"), table.find(columns, "context")
    answers_key = table.find(columns, "answers") if labelled else None
    shared, ids = {}, set()

    def read(row):
        name = table.id_of(row, identifier)
        if isinstance(name.get("id"), (list, dict)):  # predictions.json has the ids as keys
            raise BadRow(f"'{identifier}' is {brief(name['id'])}; the id of a question is a text or a number")
        if labelled and name:
            if name["id"] in ids:
                raise BadRow("there are two questions with this id; each must have its own")
            ids.add(name["id"])
        question, context = table.cell(row, question_key, "question"), table.cell(row, context_key, "context")
        for text, role in ((question, "question"), (context, "context")):
            # From Python `predict` answers any.
            if labelled or table.is_file or not isinstance(text, str) or text.strip():
                check_text(text, role)
        shared.setdefault(context, context)
        answers = _answers(row, table.cell(row, answers_key, "answers"), context) if labelled else None
        return [Example(question, shared[context], label=answers, id=name)]

    def where(number, row):
        return f"{table.path}, question {brief(row['id'])}" if has_ids else table.where(number)

    chosen = {"question": question_key, "context": context_key}
    return read_examples(table, read, columns, labelled, chosen, identifier, where, Questions)


def _answers(row, content, context):
    """The `Answers` of a row; `content` is what the column of the answers holds."""
    if "detected_answers" in row:
        return _mrqa_answers(row["detected_answers"], content or [], context)
    answers, keys = [] if content is None else content, ("text", "answer_start")
    if isinstance(answers, dict):
        answers = list(zip(*(_list(answers, key) for key in keys)))
    if isinstance(answers, (list, tuple)):
        answers = [dict(zip(keys, one)) if isinstance(one, (list, tuple)) else one for one in answers]
    if not isinstance(answers, list) or not all(isinstance(a, dict) and a.keys() >= set(keys) for a in answers):
        raise BadRow(f'the answers are {brief(answers)}; each must have "text" and "answer_start"')
    spans = []
    for answer in answers:
        text, start = answer["text"], answer["answer_start"]
        end = start + len(text) if isinstance(text, str) and isinstance(start, int) else None
        if end and isinstance(context, str) and context[start:end].lower() != text.lower():
            raise BadRow(
                f"the answer {brief(text)} is not at its answer_start={start}, where the context has "
                f"{brief(context[start:end])}; answer_start counts characters (code points) from 0"
            )
        spans.append((text, start, end))
    return check_answers(spans, context, row.get("is_impossible", not answers))


def _mrqa_answers(detected, texts, context):
    """The `Answers` of a question: MRQA scores with "answers", and trains with the places of its "detected_answers"."""
    spans = []
    for answer in detected:
        for span in _list(answer, "char_spans"):
            if not (isinstance(span, list) and len(span) == 2 and all(isinstance(x, int) for x in span)):
                raise BadRow(f"a character span is {brief(span)}; it must be [first, last]")
            spans.append((answer.get("text"), span[0], span[1] + 1))  # the spans of MRQA are inclusive
    answers = check_answers(spans, context, False)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadRow(f"the answers are {brief(texts)}; they must be a list of texts")
    return dataclasses.replace(answers, texts=tuple(texts)) if texts else answers


def _list(value, key, where=None):
    items = value.get(key) if isinstance(value, dict) else None
    if not isinstance(items, list):
        message = f'"{key}" is {brief(items)}; it must be a list'
        raise DataError(f"{where}: {message}") if where else BadRow(message)
    return items
