import re

import pytest

from bert_tf import parsing
from bert_tf.errors import ConfigError, DataError


@pytest.mark.parametrize(("text", "message"), [
    ("[" * 50_000, "nested more than 64 levels deep"),
    ('{"a":' * 65 + "1" + "}" * 65, "nested more than 64 levels deep"),
    ("9" * 5000, "an integer of 5,000 digits; at most 40 are read"),
    ("NaN", "NaN is not valid JSON"),
    ("", "is not valid JSON"),
])  # fmt: skip
def test_json_beyond_the_limits_is_refused(text, message):
    with pytest.raises(DataError, match="^" + re.escape("a.json") + ".*" + re.escape(message)):
        parsing.parse_json(text, "a.json")


def test_json_within_the_limits():
    assert parsing.parse_json("[" * 64 + "]" * 64, "a.json")
    assert parsing.parse_json('{"model_max_length": 1000000000000000019884624838656}', "a")["model_max_length"] > 2**63


@pytest.mark.parametrize(("text", "message"), [
    ("a: " + "[" * 50_000, "nested more than 64 levels deep"),
    ("a: " + "[" * 65 + "]" * 65, "nested more than 64 levels deep"),
    ("a: &x [*x]\n", "the alias '*x' is not supported"),
    ("a: " + "9" * 5000, "an integer of 5,000 digits; at most 40 are read"),
    ("a: 1\na: 2\n", "the key 'a' stands twice"),
    ("a: !!python/object/apply:os.system [ls]", "is not valid YAML"),
    ("? [1]\n: 2", "is not valid YAML"),
    ("- 1", "holds a list; it must hold a mapping"),
])  # fmt: skip
def test_yaml_beyond_the_limits_is_refused(tmp_path, text, message):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"{tmp_path / 'a.yaml'}") + "[^$]*" + re.escape(message)):
        parsing.read_yaml(tmp_path / "a.yaml")


def test_dates_are_strings():
    assert parsing.parse_yaml("a: 2001-99-99", "a") == {"a": "2001-99-99"}


def test_files_that_are_not_text(tmp_path):
    (tmp_path / "latin1.json").write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(DataError, match="latin1.json is not UTF-8: byte 0xe9 at 7"):
        parsing.read_json(tmp_path / "latin1.json")
    with pytest.raises(DataError, match="there is a folder where a file must be"):
        parsing.read_json(tmp_path)
    with pytest.raises(DataError, match="there is no file"):
        parsing.read_json_object(tmp_path / "none.json")
    with pytest.raises(DataError, match="/dev/zero is a device, and a file is read more than once"):
        parsing.read_json("/dev/zero")
    (tmp_path / "bom.json").write_text('\ufeff{"a": 1}', encoding="utf-8")
    assert parsing.read_json_object(tmp_path / "bom.json") == {"a": 1}


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(parsing, "MAX_YAML_BYTES", 3)
    (tmp_path / "a.yaml").write_text("a: 1")
    with pytest.raises(ConfigError, match="a.yaml is larger than"):
        parsing.read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("value", ["x" * 10**6, [[["x" * 1000] * 1000] * 1000], {i: i for i in range(10**5)}, 10**4000])
def test_a_value_in_a_message_is_short(value):
    assert len(parsing.brief(value)) < 300
