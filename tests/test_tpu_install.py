"""Installing on a TPU VM leaves tensorflow-tpu alone, as pip itself says in a dry run.

The packages are stand-ins: wheels of metadata alone, with the names, versions and requirements of what
is installed here, and a tensorflow-tpu made of tensorflow's. No network.
"""

import configparser
import importlib.metadata
import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
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


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A folder of wheels that could serve every way of installing."""
    folder, waiting = tmp_path_factory.mktemp("wheels"), ["bert-tf", "tensorflow-tpu"]
    versions = {"bert-tf": "0.1.0", "libtpu": LIBTPU}
    written = set()
    while waiting:
        name = waiting.pop()
        if name in written:
            continue
        written.add(name)
        for requirement in asked_by(name):
            waiting.append(name_of(requirement))
            pinned = [s.version for s in requirement.specifier if s.operator == "==" and "*" not in s.version]
            if pinned:  # whatever is installed here
                versions[name_of(requirement)] = pinned[0]
    versions |= TENSORFLOW
    for name in written:
        write_wheel(folder, name, versions.get(name) or importlib.metadata.version(name), asked_by(name))
    write_wheel(folder, "libtpu", NEWER_LIBTPU, [])
    return folder


def write_wheel(folder, name, version, requirements):
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {r}" for r in requirements),
    ]
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{stem}.dist-info/METADATA", "\n".join(metadata) + "\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")


@pytest.fixture(scope="module")
def tpu_vm(wheels, tmp_path_factory):
    """The Python of an environment that holds tensorflow-tpu, whose dependencies have yet to come."""
    folder = tmp_path_factory.mktemp("tpu_vm")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheels / f"tensorflow_tpu-{VERSION}-py3-none-any.whl") as wheel:
        wheel.extractall(packages)
    return folder / "bin" / "python"


def would_install(python, wheels, *arguments):
    """The version of each package that pip would install."""
    command = [sys.executable, "-m", "pip", "--isolated", "--python", str(python), "install", "--quiet", "--dry-run"]
    command += ["--no-index", "--find-links", str(wheels), "--report", "-", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [item["metadata"] for item in json.loads(done.stdout)["install"]]
    return {name_of(Requirement(package["name"])): package["version"] for package in found}


def test_the_two_commands_install_all_but_tensorflow(tpu_vm, wheels):
    first = would_install(tpu_vm, wheels, "-r", str(WITH))
    second = would_install(tpu_vm, wheels, "--no-deps", "-r", str(WITHOUT), "bert-tf")
    assert not {"tensorflow", "tensorflow-tpu"} & (first | second).keys()  # the one that is there stays
    assert first["libtpu"] == LIBTPU
    available = {*first, *second, "tensorflow-tpu", "tensorflow"}
    missing = {(name, name_of(r)) for name in second for r in asked_by(name) if name_of(r) not in available}
    assert not missing, "left out by --no-deps; name it in requirements/tpu.txt"


def test_plain_pip_would_replace_it(tpu_vm, wheels):
    assert "tensorflow" in would_install(tpu_vm, wheels, "bert-tf")


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
