"""Which functions of the project a command enters, in how many files, and how often it returns to a file it had left.

    python tests/checks/calls.py 'bert-tf evaluate task test.tsv'
    python tests/checks/calls.py 'import bert_tf; bert_tf.load("tests/fixtures/checkpoints/bert")' --files

A profile hook notes the first entry of each function of bert_tf/ and tfrecords/. In the order of these entries the
functions make a path, from file to file, as of a reader who opens each function when the command first needs it.
Steps and rows do not change the figures, but for the branches that they take (many texts, say). On the path

- a *return* is an entry in a file that was left before: A, B, A is one, and A, B, C none;
- a step goes *up* where the file it enters may import the one it leaves, by the floors of tests/test_architecture.py.

What runs while a module is imported does not count, nor do lambdas, comprehensions, and the methods that dataclasses
write. A function that TensorFlow translates (AutoGraph) counts when its translation is called. Functions that only
other threads enter follow those of the main thread; other processes are not seen.
"""

import argparse
import collections
import inspect
import itertools
import runpy
import shlex
import sys
import threading
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("bert_tf", "tfrecords"))
TRANSLATION = "tensorflow/python/autograph/impl/api.py"  # its `converted_call` calls the translation of a function
FRONT = {"cli", "__init__", "__main__"}  # of bert_tf: they may import every room

#: A function: its file, relative to the checkout, the number of its first line, and its qualified name.
Function = collections.namedtuple("Function", "file line name")


class Calls:
    """Notes the first entries of functions of the project while it is entered as a context."""

    def __init__(self):
        self._main, self._others = {}, {}  # function -> None, in order of entry; of the main and of other threads
        self._files = {}  # file name as in the code -> path in the project, TRANSLATION, or "" for other files

    def __enter__(self):
        threading.setprofile(self._hook)
        sys.setprofile(self._hook)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    def path(self):
        """list of `Function`, in order of first entry."""
        return list(self._main | self._others)

    def _hook(self, frame, event, _):
        if event == "call" and (file := self._file(code := frame.f_code)):
            if file == TRANSLATION:
                file = self._file(code := _translated(frame))
            if file in ("", TRANSLATION) or code.co_name.startswith("<"):
                return
            function = Function(file, code.co_firstlineno, code.co_qualname)
            path = self._main if threading.get_ident() == threading.main_thread().ident else self._others
            if function not in path and code.co_flags & inspect.CO_OPTIMIZED and not _is_importing(frame):
                path[function] = None  # the body of a class, which runs once, is not optimized

    def _file(self, code):
        if (name := code.co_filename) not in self._files:
            other = TRANSLATION if name.endswith(TRANSLATION) else ""
            self._files[name] = str(Path(name).relative_to(ROOT)) if name.startswith(OURS) else other
        return self._files[name]


def _translated(frame):
    """The code of the function whose translation is called, or that of the frame, which is TensorFlow's."""
    called = frame.f_locals["f"] if frame.f_code.co_name == "converted_call" else None
    return getattr(called, "__code__", None) or getattr(type(called).__call__, "__code__", frame.f_code)


def _is_importing(frame):
    codes = (caller.f_code for caller, _ in traceback.walk_stack(frame))
    return any(code.co_name == "<module>" and code.co_filename.startswith(OURS) for code in codes)


def steps(path):
    """For each function of a path: whether entering it returns to a file, and whether it goes up."""
    floors = runpy.run_path(str(ROOT / "tests/test_architecture.py"))
    rooms = {f.file: floors["room_of"](Path(f.file).with_suffix("").parts) for f in path}

    def may_import(room, other):
        if FRONT & {room, other}:
            return other not in FRONT
        if floors["FOUNDATION"] & {room, other}:
            return room not in floors["FOUNDATION"]
        return other in floors["MAY_IMPORT"].get(room, ())

    visited, last = set(), path[0].file if path else None
    for file in (function.file for function in path):
        yield file != last and file in visited, file != last and may_import(rooms[file], rooms[last])
        visited.add(file)
        last = file


def report(path, files=False, functions=False):
    """The lines that are printed."""
    marks = list(steps(path))
    of_file = collections.Counter(f.file for f in path)
    back = [f.file for f, (is_back, _) in zip(path, marks) if is_back]
    yield (
        f"{len(path)} functions in {len(of_file)} files of {len({Path(f).parent for f in of_file})} folders; "
        f"{len(back)} returns, to {len(set(back))} files; {sum(up for _, up in marks)} steps up"
    )
    if files:
        yield from (f"{count:5} {file}" for file, count in of_file.items())
    if functions:
        for file, visit in itertools.groupby(zip(path, marks), lambda step: step[0].file):
            (_, (is_back, is_up)), *_ = visit = list(visit)
            yield f"{'<' if is_back else ' '}{'^' if is_up else ' '} {file}"
            yield from (f"     {f.line:4} {f.name}" for f, _ in visit)


def run(command):
    """Runs a command line that begins with `bert-tf`, or else Python statements; returns the exit status."""
    if command.split()[0] == "bert-tf":
        from bert_tf.cli.main import main

        return main(shlex.split(command)[1:])
    exec(compile(command, "<command>", "exec"), {"__name__": "__main__"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="a command line that begins with bert-tf, or Python statements")
    parser.add_argument("--files", action="store_true", help="the files, and how many functions of each")
    parser.add_argument("--functions", action="store_true", help="the path; < marks a return, and ^ a step up")
    arguments = parser.parse_args()
    sys.path[0] = str(ROOT)  # of all checkouts the one that this file lies in
    calls = Calls()
    try:
        with calls:
            return run(arguments.command)
    finally:
        print(*report(calls.path(), arguments.files, arguments.functions), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
