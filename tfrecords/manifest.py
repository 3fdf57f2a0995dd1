"""manifest.json: what a folder of shards holds, and which tokenizer made it."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.parsing import brief
from tfrecords.schema import MANIFEST_NAME, SCHEMA_VERSION


@dataclass(frozen=True)
class Shard:
    """One file of the folder: its name, how many examples and bytes it has, its checksum."""

    file: str
    examples: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The contents of manifest.json.

    Attributes:
        tokenizer_fingerprint: `tokenizer.fingerprint` of the tokenizer that made the ids.
        vocabulary_size: its vocabulary; decides the width of stored ids.
        sequence_length: the most tokens an example has, special tokens included.
        packing: the settings (`ShardsConfig`) as a dict, "format" and "pair" among them.
        counts: documents, sentences, tokens, examples, ... and the rates of `statistics.summarize`.
        corpus: the inputs, a list of {"file", "bytes"}.
        shards: in order, a list of `Shard`.
        segment_ids: those of the first segment, the second, and what the layout puts at the end.
        schema_version: of the records, `schema.SCHEMA_VERSION`.
    """

    tokenizer_fingerprint: str
    vocabulary_size: int
    sequence_length: int
    packing: dict
    counts: dict
    corpus: list[dict] = field(repr=False)
    shards: list[Shard] = field(repr=False)
    segment_ids: list[int] = field(default_factory=lambda: [0, 1, 2])
    schema_version: int = SCHEMA_VERSION

    @property
    def pair_task(self):
        """What the pair labels are about, of `schema.PAIR_TASKS`; "none" where there are none."""
        # Shards that are older than the setting are next sentence pairs, or no pairs.
        return self.packing.get("pair") or ("next_sentence" if self.packing["format"] == "segment_pair" else "none")

    @property
    def row_segments(self):
        """How many segments a row holds, each with two texts of its own; see `schema`.

        Raises:
            DataError: a number that no row of `sequence_length` tokens has.
        """
        segments = self.packing.get("segments", None if self.alternates else 1)
        if type(segments) is not int or segments < 1 or self.sequence_length % segments:
            raise DataError(
                f"{MANIFEST_NAME}: packing.segments is {brief(segments)}, into which rows of {self.sequence_length} tokens "
                "cannot be cut; write the shards again"
            )
        return segments

    @property
    def alternates(self):
        """Whether every second row stands in reverse order."""
        return self.packing["format"] == "xlnet"

    @property
    def settings(self):
        """All that decides what the shards of a corpus hold, as a dict that JSON can hold."""
        theirs = {"tokenizer": self.tokenizer_fingerprint, "schema_version": self.schema_version}
        return self.packing | {"pair": self.pair_task} | theirs

    @property
    def files(self):
        return self.shards

    @classmethod
    def load(cls, folder):
        """Reads `folder`/manifest.json.

        Raises:
            DataError: there is none, it is not readable, or it is of another schema version.
        """
        path = Path(folder) / MANIFEST_NAME
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(
                f"{folder} holds no {MANIFEST_NAME}: it is not a finished folder of shards; write one with "
                "`bert-tf shards`, or run that command again if it was interrupted"
            ) from None
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path}: {error}") from None
        version = values.get("schema_version") if isinstance(values, dict) else None
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{path} has schema version {version}, this library reads {SCHEMA_VERSION}; write the shards again"
            )
        try:
            values["shards"] = [Shard(**shard) for shard in values["shards"]]
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{path} is not a manifest that this library wrote ({error}); write the shards again"
            ) from None

    def save(self, folder):
        """Writes `folder`/manifest.json, atomically."""
        with atomic_write(Path(folder) / MANIFEST_NAME) as file:
            json.dump(dataclasses.asdict(self), file, indent=1, sort_keys=True, ensure_ascii=False)
            file.write("\n")

    def check_tokenizer(self, tokenizer):
        """Raises DataError if the ids in the shards are not those of `tokenizer`."""
        if tokenizer.fingerprint == self.tokenizer_fingerprint:
            return
        sizes = ""
        if tokenizer.vocabulary_size != self.vocabulary_size:
            sizes = f" (vocabulary of {self.vocabulary_size:,} there, {tokenizer.vocabulary_size:,} here)"
        raise DataError(
            f"the shards were written with another tokenizer{sizes}: fingerprint "
            f"{self.tokenizer_fingerprint[:12]} in {MANIFEST_NAME}, {tokenizer.fingerprint[:12]} here; use the "
            "tokenizer saved beside the shards, or write them again"
        )

    @property
    def examples(self):
        """The number of examples in all shards."""
        return sum(shard.examples for shard in self.shards)
