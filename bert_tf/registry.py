"""Registries of records: families, objectives, tasks, tokenizer kinds.

A record has a name, settings and classes. Code that needs all of them reads the registry; nothing is inferred from the
names of variables or classes. No Keras is imported.
"""

import importlib
from collections.abc import Mapping

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief


class Registry(Mapping):
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

    def __init__(self, what, key, records=()):
        self.what, self.key, self._records = what, key, {}
        for record in records:
            self.register(record)

    def register(self, record):
        """Adds a record. Registering the same record again changes nothing.

        Returns:
            The record.
        """
        if self._records.setdefault(record.name, record) != record:
            raise ConfigError(f"there is another {self.what} of the name '{record.name}'; choose another name")
        return record

    def remove(self, name):
        """Takes a record out of the list again, as tests of an extension do."""
        del self._records[self[name].name]

    def __getitem__(self, name):
        if not isinstance(name, str) or name not in self._records:
            raise ConfigError(f"'{self.key}' is {brief(name)}{nearest(str(name)[:100], self._records)}")
        return self._records[name]

    def __contains__(self, name):
        return name in self._records

    def __iter__(self):
        return iter(self._records)

    def __len__(self):
        return len(self._records)


def resolve(reference):
    """The object that a record refers to, imported on use where the reference is a str "module:attribute".

    Records refer to their classes by such names, because reading a setting must not import Keras or TensorFlow.
    """
    if not isinstance(reference, str):
        return reference
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
