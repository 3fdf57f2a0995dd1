"""The one list of each kind of record."""

import dataclasses

import pytest

from bert_tf.errors import ConfigError
from bert_tf.registry import Registry, resolve


@dataclasses.dataclass(frozen=True)
class Colour:
    name: str
    value: int = 0


def test_records_are_found_by_name_in_order():
    colours = Registry("colour", "paint.colour", [Colour("red"), Colour("blue")])
    assert list(colours) == ["red", "blue"] and colours["blue"] == Colour("blue")
    assert colours.register(Colour("green", 3)) is colours["green"]
    assert "green" in colours and len(colours) == 3
    with pytest.raises(ConfigError, match="'paint.colour' is 'rad'; did you mean 'red'?"):
        colours["rad"]


def test_a_name_is_given_once_and_can_be_removed():
    colours = Registry("colour", "paint.colour", [Colour("red"), Colour("blue")])
    colours.register(Colour("red"))
    with pytest.raises(ConfigError, match="there is another colour of the name 'red'"):
        colours.register(Colour("red", 1))
    colours.remove("red")
    assert list(colours) == ["blue"]
    with pytest.raises(ConfigError, match="'paint.colour' is 'red'"):
        colours.remove("red")


def test_references_are_imported_on_use():
    assert resolve("bert_tf.registry:Registry") is Registry and resolve(None) is None
    assert resolve(Registry) is Registry
    with pytest.raises(ConfigError, match="give the class itself, or .module:Class."):
        resolve(lambda: Registry)
