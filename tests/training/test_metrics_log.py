import json

from bert_tf.training.metrics_log import MetricsLog
from bert_tf.training.run_directory import RunDirectory


def test_lines_are_added_and_a_number_that_is_not_finite_is_null(tmp_path):
    run = RunDirectory(tmp_path)
    run.write_metrics([{"step": 1, "loss": 2.0}])
    log = MetricsLog(run)
    log.write({"step": 2, "loss": float("nan"), "collapsed": True})
    log.write({"step": 3, "loss": 1.5, "warning": "one label"})
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    last = {"step": 3, "loss": 1.5, "warning": "one label"}
    assert lines == [{"step": 1, "loss": 2.0}, {"step": 2, "loss": None, "collapsed": True}, last]
    assert log.lines == 3 and list((tmp_path / "tensorboard").iterdir())
