"""A study without shards: one given model, fine-tuned with different settings."""

import json
from types import SimpleNamespace

import pytest

from bert_tf import config
from bert_tf.cli.main import main
from bert_tf.errors import Advice, ConfigError, DataError
from bert_tf.runs import study as studies
from bert_tf.runs.study import StudyConfig, collect, plan, run_study
from bert_tf.tasks.record import check_task


@pytest.fixture
def folder(tmp_path):
    for name in ("eng.train", "eng.testa"):
        (tmp_path / name).write_text("EU B-ORG\n")
    return tmp_path


def study(folder, init_from="run", **changes):
    data = {"train": str(folder / "eng.train"), "dev": str(folder / "eng.testa")}
    settings = {
        "finetune": {"entities": {"task": {"kind": "tagging"}, "data": data}},
        "rows": {"fine_tuning": {}, "last": {"finetune": {"task": {"frozen_layers": {"name": "last"}}}}},
        "init_from": init_from,
    }
    return config.build(StudyConfig, settings | changes)


def test_rows_are_fine_tuned_from_one_model(folder, monkeypatch):
    opened, asked = [], []

    def finetune_grid(grid, output):
        (settings,) = grid.configs
        frozen_layers = check_task(settings.task).frozen_layers.name
        asked.append((settings.init_from, frozen_layers, output.relative_to(folder).as_posix()))
        output.mkdir(parents=True)
        score = {"mean": {"f1": 0.5 + 0.1 * len(asked)}, "spread": {"f1": 0.01}, "baselines": {}}
        tuned = {"mean": {"best_f1": 0.9}}  # on the file that it measures
        summary = {"metric": "best_f1", "test_metric": "f1", "best": ".", "seeds": [], "dev": tuned, "test": score}
        (output / "summary.json").write_text(json.dumps(summary))

    monkeypatch.setattr(studies, "finetune_grid", finetune_grid)
    monkeypatch.setattr(studies, "pretrain", SimpleNamespace())  # not called
    monkeypatch.setattr(studies, "open_source", opened.append)  # before anything is trained
    table = run_study(study(folder), None, None, folder / "out").means()
    assert opened == ["run", "run"]
    assert asked == [("run", "none", "out/fine_tuning/seed-0/entities"), ("run", "last", "out/last/seed-0/entities")]
    assert {row: mean["entities.f1"] for row, mean in table.items()} == {"fine_tuning": 0.6, "last": 0.7}
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert 'value="0.7"' in page and "± 0.0100" in page


def test_the_registry_says_which_number_is_the_best(folder):
    """Not the name of a column: this task's name has "error" in it, and the lowest log_loss is the best."""
    data = {"train": str(folder / "eng.train"), "dev": str(folder / "eng.testa")}
    tasks = {"error_detection": {"task": {"kind": "tagging"}, "data": data}}
    tasks["reviews"] = {"task": {"kind": "classification", "metric": "log_loss"}, "data": data}
    experiments = plan(study(folder, finetune=tasks), folder / "out")
    for number, experiment in enumerate(experiments):
        metric = "log_loss" if experiment.folder.name == "reviews" else "f1"
        summary = {"metric": metric, "best": ".", "seeds": [], "dev": {"mean": {metric: 0.5 + number / 10}}}
        experiment.folder.mkdir(parents=True)
        (experiment.folder / "summary.json").write_text(json.dumps(summary))
    table = collect(experiments, folder / "out").table
    assert table.lower == {"error_detection.f1": False, "reviews.log_loss": True}
    assert (table.best("error_detection.f1"), table.best("reviews.log_loss")) == (1, 0)


def test_advice_names_settings_as_the_study_does(folder, monkeypatch):
    def finetune_grid(grid, output):
        raise DataError("name the column with ", Advice("data.columns.tags", 3), ", or correct its data.columns.tags=2")

    monkeypatch.setattr(studies, "finetune_grid", finetune_grid)
    monkeypatch.setattr(studies, "open_source", lambda path: None)
    with pytest.raises(DataError) as caught:
        run_study(study(folder), None, None, folder / "out")
    assert str(caught.value) == (
        "finetune.entities: name the column with finetune.entities.data.columns.tags=3, or correct its data.columns.tags=2"
    )


def test_a_list_of_rates_is_a_grid_of_which_the_best_counts(folder, monkeypatch):
    asked = []

    def finetune_grid(grid, output):
        configs = [combination.config for combination in grid.combinations]
        asked.append([(c.optimizer.learning_rate, check_task(c.task).frozen_layers.name) for c in configs])
        output.mkdir(parents=True)
        dev = {"mean": {"f1": 0.7}, "baselines": {}}
        summary = {"metric": "f1", "best": "learning_rate=0.001", "seeds": [], "dev": dev}
        (output / "summary.json").write_text(json.dumps(summary))

    monkeypatch.setattr(studies, "finetune_grid", finetune_grid)
    monkeypatch.setattr(studies, "open_source", lambda path: None)
    tuned = study(folder)
    tuned.finetune["entities"]["optimizer"] = {"learning_rate": [1e-3, 1e-2]}
    table = run_study(tuned, None, None, folder / "out").means()
    assert asked == [[(1e-3, features), (1e-2, features)] for features in ("none", "last")]
    assert table["last"] == {"seeds": 1, "entities.f1": 0.7}


@pytest.mark.parametrize(("changes", "message"), [
    ({"init_from": ""}, "its rows fine-tune a given model; name it with init_from=RUN, or add shards"),
    ({"pretrain": {"train": {"steps": 3}}}, "no shards to pretrain on; remove 'pretrain'"),
    ({"seeds": 2}, "seeds=2 repeats the pretraining"), ({"finetune": {}}, "no task under 'finetune'"),
    ({"rows": {"a": {"shards": "pairs"}}}, "rows.a.shards is of pretraining, and the study has no shards"),
    ({"rows": {"a": {"seeds": 3}}}, "rows.a.seeds is of pretraining"),
    ({"shards": {"pairs": {"sequence_length": 32}}}, "init_from=run is for a study without shards"),
    ({"rows": {"a": {"finetune": {"init_from": "x"}}}}, "rows.a.finetune.entities.init_from is set by the study"),
    ({"rows": {"a": {"finetune": {"train": {"epochs": 0}}}}}, "finetune.entities: 'train.epochs' is 0"),
])  # fmt: skip
def test_mistakes(folder, changes, message):
    with pytest.raises(ConfigError, match=message):
        plan(study(folder, **changes), folder / "out")


def test_the_command_says_what_is_missing_or_of_no_use(capsys):
    given = "--config ablations/bert_features --output x --init-from r --corpus c"
    assert main(["study", *given.split()]) == 1
    assert "--corpus does not apply: the study has no shards" in capsys.readouterr().err
    assert main(["study", "--config", "ablations/masked_lm", "--output", "x", "--tokenizer", "t"]) == 1
    assert "--corpus must be given: the study pretrains its rows" in capsys.readouterr().err
