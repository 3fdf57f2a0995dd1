"""The floors of the house: a file imports only from lower floors or from its own room."""

import ast
import configparser
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
FOUNDATION = set(
    "config console encodings errors files hub interrupts lazy markup parsing progress registry table types".split()
)
#: A room, and the rooms that its files may import beside the foundation.
_FLOORS = """
    backend:
    layers: backend
    tokenizers:
    models: backend layers
    tfrecords: tokenizers
    objectives: backend layers tokenizers models tfrecords
    generation: backend layers tokenizers models tfrecords objectives
    tasks: backend layers tokenizers models tfrecords objectives generation
    checkpoints: backend layers tokenizers models tfrecords objectives generation tasks
    probing: backend layers tokenizers models tfrecords objectives generation tasks prompting reporting
    prompting: backend layers tokenizers models tfrecords objectives generation tasks samples
    training: backend layers tokenizers models tfrecords objectives checkpoints tasks
    runs: backend layers tokenizers models tfrecords objectives checkpoints tasks training
    reporting: training runs
    vectors: backend layers tokenizers models tfrecords checkpoints training
    export: backend layers tokenizers models tfrecords objectives generation checkpoints tasks training
    compression: backend layers tokenizers models tfrecords objectives checkpoints tasks training export
    distillation: backend layers tokenizers models tfrecords objectives checkpoints tasks training vectors
    testing: backend layers tokenizers models tfrecords objectives tasks training export reporting
"""
MAY_IMPORT = {
    room.strip(): set(rooms.split()) for room, rooms in (row.split(":") for row in _FLOORS.strip().splitlines())
}
#: The one import from above: training writes the report of its run, which reads the records below it.
REPORT_HOOK = ("bert_tf/training/run_records.py", "bert_tf.reporting.write_report")
#: What may open every room: the command line, and what Python users call.
FRONT = ("cli", "language_model", "training_calls")
PURE_KERAS = ("layers", "models", "objectives", "generation")
FILES = sorted([*(ROOT / "bert_tf").rglob("*.py"), *(ROOT / "tfrecords").rglob("*.py")])


def room_of(parts):
    """The room that a dotted module name lies in, or None outside the house."""
    if parts[0] == "tfrecords":
        return "tfrecords"
    if parts[0] == "bert_tf":
        return parts[1] if len(parts) > 1 else "bert_tf"
    return None


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_stay_on_lower_floors(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    room = room_of(parts)
    if parts in (("bert_tf", "__init__"), ("bert_tf", "__main__")) or room in FRONT:
        return
    for module in set(imported_modules(path)) - {hook for file, hook in [REPORT_HOOK] if path == ROOT / file}:
        other = room_of(module.split("."))
        if room in FOUNDATION:
            assert other in FOUNDATION | {None}, f"{path} imports {module}"
        elif other not in FOUNDATION | {None, "bert_tf", room}:
            assert other in MAY_IMPORT[room], f"{path} imports {module}"
        if room in PURE_KERAS:
            assert not module.startswith("tensorflow"), f"{path} imports {module}"


def test_the_road_of_the_data_is_straight():
    """Each folder of `tfrecords` imports only from those before it; what several need lies beside them."""
    road = "corpus packing shards reading corruption".split()
    for path in (ROOT / "tfrecords").rglob("*.py"):
        room = path.relative_to(ROOT / "tfrecords").parts[0]
        after = road[road.index(room) + 1 :] if room in road else road
        if room not in ("__init__.py", "inspection.py"):
            assert not [m for m in imported_modules(path) if m.startswith(tuple(f"tfrecords.{r}" for r in after))], path


def test_the_backend_of_keras_is_asked_for_once():
    """What differs between backends is written once for each, and chosen where `bert_tf.backend` is imported."""
    asking = [path for path in FILES if re.search(r"(backend|config)\.backend\(", path.read_text(encoding="utf-8"))]
    assert asking == [ROOT / "bert_tf" / "backend" / "__init__.py"]
    for path in (ROOT / "bert_tf" / "backend").glob("*.py"):
        assert "tensorflow" not in [module.split(".")[0] for module in imported_modules(path)], path


SETTINGS = """
    bert_tf.models.families bert_tf.training.pretrain_config bert_tf.training.finetune_config
    bert_tf.runs.study_config bert_tf.distillation.distill_config bert_tf.distillation.augment_config
    bert_tf.prompting.prompting_config bert_tf.vectors.vectors_config
    bert_tf.reporting.report bert_tf.tasks.record bert_tf.objectives.registry tfrecords.config
    tfrecords.corruption.masking_config tfrecords.corruption.permutation_config
""".split()


def test_settings_are_checked_without_tensorflow():
    program = f"import sys, {', '.join(SETTINGS)}\n" + "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_what_is_imported_is_declared():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lists = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    declared = {Requirement(line).name.lower() for text in lists for line in text.split("\n") if line.strip()}
    imported = {module.split(".")[0] for path in FILES for module in imported_modules(path)}
    places = importlib.metadata.packages_distributions()
    for module in imported - {"bert_tf", "tfrecords", "__future__", "_typeshed"} - set(sys.stdlib_module_names):
        names = {name.lower().replace("_", "-") for name in places.get(module, [module])}
        assert names & {name.replace("_", "-") for name in declared}, (
            f"{module} is imported, and setup.cfg does not name it"
        )


def checked_files():
    """The files that the type checker reads: setup.cfg lists their folders and modules."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    names = [setup["mypy"][key].replace(",", " ").split() for key in ("packages", "modules")]
    for package in names[0]:
        yield from sorted((ROOT / package.replace(".", "/")).rglob("*.py"))
    for module in names[1]:
        path = ROOT / module.replace(".", "/")
        yield path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def public_functions(body, prefix=""):
    for node in body:
        public = not node.name.startswith("_") if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else False
        if isinstance(node, ast.ClassDef) and public:
            yield from public_functions(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and (public or (node.name.endswith("__") and prefix)):
            yield prefix + node.name, node


@pytest.mark.parametrize("path", list(checked_files()), ids=lambda p: str(p.relative_to(ROOT)))
def test_public_signatures_have_types(path):
    """mypy checks the types that there are, and has no notion of public."""
    for name, function in public_functions(ast.parse(path.read_text(encoding="utf-8")).body):
        given = function.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        first = [a.arg for a in given.args[:1] if "." in name and a.arg in ("self", "cls")]
        untyped = [a.arg for a in arguments if a.annotation is None and a.arg not in first]
        assert not untyped, f"{path}: {name} has no types for {', '.join(untyped)}"
        assert function.returns is not None, f"{path}: {name} has no type for what it returns"


def test_files_are_small():
    long = {str(p.relative_to(ROOT)): n for p in FILES if (n := len(p.read_text().splitlines())) > 500}
    assert not long


def test_no_two_test_files_share_a_name():
    """Pytest imports a test file by its name alone, and leaves out the second one."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_no_message_outside_of_the_command_line_names_a_flag():
    """Errors carry an `Advice`, which the command line words; only what says whole commands to run names their flags."""
    whole_commands = ROOT / "bert_tf" / "training" / "budget.py"
    named = []
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, documented) and ast.get_docstring(node)
        }
        texts = [
            n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
        ]
        if path != whole_commands and "cli" not in path.parts:
            named += [f"{path}: {text.value}" for text in texts if re.search(r"(?<![\w-])--[a-z]{2}", text.value)]
    assert not named
