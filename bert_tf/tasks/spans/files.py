"""Reads the files of question answering: SQuAD 1.1 and 2.0, KorQuAD, MRQA, and tables of questions and contexts."""

import dataclasses
import functools

from bert_tf.errors import DataError
from bert_tf.parsing import brief, parse_json
from bert_tf.tasks.spans.questions import Questions, check_answers, check_text
from bert_tf.tasks.tables.columns import UsualNames, read_columns
from bert_tf.tasks.tables.files import file_format, numbered_lines, read_table, read_text

USUAL = UsualNames(
    text=("question", "query", "text"), text_pair=("context", "passage", "paragraph", "document", "text_pair"), label=()
)


def read_questions(path, columns, labelled=True):
    """`Questions` of a file.

    A JSON object with "data" is read as SQuAD (Rajpurkar et al. 2016 and 2018; KorQuAD 1.0 has the same form), JSON
    lines that begin with a "header" as MRQA (Fisch et al. 2019). All else is a table with the columns question and
    context, and for labels JSON or Parquet with "answers": [{"text", "answer_start"}], or {"text": [...],
        "answer_start": [...]}.

    Args:
        path: the file.
        columns: `ColumnsConfig`, for tables. With `skip_malformed` wrong questions are left out and counted.
        labelled: whether the answers are read.

    Raises:
        DataError: with file and question id.
    """
    format = file_format(path, columns.format)
    if format == "jsonl":
        text = read_text(path)
        if text.lstrip().startswith("{"):
            beginning = text.lstrip().split("\n", 1)[0]
            if '"header"' in beginning[:1000] and "header" in parse_json(beginning, f"{path}, line 1"):
                return _collect(path, _mrqa(path, text), columns, labelled)
            articles = _squad_articles(path, text)
            if articles is not None:
                return _collect(path, _squad(path, articles), columns, labelled)
    return _read_table(path, format, columns, labelled)


def _squad_articles(path, text):
    """The list under "data"; None where the file holds JSON lines."""
    try:
        whole = parse_json(text, path)
    except DataError as error:
        try:
            parse_json(text.lstrip().split("\n", 1)[0], path)
        except DataError:
            raise error from None
        return None
    return _list(whole, "data", path) if "data" in whole else None


def _squad(path, articles):
    """Yields (id, question, context, function that gives the `Answers`, where)."""
    for number, article in enumerate(articles):
        for paragraph in _list(article, "paragraphs", f"{path}, article {number}"):
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            for question in _list(paragraph, "qas", f"{path}, article {number}"):
                name = question.get("id") if isinstance(question, dict) else None
                where = f"{path}, question '{name}'"
                if name is None:
                    raise DataError(f"{path}, article {number}: a question is {brief(question)}; it must have an id")
                given, impossible = question.get("answers") or [], question.get("is_impossible", False)
                answers = functools.partial(_answers, given, context, impossible, where)
                yield name, question.get("question"), context, answers, where


def _answers(answers, context, impossible, where):
    """The `Answers` of [{"text", "answer_start"}] or {"text": [...], "answer_start": [...]}."""
    if isinstance(answers, dict):
        columns = [_list(answers, key, where) for key in ("text", "answer_start")]
        answers = [{"text": text, "answer_start": start} for text, start in zip(*columns)]
    if not isinstance(answers, list) or not all(
        isinstance(a, dict) and {"text", "answer_start"} <= a.keys() for a in answers
    ):
        raise DataError(f'{where}: the answers are {brief(answers)}; each must have "text" and "answer_start"')
    found = []
    for answer in answers:
        text, start = answer["text"], answer["answer_start"]
        end = start + len(text) if isinstance(text, str) and isinstance(start, int) else None
        if end and isinstance(context, str) and context[start:end].lower() != text.lower():
            raise DataError(
                f"{where}: the answer {brief(text)} is not at its answer_start={start}, where the context has "
                f"{brief(context[start:end])}; answer_start counts characters (code points) from 0"
            )
        found.append((text, start, end))
    return check_answers(found, context, impossible, where)


