"""Writes one state after another to an address, until it is killed; see test_addresses.py."""

import itertools
import sys
from pathlib import Path

from bert_tf.files import mirror, push

with mirror(sys.argv[1]) as folder:
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    begin = int((folder / "a").read_text()) if (folder / "a").exists() else 0
    for number in itertools.count(begin + 1):
        (folder / f"n{number - 1}").touch()
        for name in "ab":
            (folder / name).write_text(str(number))
        push(folder)
        if number == begin + 1:
            print("first state", flush=True)
