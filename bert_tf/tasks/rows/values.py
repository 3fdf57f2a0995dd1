"""The values in a row: each function returns a value of one type, or raises `BadRow`, which says what is there instead."""

from typing import Any

from bert_tf.errors import DataError
from bert_tf.parsing import brief, parse_json


class BadRow(DataError):
    """A row that cannot be used: the message says what is wrong and what to do, `read_each` where the row stands.

    Args:
        parts: of the message, without an end, as "the text is empty; remove the row".
        line: where another line than the first one of the row is wrong; None for the row.
        word: the number of the wrong word in the row, from 1; None for no word.
    """

    def __init__(self, *parts: object, line: int | None = None, word: int | None = None) -> None:
        super().__init__(*parts)
        self.line, self.word = line, word


def as_string(value: Any) -> str | None:
    """A JSON value, or the same of NumPy, as str; None for lists, objects, null and all else."""
    if getattr(value, "ndim", None) == 0:  # a number of NumPy
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


def as_list(value: Any) -> list | None:
    """A list, a tuple or an array of NumPy as list; None for all else."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else None


def text_value(value: Any, key: Any, null: bool = True) -> str:
    """A value as str; "" for null, where that is allowed."""
    if isinstance(value, str):
        return value
    if value is None and null:
        return ""
    text = as_string(value)
    if text is None or value != value:  # NaN, which pandas has where there is none
        raise BadRow(f"'{key}' is {brief(value)}; it must be a string or a number, correct the row")
    return text


def text_of(row: dict, key: Any) -> str:
    """The text or number under `key`, which must be there, as str; "" for null."""
    value = _value(row, key)
    if isinstance(value, bool) or not isinstance(value, (str, int, float, type(None))):
        raise BadRow(f"'{key}' is {brief(value)}; it must be a text")
    return "" if value is None else str(value)


def list_of(row: dict, key: Any) -> list:
    """The list under `key`, which must be there."""
    items = as_list(_value(row, key))
    if items is None:
        raise BadRow(f"'{key}' is {brief(row[key])}; it must be a list")
    return items


def _value(row, key):
    if key not in row:
        raise BadRow(f"there is no '{key}', the row has {', '.join(map(str, row))}; correct the row")
    return row[key]


def member(row: Any, key: str, kind: type) -> Any:
    """The value under `key` of an object of JSON, which must be of a kind: dict, list or str."""
    if not isinstance(row, dict) or not isinstance(row.get(key), kind):
        value = row.get(key) if isinstance(row, dict) else row
        names = {dict: "an object", list: "a list", str: "a text"}
        raise BadRow(f"'{key}' must be {names[kind]}, got {brief(value)}; correct the row")
    return row[key]


def filled_text(row: Any, key: str) -> str:
    """The str under `key`, which must hold more than white space."""
    text = row.get(key)
    if not isinstance(text, str) or not text.strip():
        raise BadRow(f"'{key}' is {brief(text)}; it must be a text, correct the row")
    return text


def whole_number(row: Any, key: str) -> int:
    """The int under `key`, at least 0."""
    number = row.get(key)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise BadRow(f"'{key}' is {brief(number)}; it must be a whole number from 0, correct the row")
    return number


def strings(value: Any, key: Any) -> list[str]:
    """A list of texts and numbers, as list of str."""
    items = as_list(value)
    texts = [text for item in items or [] if (text := as_string(item)) is not None]
    if items is None or len(texts) < len(items):
        raise BadRow(f"'{key}' is {brief(value)}; it must be a list of strings, correct the row")
    return texts


def json_row(item: Any, keys: str) -> dict:
    """The row that a JSON object in a str holds; `keys` names its keys, for messages."""
    if not isinstance(item, str):
        raise BadRow(f"it is {brief(item)}; it must be a dict with {keys}")
    try:
        row = parse_json(item, "it")
    except DataError as error:
        raise BadRow(f"it must be a JSON object with {keys}: {error}") from None
    return row if isinstance(row, dict) else json_row([row], keys)
