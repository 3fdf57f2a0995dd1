"""Reference values: what the library computes with tiny models, kept by one commit and computed again by another.

    python tests/checks/reference.py write FOLDER [--commit C] [--only PART ...]
    python tests/checks/reference.py compare FOLDER [--only PART ...] [--all]

FOLDER/inputs holds what is read, in text, JSON, npz and the published formats, so that a rebuilt library can answer it;
FOLDER/values/PART/CASE what was computed; FOLDER/machine.json on what. `compare` computes everything again from the
inputs, prints a line for each case that differs, with its first difference (--all: with every one), and ends with 1 if
there was any.

Ids, masks, bytes, texts and predictions must agree to the bit. Floats must, too, on the kind of CPU, with the number of
threads and the versions that machine.json has; else every number of an array may be off by 1e-5 * (1 + the largest
absolute value of the recorded array). `compare` says which of the two it asks for.

Initial weights and dropout may change between commits, so that nothing hangs on them: weights are inputs, rates are 0.
A rebuild that renames variables fills `library.RENAMES`. A part is a file of reference_parts/; a name that is registered
in the library and has no case there is refused by `write`.

--commit C writes what a worktree of C computes, with the script of C if it has one and with this one if not.
"""

import argparse
import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: In the order in which they run: what all others stand on comes first.
PARTS = (
    "tokenizers", "shards", "corruption", "models", "checkpoints", "objectives", "optimizers", "generation", "tasks",
    "formats", "exports",
)  # fmt: skip
HERE = Path(__file__).resolve()
#: The checkout whose library is measured.
ROOT = Path(os.environ.get("REFERENCE_LIBRARY") or HERE.parents[2])
ENVIRONMENT = {
    "TF_ENABLE_ONEDNN_OPTS": "1",  # as the commands of the library
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
    "KERAS_BACKEND": "tensorflow",
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("write", "compare"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        command.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
        command.add_argument("--cases", help="only the cases whose names hold this text, for a look at a few")
        if name == "write":
            command.add_argument("--commit", help="write what the library of this commit computes")
        else:
            command.add_argument("--all", action="store_true", help="print every value that differs")
    arguments = parser.parse_args(arguments)
    if getattr(arguments, "commit", None):
        return write_commit(arguments)
    os.environ.update(ENVIRONMENT)
    sys.path[:0] = [str(HERE.parent), str(ROOT)]
    return (write if arguments.command == "write" else compare)(arguments)


def write_commit(arguments):
    """Runs `write` in a process of its own, on a worktree of the commit."""
    git = ["git", "-C", str(HERE.parents[2])]
    folder = tempfile.mkdtemp(prefix="reference-")
    tree = f"{folder}/tree"
    subprocess.run([*git, "worktree", "add", "--detach", "--quiet", tree, arguments.commit], check=True)
    try:
        own = Path(tree, HERE.relative_to(HERE.parents[2]))
        only = ["--only", *arguments.only] if arguments.only != PARTS else []
        command = [sys.executable, str(own if own.exists() else HERE), "write", str(arguments.folder.resolve()), *only]
        print(f"{arguments.commit} by {'its own script' if own.exists() else 'this script'}", flush=True)
        return subprocess.run(command, env=os.environ | {"REFERENCE_LIBRARY": tree}, cwd=tree).returncode
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", tree], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def write(arguments):
    from reference_parts import machine, values

    folder = arguments.folder.resolve()
    if folder.exists():
        return fail(f"{folder} exists already; choose another folder, or remove it")
    parts = prepare(arguments.only)
    missing = [f"{name}: {problem}" for name, part in parts.items() for problem in part.missing()]
    if missing:
        return fail("without a case in tests/checks/reference_parts/:\n  " + "\n  ".join(missing))
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    problems = 0
    with removed_unless_renamed(temporary), make_room(temporary / "inputs", writes=True) as room:
        for name, part in parts.items():
            for case, found, error in computed(name, part, room, arguments.cases):
                if error:
                    problems += 1
                    print(f"{name}/{case}: {error}", flush=True)
                else:
                    values.save(temporary / "values" / name, case, found)
        if problems:
            return fail(f"{problems} cases cannot be computed; nothing was written")
        (temporary / "inputs/cases.json").write_text(json.dumps(settings_of(parts), indent=1, default=vars) + "\n")
        (temporary / "machine.json").write_text(json.dumps(machine.describe(ROOT), indent=1) + "\n")
        temporary.rename(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB")
    return 0


def compare(arguments):
    from reference_parts import machine, values

    folder = arguments.folder.resolve()
    if not (folder / "machine.json").is_file():
        return fail(f"{folder} holds no reference values; write them with `write`")
    parts = prepare(arguments.only)
    other = machine.difference(json.loads((folder / "machine.json").read_text()), machine.describe(ROOT))
    print(f"floats to {values.TOLERANCE:g}: {other}" if other else "floats to the bit: the same CPU, threads, versions")
    differing = compared = 0
    with make_room(folder / "inputs", writes=False) as room:
        for name, part in parts.items():
            stored = folder / "values" / name
            left = set(values.cases_in(stored)) if stored.exists() else set()
            left = {case for case in left if not arguments.cases or arguments.cases in case}
            if not left:
                print(f"{name}: {folder} has no values of it")
                continue
            for case, found, error in computed(name, part, room, arguments.cases):
                if case in left:
                    left.remove(case)
                    old = values.load(stored, case)
                    lines = [error] if error else list(values.differences(old, found, exact=not other))
                else:
                    lines = [error or "is a new case"]
                compared += 1
                differing += bool(lines)
                more = f" (and {len(lines) - 1} more of its {len(old)} values)" if len(lines) > 1 else ""
                for line in lines if arguments.all else lines[:1]:
                    print(f"{name}/{case}: {line}{'' if arguments.all else more}", flush=True)
            for case in sorted(left):
                compared += 1
                differing += 1
                print(f"{name}/{case}: is no longer computed")
    print(f"{differing} of {compared} cases differ" if differing else f"{compared} cases, no difference")
    return int(bool(differing))


def prepare(names):
    """The modules of the parts by name, with TensorFlow set up."""
    import tensorflow as tf
    from absl import logging
    from reference_parts import machine

    logging.set_verbosity("error")
    tf.config.threading.set_intra_op_parallelism_threads(machine.THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(machine.THREADS)
    tf.get_logger().setLevel("ERROR")
    import bert_tf
    import tfrecords

    for package in (bert_tf, tfrecords):
        if not Path(package.__file__).is_relative_to(ROOT):
            raise SystemExit(f"{package.__file__} is imported, which is not in {ROOT}")
    return {name: importlib.import_module(f"reference_parts.{name}") for name in PARTS if name in names}


def settings_of(parts):
    """The settings of all cases by part, for whoever reads the folder without the script."""
    from reference_parts import model_cases

    tables = {name: getattr(part, "CASES", {}) for name, part in parts.items()}
    return {"models": model_cases.MODELS} | {name: table for name, table in tables.items() if table}


def make_room(inputs, writes):
    from reference_parts.room import Room

    return Room(inputs, HERE.parents[1] / "fixtures", writes)


def computed(name, part, room, wanted):
    """Yields (case, its flat values, None or what went wrong) of a part, and prints how long it took."""
    from reference_parts.values import flatten

    begin, processor, count = time.time(), time.process_time(), 0
    for case, compute in part.cases(room):
        if wanted and wanted not in case:
            continue
        count += 1
        started = time.process_time()
        try:
            found, error = flatten(compute()), None
        except Exception as problem:
            if "REFERENCE_TRACE" in os.environ:
                raise
            first = str(problem).strip().partition("\n")[0]
            found, error = {}, f"{type(problem).__name__}: {first[:300]}"
        if "REFERENCE_SECONDS" in os.environ:
            print(f"  {case}: {time.process_time() - started:.2f} s", flush=True)
        yield case, found, error
    room.forget()
    seconds = f"{time.time() - begin:.1f} s, of them {time.process_time() - processor:.1f} s of the processor"
    print(f"{name}: {count} cases in {seconds}", flush=True)


@contextlib.contextmanager
def removed_unless_renamed(folder):
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fail(message):
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
