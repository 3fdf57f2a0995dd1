"""A file of texts with other versions of each: examples for a student.

While the file is made, FILE.partial holds what is done, a line for each example; a killed process continues it.
"""

import dataclasses
import json
from pathlib import Path

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.distillation.augmentation import Augmenter
from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.files import atomic_write, explain_disk_errors, is_there, lock_file, sha256
from bert_tf.progress import Progress
from bert_tf.tasks.rows.columns_config import TextColumns, changed_columns
from bert_tf.tasks.rows.opening import open_table
from bert_tf.tasks.texts.text_task import label_reader, read_texts
from bert_tf.vectors import WordTable

#: Examples that are computed together and then kept.
CHUNK = 64


def augment(model, file, output, config):
    """Writes the texts or pairs of a file, each with other versions of it; the same call resumes.

    Args:
        model: a run pretrained with masked LM, or a published checkpoint with that head.
        file: a labelled file of texts or pairs, or a text a line.
        output: the file to write, .jsonl.
        config: `AugmentConfig`.

    Returns:
        (the number of examples written, those of the file).

    Raises:
        ConfigError: a wrong setting, another ending than .jsonl, or a model without masked LM.
        DataError, RunDirectoryError: a file that cannot be read; as `augment_file`.

    Example:
        bert_tf.save(MaskedLM(encoder), tokenizer, "masked")
        augment("masked", "train.tsv", "augmented.jsonl", AugmentConfig(copies=2, candidates=2))
    """
    if not str(output).endswith(".jsonl"):
        raise ConfigError(f"the output is {output}; it must end with .jsonl: the file has JSON lines")
    columns = changed_columns(TextColumns(), config.columns)
    table = open_table(file, columns)
    has_labels = config.labelled and table.format != "lines"
    examples = read_texts(table, columns, label_reader if has_labels else None)
    opened = OpenedModel(open_source(model))
    words = WordTable.load(config.vectors) if config.vectors else None
    augmenter = Augmenter(opened.objective, opened.tokenizer, config, words)
    key = {name: getattr(config, name) for name in ("copies", "rate", "candidates", "seed")} | {
        "model": opened.source.identity(),
        "tokenizer": opened.tokenizer.fingerprint,
        "vectors": open_source(config.vectors).identity() if config.vectors else None,
        "stop_words": sorted(augmenter.stop_words),
        "labels": has_labels,
        "columns": dataclasses.asdict(columns) | {"format": table.format},
    }
    return augment_file(augmenter, examples, output, key), len(examples)


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
        augmenter = Augmenter(MaskedLM(encoder), tokenizer, AugmentConfig(copies=3, candidates=2))
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
