"""The files of byte-pair encodings: vocab.json (or encoder.json) and merges.txt (or vocab.bpe)."""

import json
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.parsing import brief, read_json_object


def read_json_vocabulary(path):
    """The tokens of a vocab.json, a mapping of token -> id, in the order of their ids.

    Raises:
        DataError: no JSON, no such mapping, an id that is missing or there twice.
    """
    return tokens_by_id(read_json_object(path), path)


def tokens_by_id(ids, where):
    """The keys of a mapping of token -> id in the order of the ids 0, 1, 2, ...

    Raises:
        DataError: another thing, or ids with a gap.
    """
    if not isinstance(ids, dict) or not ids or not all(type(i) is int for i in ids.values()):
        raise DataError(f"{where} must map tokens to ids, which are integers")
    found = {}
    for token, token_id in ids.items():
        if found.setdefault(token_id, token) != token:
            raise DataError(f"{where}: '{found[token_id]}' and '{token}' both have the id {token_id}")
    for token_id in range(len(found)):
        if token_id not in found:
            raise DataError(f"{where} has {len(found)} tokens, but none with the id {token_id}")
    return [found[i] for i in range(len(found))]


def read_merges(path):
    """The pairs of a merges.txt, one a line, two tokens set apart by a blank.

    A first line that begins with "#version" is left out, and empty lines at the end.

    Raises:
        DataError: a line without two tokens, bytes that are no UTF-8; with the line's number.
    """
    try:
        content = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no UTF-8, byte {error.start}") from None
    merges = []
    for number, line in enumerate(content.rstrip("\r\n").split("\n"), 1):
        line = line.removesuffix("\r")
        if number == 1 and (line.startswith("#version") or not line):
            continue
        pair = line.split(" ")
        if len(pair) != 2 or not all(pair):
            raise DataError(f"{path}, line {number}: {brief(line)} is no pair of tokens")
        merges.append(tuple(pair))
    return merges


def check_merges(merges, ids):
    """`merges` as a tuple of pairs of str.

    Raises:
        DataError: a merge of, or into, what the vocabulary `ids` lacks.
    """
    merges = tuple((str(a), str(b)) for a, b in merges)
    for number, (a, b) in enumerate(merges, 1):
        for token in (a, b, a + b):
            if token not in ids:
                raise DataError(f"merge {number}, '{a}' and '{b}': the vocabulary lacks '{token}'")
    return merges


def write_bpe(tokenizer, folder):
    """Writes vocab.json and merges.txt into `folder`."""
    folder = Path(folder)
    with atomic_write(folder / "vocab.json") as file:
        json.dump({token: i for i, token in enumerate(tokenizer.vocabulary)}, file, ensure_ascii=False)
    with atomic_write(folder / "merges.txt") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in tokenizer.merges))


def write_config(tokenizer, folder, settings):
    """Writes tokenizer_config.json: `settings`, the special tokens, and the layout."""
    roles = {f"{role}_token": token for role, token in tokenizer.role_tokens.items()}
    added = {
        str(tokenizer.token_to_id(t.content)): {
            "content": t.content, "lstrip": t.lstrip, "rstrip": t.rstrip, "normalized": t.normalized,
            "single_word": False, "special": t.special,
        }
        for t in sorted(tokenizer.special_token_details, key=lambda t: tokenizer.token_to_id(t.content))
    }  # fmt: skip
    config = {**settings, **roles, "layout": tokenizer.layout_name, "added_tokens_decoder": added}
    with atomic_write(Path(folder) / "tokenizer_config.json") as file:
        json.dump(config, file, ensure_ascii=False, indent=2)
        file.write("\n")
