"""The inputs of all parts: made and kept when values are written, only read when they are compared."""

import gc
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from reference_parts import library, texts


class Room:
    """The inputs in a folder, and a place for what is written on the way.

    Every input is asked for with the function that makes it. That function is called while values are written, once;
    `compare` reads what it made.

    Args:
        inputs: FOLDER/inputs.
        fixtures: tests/fixtures, of which the published files are copied.
        writes: whether inputs that are not there are made.

    Attributes:
        scratch: a folder that is removed at the end.
        kept: what several cases of a part need, until its end.
    """

    def __init__(self, inputs, fixtures, writes):
        self.inputs, self.fixtures, self.writes = Path(inputs), Path(fixtures), writes
        self.kept = {}

    def __enter__(self):
        # In memory where possible: shards and exports are synchronized to the disk, which takes longer than the rest.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.scratch = Path(tempfile.mkdtemp(prefix="reference-", dir=memory))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def forget(self):
        self.kept.clear()
        gc.collect()

    def once(self, key, make):
        """What `make()` returned when a part first asked for it under this key."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def made(self, name, make):
        """The path inputs/NAME, which `make(path)` writes."""
        path = self.inputs / name
        if not path.exists():
            if not self.writes:
                raise FileNotFoundError(f"inputs/{name} is missing")
            path.parent.mkdir(parents=True, exist_ok=True)
            make(path)
        return path

    def text(self, name, content):
        """The path of a text file: `content` is a str, or a list of what stands in its lines as JSON."""
        if not isinstance(content, str):
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
        return self.made(name, lambda path: path.write_text(content, encoding="utf-8"))

    def arrays(self, name, make):
        """The arrays of inputs/NAME.npz; `make()` returns a dict."""
        with np.load(self.made(f"{name}.npz", lambda path: np.savez_compressed(path, **make()))) as file:
            return {key: file[key] for key in file.files}

    def json(self, name, make):
        """The content of inputs/NAME.json."""
        path = self.made(f"{name}.json", lambda path: path.write_text(json.dumps(make(), ensure_ascii=False)))
        return json.loads(path.read_text("utf-8"))

    def copied(self, name):
        """inputs/fixtures/NAME: a copy of what tests/fixtures/NAME is now."""
        source = self.fixtures / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        return self.made(f"fixtures/{name}", lambda path: copy(source, path))

    def assign(self, name, variables):
        """Sets variables, a dict by path, to inputs/weights/NAME.npz, which are drawn from their paths."""
        variables = {path: variable for path, variable in variables.items() if "float" in str(variable.dtype)}
        shapes = {library.stored_name(path): tuple(variable.shape) for path, variable in variables.items()}
        arrays = self.arrays(
            f"weights/{name}", lambda: {key: library.draw(key, shape) for key, shape in shapes.items()}
        )
        if arrays.keys() != shapes.keys():
            unlike = sorted(arrays.keys() ^ shapes.keys())
            raise ValueError(
                f"{unlike[0]} is not both a variable and in inputs/weights/{name}.npz ({len(unlike)} such)"
            )
        for path, variable in variables.items():
            variable.assign(arrays[library.stored_name(path)])

    # -- what several parts read -----------------------------------------------------------------------

    def corpus(self, name="speeches.txt"):
        """The path of a file of the corpus; see `texts.FILES`."""
        return self.text(f"corpus/{name}", texts.FILES[name]())

    def documents(self):
        """All documents on which vocabularies are trained: list of str."""
        return self.json("corpus/documents", texts.documents)

    def tokenizer(self, name):
        """The tokenizer that a trainer made when the values were written."""
        from bert_tf.tokenizers import load_tokenizer

        path = self.made(f"tokenizers/{name}", lambda path: library.train(name, self.documents()).save(path))
        return self.once(("tokenizer", name), lambda: load_tokenizer(path))

    def shards(self, name):
        """A `ShardReader` of shards that this process has written; see `shards.CASES`."""
        from reference_parts import shards

        return self.once(("shards", name), lambda: shards.reader(self, name))
