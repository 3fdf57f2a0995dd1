"""LAMA's files as cloze questions without options (Petroni et al. 2019; facebookresearch/LAMA).

The data is under CC BY-NC and does not come with the library.
"""

import itertools
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.parsing import parse_json
from bert_tf.probing.cloze_files import BLANK, ClozeQuestion
from bert_tf.tasks.tables.files import numbered_lines, read_text

#: The blank of LAMA's sentences, and the places of its templates.
MASK, SUBJECT, OBJECT = "[MASK]", "[X]", "[Y]"
#: Sentences with more words are left out, as by the authors' code.
MOST_WORDS = 100


def read_lama(path, relations=None, most=None):
    """Reads LAMA's questions.

    Args:
        path: a .jsonl file, such as ConceptNet/test.jsonl, or a folder of them, such as TREx.
        relations: LAMA's relations.jsonl, whose templates then replace the sentences of the relations that it names, as
            the authors do for T-REx and Google-RE; None for the sentences.
        most: the first so many questions of each file; None for all.

    Returns:
        list of `ClozeQuestion` without options. The kind is the relation (`predicate_id` or `pred`), else the name of
        the file. Facts that more judges refused than confirmed, repeated facts and sentences above 100 words are left
        out.

    Raises:
        DataError: no question, no JSON, or a row without an object or a sentence; with file and line.

    Example:
        row = '{"sub_label": "Paris", "obj_label": "France", "masked_sentences": ["Paris is in [MASK]."]}'
        Path("P17.jsonl").write_text(row)
        read_lama("P17.jsonl")[0].text  # 'Paris is in ___.'
    """
    path, templates = Path(path), {}
    if relations is not None:
        templates = {row["relation"]: row["template"] for row, _ in _rows(Path(relations), ("relation", "template"))}
    questions = {}
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        found = (_question(row, templates, file.stem, where) for row, where in _rows(file, ("obj_label",)))
        for question in itertools.islice(filter(None, found), most):
            questions.setdefault((question.kind, question.text, question.answers), question)
    if not questions:
        raise DataError(f"{path} holds no questions; give a .jsonl file of LAMA, or a folder of them")
    return list(questions.values())


def _question(row, templates, name, where):
    kind = str(row.get("predicate_id") or row.get("pred") or name)
    judgments = row.get("judgments") or ()
    if not all(isinstance(judgment, dict) for judgment in judgments):
        raise DataError(f"{where}: 'judgments' must be a list of objects, each with a 'judgment'")
    judged = [judgment.get("judgment") for judgment in judgments]
    if judged.count("no") > judged.count("yes"):
        return None
    if kind in templates:
        if not isinstance(row.get("sub_label"), str):
            raise DataError(f"{where}: there is no text 'sub_label', which the template of {kind} needs")
        text = templates[kind].replace(SUBJECT, row["sub_label"]).replace(OBJECT, BLANK)
    else:
        sentences = row.get("masked_sentences")
        if not isinstance(sentences, list) or not sentences or not isinstance(sentences[0], str):
            raise DataError(f"{where}: 'masked_sentences' must be a list of texts")
        # Of several masks the first one is the blank, and the others are left out.
        text = sentences[0].replace(MASK, BLANK, 1).replace(MASK, "")
    if text.count(BLANK) != 1 or len(text.split()) > MOST_WORDS:
        return None
    return ClozeQuestion(kind, text, (row["obj_label"],), ())


def _rows(path, keys):
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        row = parse_json(line, where)
        for key in keys:
            if not isinstance(row, dict) or not isinstance(row.get(key), str) or not row[key].strip():
                raise DataError(f"{where}: there is no text '{key}'")
        yield row, where
