"""GLUE as it is distributed and as it is submitted: folders, files, names, labels. No TensorFlow is imported.

The folders are those of the archives that gluebenchmark.com serves, the submission is what it takes: a zip of TSV files
with the columns `index` and `prediction`.
"""

import dataclasses
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.tasks.glue import GLUE_TASKS


@dataclasses.dataclass(frozen=True)
class GlueFiles:
    """The files of one task of GLUE.

    Attributes:
        name: the preset, a key of `GLUE_TASKS`.
        title: how tables call it, which is also its folder.
        metrics: what the table shows, the metrics of the GLUE paper.
        dev: the labelled file that chooses the best epoch.
        other_dev: a second labelled file, or None.
        submitted: pairs (name in the submission, names of the unlabelled file, of which the first that exists is read).
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    submitted: tuple
    dev: str = "dev.tsv"
    other_dev: str | None = None


_TEST = ("test.tsv",)
_MNLI = (
    ("MNLI-m", ("test_matched.tsv",)), ("MNLI-mm", ("test_mismatched.tsv",)),
    ("AX", ("../AX/AX.tsv", "../AX/test.tsv", "../diagnostic/diagnostic.tsv", "../ax/AX.tsv", "../ax/test.tsv")),
)  # fmt: skip

#: In the order of the tables of the papers.
GLUE_FILES = {
    files.name: files
    for files in (
        GlueFiles("mnli", "MNLI", ("accuracy",), _MNLI, dev="dev_matched.tsv", other_dev="dev_mismatched.tsv"),
        GlueFiles("qnli", "QNLI", ("accuracy",), (("QNLI", _TEST),)),
        GlueFiles("qqp", "QQP", ("f1", "accuracy"), (("QQP", _TEST),)),
        GlueFiles("rte", "RTE", ("accuracy",), (("RTE", _TEST),)),
        GlueFiles("sst2", "SST-2", ("accuracy",), (("SST-2", _TEST),)),
        GlueFiles("mrpc", "MRPC", ("f1", "accuracy"), (("MRPC", (*_TEST, "msr_paraphrase_test.txt")),)),
        GlueFiles("cola", "CoLA", ("matthews",), (("CoLA", _TEST),)),
        GlueFiles("stsb", "STS-B", ("pearson", "spearman"), (("STS-B", _TEST),)),
        GlueFiles("wnli", "WNLI", ("accuracy",), (("WNLI", _TEST),)),
    )
}

#: Published results on the dev sets, one number a task: the READMEs of the authors, of transformers for BERT-base and
#: DistilBERT. MNLI is matched, QQP accuracy; MRPC is F1 for BERT-base and accuracy or F1 as each author reports it.
PUBLISHED = {
    "BERT-base": (84.7, 91.8, 89.6, 69.3, 92.7, 88.6, 56.3, 89.0),
    "BERT-large": (86.6, 92.3, 91.3, 70.4, 93.2, 88.0, 60.6, 90.0),
    "RoBERTa-base": (87.6, 92.8, 91.9, 78.7, 94.8, 90.2, 63.6, 91.2),
    "RoBERTa-large": (90.2, 94.7, 92.2, 86.6, 96.4, 90.9, 68.0, 92.4),
    "XLNet-base": (86.8, 91.7, 91.4, 74.0, 94.7, 88.2, 60.2, 89.5),
    "XLNet-large": (89.8, 93.9, 91.8, 83.8, 95.6, 89.2, 63.6, 91.8),
    "ALBERT-xxlarge": (90.8, 95.3, 92.2, 89.2, 96.9, 90.9, 71.4, 93.0),
    "ELECTRA-small": (81.3, 88.4, 89.0, 66.7, 91.2, 88.0, 57.0, 87.5),
    "ELECTRA-base": (88.8, 93.2, 91.5, 82.7, 95.1, 89.5, 67.7, 91.2),
    "ELECTRA-large": (90.9, 95.0, 92.4, 88.0, 96.9, 90.8, 69.1, 92.6),
    "DistilBERT-base": (82.1, 89.2, 88.5, 59.9, 91.3, 87.5, 51.3, 86.9),
}


def find_glue(folder, names=None):
    """The tasks of GLUE that a folder holds with train and dev file.

    Args:
        folder: holds a folder for each task, as CoLA, SST-2, ...; upper and lower case and hyphens do not count.
        names: the tasks that are asked for; None for what there is.

    Returns:
        (preset -> the task's folder, a Path, in the order of the sizes of train.tsv, and a list of sentences about what
        was found and cannot be used).

    Raises:
        DataError: no such folder, none of the tasks in it, or one that is asked for and lacks a file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"no GLUE at {folder}: there is no such folder")
    there = {_plain(path.name): path for path in sorted(folder.iterdir()) if path.is_dir()}
    sizes, lacking = {}, {}
    for name, files in GLUE_FILES.items():
        path = there.get(name)
        missing = [file for file in ("train.tsv", files.dev) if path is None or not (path / file).is_file()]
        if missing and path is not None:
            lacking[name] = f"{path} has no {' and no '.join(missing)}{_hint(name, path)}"
        elif not missing:
            sizes[name] = (path / "train.tsv").stat().st_size
    for name in names or ():
        if name not in sizes:
            raise DataError(lacking.get(name, f"{folder} has no folder {GLUE_FILES[name].title}"))
    if not sizes:
        titles = ", ".join(files.title for files in GLUE_FILES.values())
        raise DataError("; ".join(lacking.values()) or f"{folder} holds none of the folders of GLUE: {titles}")
    found = sorted((name for name in sizes if not names or name in names), key=sizes.get)
    return {name: there[name] for name in found}, [text for name, text in lacking.items() if not names]


def unlabelled_file(folder, candidates):
    """The first of these files that exists beside or in the folder of a task, or None."""
    return next((folder / name for name in candidates if (folder / name).is_file()), None)


def prediction(name, answer):
    """What the submission's column `prediction` says for an answer of `Task.predict`.

    STS-B takes numbers from 0 to 5, here with three decimals, as jiant writes them; the others take labels. An answer
    without a label, to a line that has no text, is the task's first label, or 0.
    """
    if GLUE_TASKS[name].kind == "regression":
        return f"{min(max(answer.get('score', 0.0), 0.0), 5.0):.3f}"
    return answer.get("label", GLUE_TASKS[name].labels[0])


def _plain(name):
    return name.lower().replace("-", "").replace("_", "")


def _hint(name, path):
    if name == "mrpc" and (path / "msr_paraphrase_train.txt").is_file():
        return (
            "; the files of Microsoft are there, and GLUE's dev set is the 408 of their training pairs that dev_ids.tsv "
            "lists: write these rows to dev.tsv and the others to train.tsv"
        )
    return ""
