"""How tests/checks/calls.py counts the functions that a command enters."""

import runpy
from pathlib import Path

from bert_tf import registry

calls = runpy.run_path(str(Path(__file__).parent / "checks/calls.py"))
LOOKS_UP = """
for name in ("there", "again"):
    try:
        registry.Registry("kind", "key")[name]
    except registry.ConfigError:
        pass
"""


def test_a_function_counts_once_where_it_is_entered_first():
    with calls["Calls"]() as counted:
        calls["run"]("from bert_tf import registry\n" + LOOKS_UP)
    registered = ["bert_tf/registry.py Registry.__init__", "bert_tf/registry.py Registry.__getitem__"]
    expected = [*registered, "bert_tf/parsing.py brief", "bert_tf/config.py nearest"]
    assert [f"{f.file} {f.name}" for f in counted.path()] == expected


def test_what_an_import_runs_does_not_count():
    module = compile(LOOKS_UP + "class Name:\n    pass\n", str(calls["ROOT"] / "bert_tf/a_module.py"), "exec")
    with calls["Calls"]() as counted:
        exec(module, {"registry": registry, "__name__": "a_module"})
    assert counted.path() == []


def test_a_return_is_to_a_file_that_was_left_and_a_step_up_to_one_that_may_import_it():
    config, model, task, command = (f"bert_tf/{p}.py" for p in ("config", "models/bert", "tasks/text", "cli/main"))
    files = [command, task, task, model, config, task, task, model, "tfrecords/reader.py", command]
    path = [calls["Function"](file, line, f"f{line}") for line, file in enumerate(files)]
    returns, up = zip(*calls["steps"](path))
    assert [i for i, is_return in enumerate(returns) if is_return] == [5, 7, 9]
    assert [i for i, is_up in enumerate(up) if is_up] == [5, 9]
    summary, *lines = calls["report"](path, functions=True)
    assert summary == "10 functions in 5 files of 5 folders; 3 returns, to 3 files; 2 steps up"
    assert lines[-2:] == ["<^ bert_tf/cli/main.py", "        9 f9"]
