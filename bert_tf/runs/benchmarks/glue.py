"""GLUE as it is distributed and as it is submitted: folders, files, names, labels. No TensorFlow is imported.

The folders are those of the archives that gluebenchmark.com serves, the submission is what it takes: a zip of TSV files
with the columns `index` and `prediction`.
"""

from bert_tf.runs.benchmarks.benchmark import Benchmark, BenchmarkTask, Submitted, read_published
from bert_tf.tasks.glue import GLUE_TASKS


def _task(name, title, metrics, submitted=None, dev="dev.tsv", other_dev=None):
    submitted = submitted or (Submitted(title, ("test.tsv",)),)
    return BenchmarkTask(name, title, metrics, submitted, {"preset": name}, "train.tsv", dev, other_dev)


_MNLI = (
    Submitted("MNLI-m", ("test_matched.tsv",)), Submitted("MNLI-mm", ("test_mismatched.tsv",)),
    Submitted("AX", ("../AX/AX.tsv", "../AX/test.tsv", "../diagnostic/diagnostic.tsv", "../ax/AX.tsv", "../ax/test.tsv")),
)  # fmt: skip
_MRPC = (Submitted("MRPC", ("test.tsv", "msr_paraphrase_test.txt"), format="tsv"),)

#: In the order of the tables of the papers, with the metrics of the GLUE paper.
_TASKS = (
    _task("mnli", "MNLI", ("accuracy",), _MNLI, dev="dev_matched.tsv", other_dev="dev_mismatched.tsv"),
    _task("qnli", "QNLI", ("accuracy",)),
    _task("qqp", "QQP", ("f1", "accuracy")),
    _task("rte", "RTE", ("accuracy",)),
    _task("sst2", "SST-2", ("accuracy",)),
    _task("mrpc", "MRPC", ("f1", "accuracy"), _MRPC),
    _task("cola", "CoLA", ("matthews",)),
    _task("stsb", "STS-B", ("pearson", "spearman")),
    _task("wnli", "WNLI", ("accuracy",)),
)


def prediction(name, answer):
    """What the submission's column `prediction` says for an answer of `Task.predict`.

    STS-B takes numbers from 0 to 5, here with three decimals, as jiant writes them; the others take labels. An answer
    without a label, to a line that has no text, is the task's first label, or 0.
    """
    if GLUE_TASKS[name].kind == "regression":
        return f"{min(max(answer.get('score', 0.0), 0.0), 5.0):.3f}"
    return answer.get("label", GLUE_TASKS[name].labels[0])


def _lines(name, path, answers):
    return ["index\tprediction", *(f"{index}\t{prediction(name, answer)}" for index, answer in enumerate(answers))]


def _hint(name, path):
    if name == "mrpc" and (path / "msr_paraphrase_train.txt").is_file():
        of_microsoft = "; of Microsoft's msr_paraphrase_train.txt write the 408 rows that dev_ids.tsv lists to dev.tsv"
        return f"{of_microsoft} and the others to train.tsv"
    return ""


#: RTE, STS-B and MRPC start from MNLI in Liu et al. 2019, section 5.1, and Lan et al. 2020, section 4.9.
GLUE = Benchmark(
    title="GLUE",
    site="gluebenchmark.com",
    tasks={task.name: task for task in _TASKS},
    from_mnli=("rte", "stsb", "mrpc"),
    published=read_published("glue"),
    published_note="The published numbers are of the dev sets, too; QQP is accuracy, MRPC accuracy or F1 as each author has it.",
    ending=".tsv",
    lines=_lines,
    hint=_hint,
)
