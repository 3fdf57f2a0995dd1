"""What the README files print is what works."""

import ast
import configparser
import importlib
import re
from pathlib import Path

import pytest

from bert_tf.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

FILES = [*ROOT.glob("*.md")]
for name in ("bert_tf", "colab", "configs", "docs", "tests", "tfrecords"):
    FILES += [path for path in (ROOT / name).rglob("*.md") if "fixtures" not in path.parts]


def blocks(language, text=README):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_first_blocks_install_run_and_test():
    install, test = blocks("sh")[:2]
    assert install.splitlines()[-1] == "bert-tf quickstart"
    assert test == "python -m pytest\npython -m pytest -m slow\n"
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in script  # it runs these very lines


@pytest.fixture(params=FILES, ids=lambda path: str(path.relative_to(ROOT)))
def page(request):
    return request.param


def test_every_command_and_configuration_named_exists(page):
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"bert-tf ([a-z][a-z-]*)", text)) <= set(COMMANDS)
    for config in re.findall(r"--config ([a-z]+(?:/[a-z0-9_]+)+)", text):
        assert (ROOT / "configs" / f"{config}.yaml").is_file(), config


def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_files_named_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"\b(?:tests|requirements|bert_tf|tfrecords)/[\w/-]+\.(?:py|txt|md)\b", text):
        assert (ROOT / path).is_file() or (page.parent / path).is_file(), path


def test_tests_named_exist(page):
    files = list((ROOT / "tests").rglob("*.py"))
    there = {path.stem for path in files}.union(
        *(re.findall(r"def (test_\w+)", path.read_text("utf-8")) for path in files)
    )
    assert set(re.findall(r"\btest_\w+", page.read_text(encoding="utf-8"))) <= there


def test_names_imported_from_this_library_exist(page):
    for block in blocks("python", page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("bert_tf", "tfrecords"):
                for alias in node.names:
                    assert hasattr(importlib.import_module(node.module), alias.name), f"{node.module}.{alias.name}"


def test_extras_named_exist():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for page in FILES:
        for extras in re.findall(r"(?:\.|bert_tf)\[([a-z,-]+)\]", page.read_text(encoding="utf-8")):
            assert set(extras.split(",")) <= set(setup["options.extras_require"]), f"{page}: {extras}"
