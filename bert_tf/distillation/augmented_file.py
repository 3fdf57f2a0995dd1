"""A file of texts with other versions of each: examples for a student.

While the file is made, FILE.partial holds what is done, a line for each example; a killed process continues it.
"""

import json
from pathlib import Path

from bert_tf.errors import RunDirectoryError
from bert_tf.files import atomic_write, explain_disk_errors, is_there, lock_file, sha256
from bert_tf.progress import Progress

#: Examples that are computed together and then kept.
CHUNK = 64


def augment_file(augmenter, examples, output, key):
    """Writes each example and its other versions; one text of a pair is changed at a time.

    The same call continues a file that was interrupted, with the same result byte for byte.

    Args:
        augmenter: `Augmenter`.
        examples: `Examples` of texts or pairs.
        output: the file, of JSON lines with `text`, perhaps `text_pair`, and with labels `label`.
        key: what the versions depend on besides the examples' file, a dict for JSON; a partial file of another key is
            begun again.

    Returns:
        The number of examples written.

    Raises:
        RunDirectoryError: `output` is there, or its folder cannot be written.

    Example:
        augmenter = Augmenter(MaskedLM(encoder), tokenizer, copies=3, candidates=2)
        task = build_task({"kind": "classification", "sequence_length": 16}, tokenizer)
        augment_file(augmenter, task.read("train.tsv"), "augmented.jsonl", {"copies": 3})
    """
    output = Path(output)
    partial = output.with_name(f"{output.name}.partial")
    exists = RunDirectoryError(f"{output} exists already; choose another file, or remove it")
    if is_there(output) and not is_there(partial):
        raise exists
    key = json.dumps(key | {"file": sha256(examples.path)}, sort_keys=True)
    with explain_disk_errors(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with lock_file(partial) as file:
            done, end = _count_done(file, key)
            if is_there(output) and done < len(examples):
                raise exists
            progress = Progress("augmenting,", len(examples), "examples", done=done)
            file.seek(end)
            file.truncate()
            if not end:
                file.write(f"{key}\n".encode())
            for start in range(done, len(examples), CHUNK):
                numbers = range(start, min(start + CHUNK, len(examples)))
                for rows in _versions(augmenter, examples, numbers):
                    file.write(f"{json.dumps(rows)}\n".encode())
                file.flush()
                progress.update(numbers.stop)
            progress.finish()
            count = 0
            file.seek(0)
            with atomic_write(output, replace=is_there(output)) as result:
                next(file)
                for line in file:
                    for row in json.loads(line):
                        result.write(json.dumps(row) + "\n")
                        count += 1
            partial.unlink()
    return count


def _count_done(file, key):
    """(examples that an open partial file holds, the bytes up to their end); (0, 0) where it is none of `key`."""
    done, end = -1, 0  # the first line is the key
    for line in file:
        if not line.endswith(b"\n") or (end == 0 and line != f"{key}\n".encode()):
            break
        done, end = done + 1, end + len(line)
    return max(done, 0), end


def _versions(augmenter, examples, numbers):
    """For each example a list of dicts: itself, then those with another first text, then with another second one."""
    columns = [("text", examples.texts)] + ([("text_pair", examples.text_pairs)] if examples.text_pairs else [])
    rows = []
    for number in numbers:
        row = {name: texts[number] for name, texts in columns}
        rows.append([row | ({"label": examples.labels[number]} if examples.labels is not None else {})])
    for index, (name, texts) in enumerate(columns):
        drawn = augmenter.versions([texts[number] for number in numbers], [(number, index) for number in numbers])
        for of_example, versions in zip(rows, drawn):
            of_example += [of_example[0] | {name: version} for version in versions]
    return rows
