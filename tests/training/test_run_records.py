"""What a run writes about itself, and a bug in its report."""

import json
import warnings

import pytest

from bert_tf.errors import ReportWarning, guarded
from bert_tf.training.run_records import keep_findings


def test_parts_of_report_json_are_kept_together(tmp_path):
    keep_findings(tmp_path, learning_rate=[[0, 0.5]])
    keep_findings(tmp_path, dev={"wrong": 3})
    assert json.loads((tmp_path / "report.json").read_text())["learning_rate"] == [[0, 0.5]]
    (tmp_path / "report.json").write_text("damaged")
    keep_findings(tmp_path, test={"wrong": 1})
    expected = {"baselines": {}, "learning_rate": [], "dev": None, "test": {"wrong": 1}}
    assert json.loads((tmp_path / "report.json").read_text()) == expected


def test_a_bug_is_a_warning_to_users_and_an_error_here():
    message = r"the page was not written \(KeyError: 'x'\); the training is not affected"
    with pytest.raises(ReportWarning, match=message), guarded("the page"):
        {}["x"]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        with guarded("the page"):
            {}["x"]
    assert len(found) == 1 and found[0].category is ReportWarning
    with pytest.raises(KeyboardInterrupt), guarded("the page"):
        raise KeyboardInterrupt
