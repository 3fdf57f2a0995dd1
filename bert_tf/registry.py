"""Registries of records: families, objectives, tasks, tokenizer kinds.

A record has a name, settings and classes. Code that needs all of them reads the registry; nothing is inferred from the
names of variables or classes. No Keras is imported.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief


class _Named(Protocol):
    @property
    def name(self) -> str: ...


#: A record of a registry: any object with a `name`.
Record = TypeVar("Record", bound=_Named)


class Registry(Mapping[str, Record]):
    """Name -> record, in the order of registration.

    Args:
        what: what a record is, for messages: "family".
        key: the setting whose value is the name, for messages: "model.family".
        records: the first records; each has a `name`.

    Raises:
        ConfigError: `registry[name]` finds no such record (the message names the nearest), or `register` finds another
            record of the same name.

    Example:
        OBJECTIVES = Registry("objective", "objective.name", [MASKED_LM])
        OBJECTIVES["masked_lm"].config
    """

    def __init__(self, what: str, key: str, records: Iterable[Record] = ()) -> None:
        self.what, self.key = what, key
        self._records: dict[str, Record] = {}
        for record in records:
            self.register(record)

    def register(self, record: Record) -> Record:
        """Adds a record. Registering the same record again changes nothing.

        Returns:
            The record.
        """
        if self._records.setdefault(record.name, record) != record:
            raise ConfigError(f"there is another {self.what} of the name '{record.name}'; choose another name")
        return record

    def remove(self, name: str) -> None:
        """Takes a record out of the list again, as tests of an extension do."""
        del self._records[self[name].name]

    def __getitem__(self, name: str) -> Record:
        if not isinstance(name, str) or name not in self._records:
            raise ConfigError(f"'{self.key}' is {brief(name)}{nearest(str(name)[:100], self._records)}")
        return self._records[name]

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


def resolve(reference: Any) -> Any:
    """The class that a record refers to: itself, or what "module:Class" names; None for None.

    The records of the library name their classes, because reading a setting must not import Keras or TensorFlow.

    Example:
        resolve("bert_tf.models.bert.model:BertEncoder")

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(reference, str):
        if reference is not None and not isinstance(reference, type):
            raise ConfigError(f'a record refers to {brief(reference)}; give the class itself, or "module:Class"')
        return reference
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
