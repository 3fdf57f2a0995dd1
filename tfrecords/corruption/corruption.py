"""The base of all corruptions, and what one did to a row in words, for `bert-tf inspect`."""

import dataclasses

from bert_tf.errors import ConfigError
from bert_tf.parsing import join_names
from tfrecords.corruption.random_numbers import example_keys


@dataclasses.dataclass(frozen=True)
class Prediction:
    """One predicted position.

    Attributes:
        position: int, in the row.
        token: str, what must be predicted.
        shown: str, what the model sees at this position; None where it sees nothing.
        why: str.
    """

    position: int
    token: str
    shown: str | None
    why: str


@dataclasses.dataclass(frozen=True)
class RowExplanation:
    """What a corruption did to one row.

    Attributes:
        rule: str, how much is predicted.
        predictions: list of `Prediction`, by position.
        notes: dict of name to str, further lines.
        tokens: list of str, the row as the model reads it where that is not the order of the shard; or None.

    Example:
        RowExplanation("1 token of 7", [Prediction(3, "cat", "[MASK]", "masked")])
    """

    rule: str
    predictions: list = dataclasses.field(default_factory=list)
    notes: dict = dataclasses.field(default_factory=dict)
    tokens: list | None = None


class Corruption:
    """Batch to features of an objective: a pure function of (batch, seed), in TensorFlow ops on whole batches.

    A subclass has `__call__` and `explain`. All random numbers are those of `random_numbers.random_bits`, with `keys`
    and a `Stream` for each purpose. So what is drawn for an example depends on the seed, the epoch and the example's
    number, not on its batch. `bert_tf.testing.check_corruption` checks this.

    Args:
        tokenizer: that of the shards.
        config: the settings of the corruption.

    Attributes:
        roles: the roles of the tokens that it needs, such as "mask" or "sep".
        instead: what to use with a tokenizer that has none, for messages.

    Raises:
        ConfigError: a tokenizer without a token of one of the roles.

    Example:
        class Hidden(Corruption):
            roles = ("mask",)

            def __call__(self, batch, seed):
                bits = random_bits(self.keys(batch, seed), Stream.OUTSIDE, tf.range(batch["token_ids"].shape[1])[None])
                hidden = batch["padding_mask"] & (bits < 1 << 29)
                return batch | {"token_ids": tf.where(hidden, self.tokenizer.mask_id, batch["token_ids"])}
    """

    roles: tuple = ()
    instead = "the objective causal_lm"

    def __init__(self, tokenizer, config):
        missing_roles = [role for role in self.roles if getattr(tokenizer, f"{role}_id") is None]
        if missing_roles:
            raise ConfigError(
                f"{type(self).__name__} needs tokens of the roles {join_names(self.roles)}, and the tokenizer has no "
                f"{join_names(missing_roles)} token; use {self.instead}, or a vocabulary of another kind"
            )
        self.tokenizer, self.config = tokenizer, config

    @classmethod
    def of_shards(cls, reader, tokenizer, config):
        """The corruption for the rows of a `ShardReader`; ConfigError for settings that do not fit its shards."""
        return cls(tokenizer, config)

    def keys(self, batch, seed):
        """The keys of the random numbers of each example of a batch, see `random_numbers.example_keys`."""
        return example_keys(seed, batch["epoch"], batch["example_index"])

    def __call__(self, batch, seed):
        """The features.

        Args:
            batch: dict of tensors as `ShardReader.dataset` yields without `corrupt`; S is static.
            seed: int or int64 scalar.
        """
        raise NotImplementedError

    def explain(self, batch, features, seed):
        """Yields a `RowExplanation` for each row of a batch and the features made of it."""
        raise NotImplementedError
