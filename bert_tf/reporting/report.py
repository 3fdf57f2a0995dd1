"""Writes report.html."""

from pathlib import Path

from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.files import atomic_write, is_there
from bert_tf.reporting.document import document
from bert_tf.reporting.group_pages import results_page, runs_page
from bert_tf.reporting.pages import run_page
from bert_tf.reporting.runs import read_run
from bert_tf.runs.experiment import RESULTS

PAGE = "report.html"


def write_report(*paths, output=None):
    """Writes the page of a run, a study, a grid or a benchmark, or one page of several runs laid over each other.

    The page is one file without scripts and outside references. It is made of the records alone, without the model, and
    is the same bit for bit each time. No TensorFlow is imported.

    Args:
        paths: a run directory, finished or not, or the folder of a study, a grid or a benchmark; or several
            run directories.
        output: the HTML file; None: report.html in the folder, where there is one folder.

    Returns:
        Path of the file.

    Raises:
        RunDirectoryError: a folder holds no run and no study, or the file cannot be written.
        DataError, ConfigError: a record is damaged; names it.
        ConfigError: several folders and no `output`, or a study or a benchmark among them.

    Example:
        import shutil

        write_report("run")  # run/report.html
        shutil.copytree("run", "other")
        write_report("run", "other", output="both.html")
    """
    if not paths:
        raise ConfigError("there is no run to report on; give the folder of a run or a study")
    groups = [path for path in paths if is_there(Path(path) / RESULTS)]
    if len(paths) > 1 and groups:
        raise ConfigError(f"{groups[0]} is a study, a grid or a benchmark; give it alone, or several runs")
    if len(paths) > 1 and output is None:
        raise ConfigError("several runs need ", Advice("output", "FILE"), ", the page on which they are compared")
    try:
        if len(paths) > 1:
            title, parts = runs_page([read_run(path) for path in paths])
        else:
            folder = Path(paths[0])
            title, parts = results_page(folder) if is_there(folder / RESULTS) else run_page(read_run(folder))
        text = document(title, parts)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"the records in {', '.join(map(str, paths))} (config.yaml, metrics.jsonl, finished.json, summary.json, "
            f"report.json) do not have the form in which they were written ({type(error).__name__}: {error}); restore "
            "them from a copy. report.json alone may also be deleted: the page is then made without examples"
        ) from error
    output = Path(paths[0]) / PAGE if output is None else Path(output)
    with atomic_write(output) as file:
        file.write(text)
    return output
