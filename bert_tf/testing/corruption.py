"""The contract of a corruption, checked on a batch."""

import types

import numpy as np
import tensorflow as tf

from bert_tf.errors import ConfigError
from tfrecords import CORRUPTIONS, Corruption, RowExplanation

SPLIT = 3


def check_corruption(corruption, batch, draws=True):
    """Checks a corruption on a batch.

    - It is a `Corruption`, in the list of all.
    - It is a pure function of (seed, epoch, index): the same batch twice is equal, another seed or epoch differs, a graph
      gives the same, and a batch in two parts gives the rows of the whole batch.
    - It explains each row.
    - A tokenizer without a token of one of its roles is refused, and the message names the role.

    Args:
        corruption: a `Corruption`.
        batch: dict of tensors of 4 rows or more, as `ShardReader.dataset` yields without `corrupt`.
        draws: False for one that draws nothing: it gives the same for every seed and epoch.

    Returns:
        The features for seed 1.

    Raises:
        AssertionError: the corruption breaks the contract.

    Example:
        reader = ShardReader("shards", tokenizer)
        batch = reader.examples(range(8))
        check_corruption(MaskedLMCorruption.of_shards(reader, tokenizer, MaskingConfig()), batch)
    """
    assert isinstance(corruption, Corruption)
    assert type(corruption) in [record.corruption_class for record in CORRUPTIONS.values()], "it is not registered"
    features = corruption(batch, 1)
    _assert_equal(features, corruption(batch, 1))
    _assert_equal(features, tf.function(lambda batch: corruption(batch, 1), autograph=False)(batch))
    if draws:
        assert _differ(features, corruption(batch, 2)), "another seed does not change the corruption"
        later = corruption(batch | {"epoch": batch["epoch"] + 1}, 1)
        assert _differ(features, later), "another epoch does not change the corruption"
    parts = [corruption(part, 1) for part in parts_of(batch)]
    _assert_equal(features, {name: tf.concat([part[name] for part in parts], 0) for name in features})
    rows = list(corruption.explain(batch, features, 1))
    assert len(rows) == len(batch["token_ids"]) and all(isinstance(row, RowExplanation) and row.rule for row in rows)
    for role in corruption.roles:
        lacks = types.SimpleNamespace(**{f"{other}_id": 1 for other in corruption.roles} | {f"{role}_id": None})
        try:
            type(corruption)(lacks, corruption.config)
        except ConfigError as error:
            assert role in str(error)
        else:
            raise AssertionError(f"a tokenizer without a {role} token is not refused")
    return features


def parts_of(features):
    """A batch in two parts of unequal size."""
    return [{name: x[:SPLIT] for name, x in features.items()}, {name: x[SPLIT:] for name, x in features.items()}]


def _assert_equal(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def _differ(a, b):
    return any(not np.array_equal(a[name], b[name]) for name in a)
