"""The settings that decide what shards hold."""

from dataclasses import dataclass
from typing import Literal

from bert_tf.errors import ConfigError

_SHORTEST_SEQUENCE = 8
_LONGEST_SEQUENCE = 65535  # segment lengths are stored as uint16


@dataclass(frozen=True)
class ShardsConfig:
    """What is made of a corpus; the shards are a function of these settings, tokenizer and corpus.

    Attributes:
        sequence_length: the most tokens of an example, [CLS] and [SEP] included.
        format: "segment_pair": sentence pairs with next sentence prediction, as BERT;
            "full_sentences": contiguous sentences across documents, no pairs, as RoBERTa.
        short_sequence_probability: segment_pair only: share of documents packed to a random
            shorter length.
        duplicates: segment_pair only: passes over the corpus, each with other pairs. The original
            made 10 with masks of their own; masks are drawn when read here, so 1 is enough.
        seed: of the draws of pairs and lengths.
        sentences: "lines" (each line is one), "split" (by rules), or "auto"; see
            `sentences.document_sentences`.
        text_field: .jsonl only: the field that holds the text.
        errors: "strict" refuses bytes that are not UTF-8, "replace" puts U+FFFD for them.
        shard_bytes: bytes of text that make one shard, which is also the unit of work. A document
            of over a quarter of it is cut. Random next sentences come from the same unit.

    Raises:
        ConfigError: a value out of range, or one that the format does not use.
    """

    sequence_length: int = 128
    format: Literal["segment_pair", "full_sentences"] = "segment_pair"
    short_sequence_probability: float = 0.1
    duplicates: int = 1
    seed: int = 0
    sentences: Literal["auto", "lines", "split"] = "auto"
    text_field: str = "text"
    errors: Literal["strict", "replace"] = "strict"
    shard_bytes: int = 4 << 20

    def __post_init__(self):
        _check("sequence_length", self.sequence_length, _SHORTEST_SEQUENCE, _LONGEST_SEQUENCE)
        _check("short_sequence_probability", self.short_sequence_probability, 0.0, 1.0)
        _check("duplicates", self.duplicates, 1, 1000)
        _check("shard_bytes", self.shard_bytes, 1 << 12, 1 << 28)
        for name, known in (
            ("format", ("segment_pair", "full_sentences")),
            ("sentences", ("auto", "lines", "split")),
            ("errors", ("strict", "replace")),
        ):
            if getattr(self, name) not in known:
                raise ConfigError(f"'{name}' is {getattr(self, name)!r}; known: {', '.join(known)}")
        if self.format == "full_sentences" and self.duplicates > 1:
            raise ConfigError(
                "duplicates > 1 would write the same examples again: full_sentences draws nothing at random "
                "and masks are drawn when read; leave duplicates at 1"
            )


def _check(name, value, least, most):
    if not least <= value <= most:
        raise ConfigError(f"'{name}' is {value}; it must lie between {least} and {most}")