def _mrqa(path, text):
    """Yields what `_squad` yields. The character spans of MRQA are inclusive."""
    for number, line in numbered_lines(text):
        if number == 1 or not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}")
        for question in _list(row, "qas", f"{path}, line {number}"):
            name = question.get("qid", question.get("id"))
            where = f"{path}, question '{name}'"
            if name is None:
                raise DataError(f"{path}, line {number}: a question is {brief(question)}; it must have a qid")
            answers = functools.partial(_mrqa_answers, question, row.get("context"), where)
            yield name, question.get("question"), row.get("context"), answers, where


def _mrqa_answers(question, context, where):
    """The `Answers` of a question: MRQA scores with "answers", and trains with the places of its "detected_answers"."""
    found = []
    for answer in question.get("detected_answers") or []:
        for span in _list(answer, "char_spans", where):
            if not (isinstance(span, list) and len(span) == 2 and all(isinstance(x, int) for x in span)):
                raise DataError(f"{where}: a character span is {brief(span)}; it must be [first, last]")
            found.append((answer.get("text"), span[0], span[1] + 1))
    found, texts = check_answers(found, context, False, where), question.get("answers") or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: the answers are {brief(texts)}; they must be a list of texts")
    return dataclasses.replace(found, texts=tuple(texts)) if texts else found


def _read_table(path, format, columns, labelled):
    if format not in ("jsonl", "parquet") + (() if labelled else ("tsv", "csv")):
        raise DataError(
            f"{path}: question answering reads SQuAD and MRQA files, JSON and Parquet with question, context and answers, and, "
            "for predict alone, TSV and CSV with question and context; if this is one of them, set task.columns.format"
        )
    table = read_columns(path, format, columns, labelled=False, pairs=True, usual=USUAL)
    if not labelled:
        fields = {f.name: getattr(table, f.name) for f in dataclasses.fields(table)}
        shared = {}
        contexts = [shared.setdefault(context, context) for context in table.text_pairs]
        return Questions(**fields | {"text_pairs": contexts})
    wrong = [row for row in table.lacking if row["error"] != "the line is empty"]
    if wrong and not columns.skip_malformed:
        raise DataError(
            f"{path}, {table.unit} {wrong[0][table.unit]}: {wrong[0]['error']}; correct the row, or leave out such rows with "
            "--set task.columns.skip_malformed=true"
        )
    rows = dict(read_table(path, format).rows)
    key = columns.label if isinstance(columns.label, str) else "answers"

    def questions():
        for index, line in enumerate(table.lines):
            row, where = rows[line], table.where(index)
            if key not in row:
                raise DataError(f"{where}: there is no '{key}', its keys are {', '.join(row)}; correct the row")
            given = row[key] or []
            impossible = row.get(
                "is_impossible", not (given["text"] if isinstance(given, dict) and "text" in given else given)
            )
            context = table.text_pairs[index]
            answers = functools.partial(_answers, given, context, impossible, where)
            yield table.ids[index].get("id", line), table.texts[index], context, answers, where

    return _collect(path, questions(), columns, labelled=True)


def _collect(path, questions, columns, labelled):
    texts, contexts, labels, ids, lines, lacking = [], [], [], [], [], []
    shared, known = {}, set()
    for number, (name, question, context, read_answers, where) in enumerate(questions, start=1):
        try:
            if name in known:
                raise DataError(f"{where}: there are two questions with this id; each must have its own")
            known.add(name)
            check_text(question, "question", where)
            if not isinstance(context, str) or context not in shared:
                shared[check_text(context, "context", where)] = context
            answers = read_answers() if labelled else None
        except DataError as error:
            if not columns.skip_malformed:
                raise DataError(
                    f"{error}; or leave out such questions with --set task.columns.skip_malformed=true"
                ) from None
            lacking.append({"item": number, "id": name, "error": str(error)})
            continue
        texts.append(question)
        contexts.append(shared[context])
        labels.append(answers)
        ids.append({"id": name})
        lines.append(number)
    if not texts:
        raise DataError(f"{path}: there is no question; there must be at least one")
    return Questions(
        texts=texts,
        text_pairs=contexts,
        labels=labels if labelled else None,
        path=str(path),
        lines=lines,
        unit="item",
        ids=ids,
        lacking=lacking,
        skipped=len(lacking),
        columns={"text": "question", "text_pair": "context"},
    )


def _list(value, key, where):
    items = value.get(key) if isinstance(value, dict) else None
    if not isinstance(items, list):
        raise DataError(f'{where}: "{key}" is {brief(items)}; it must be a list')
    return items
