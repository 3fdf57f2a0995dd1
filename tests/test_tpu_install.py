"""Installing on a TPU VM leaves tensorflow-tpu alone, by the requirements of the packages that are installed here."""

import configparser
import importlib.metadata
import re
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
WITH, WITHOUT = (ROOT / "requirements" / name for name in ("tpu.txt", "tpu-no-deps.txt"))
#: Of the packages that must be of one minor version: that of the lists, whichever is installed here.
VERSION = "2.20.0"
#: The newest libtpu whose functions that tensorflow-tpu finds, and one that lacks them: the import ends the process.
LIBTPU, NEWER_LIBTPU = "0.0.31", "0.0.52"
TENSORFLOW = {"tensorflow": VERSION, "tensorflow-tpu": VERSION, "tensorflow-text": "2.20.1"}


def listed(path):
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in lines if line]


def needed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return [Requirement(line) for line in setup["options"]["install_requires"].split("\n") if line]


def name_of(requirement):
    return re.sub(r"[-_.]+", "-", requirement.name).lower()


def asked_by(name):
    """What a package asks for here, extras left out."""
    if name == "bert-tf":
        return needed()
    if name == "libtpu":
        return []
    if name == "tensorflow-text":
        return [Requirement("tensorflow<2.21,>=2.20.0")]
    own = importlib.metadata.requires("tensorflow" if name == "tensorflow-tpu" else name) or []
    asked = [r for r in map(Requirement, own) if not r.marker or r.marker.evaluate({"extra": ""})]
    return [*asked, Requirement("libtpu~=0.0.14")] if name == "tensorflow-tpu" else asked


def brought_by(requirements):
    """The names of these packages and of all that come with them."""
    found, waiting = set(), [name_of(requirement) for requirement in requirements]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [name_of(requirement) for requirement in asked_by(name)]
    return found


def test_the_two_commands_install_all_but_tensorflow():
    first, second = brought_by(listed(WITH)), {"bert-tf", *map(name_of, listed(WITHOUT))}
    assert "tensorflow" not in first | second  # which would take the place of the one that is there
    assert "tensorflow" in brought_by(listed(WITHOUT)) & brought_by([Requirement("bert-tf")])
    missing = {name_of(requirement) for name in second for requirement in asked_by(name)} - first - second
    assert missing == {"tensorflow"}, "left out by --no-deps; name it in requirements/tpu.txt"
    (libtpu,) = (requirement for requirement in listed(WITH) if requirement.name == "libtpu")
    assert LIBTPU in libtpu.specifier and NEWER_LIBTPU not in libtpu.specifier


def test_the_lists_ask_for_what_setup_does():
    ours = {name_of(r): str(r.specifier) for r in listed(WITH) + listed(WITHOUT)}
    assert len(ours) == len(listed(WITH) + listed(WITHOUT))
    for requirement in needed():
        name = name_of(requirement)
        asked = ours["tensorflow-tpu" if name == "tensorflow" else name]
        if name in TENSORFLOW:  # of which the TPU build has one version
            assert asked == "==2.20.*" and TENSORFLOW[name] in requirement.specifier
        else:
            assert asked == str(requirement.specifier), name
