"""manifest.json: what a folder of shards holds, and which tokenizer made it."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated

from bert_tf.config import Range, build
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write, is_there
from bert_tf.parsing import bare_name, brief, read_json_object
from tfrecords.schema import MANIFEST_NAME, PAIR_TASKS, RECORD_FRAME_BYTES, SCHEMA_VERSION, packed_pair_task

_CHECKSUM = "checksum"
#: Bytes of a file, and of the files of a folder together: what 64 bits hold, with room to add up.
Size = Annotated[int, Range(at_least=0, at_most=1 << 50)]


@dataclass(frozen=True)
class Shard:
    """One file of the folder: its name, how many examples and bytes it has, its checksum.

    Raises:
        ConfigError: more examples than its bytes can hold, or none where there are bytes.
    """

    file: str
    examples: Size
    bytes: Size
    sha256: str

    def __post_init__(self):
        if self.examples * RECORD_FRAME_BYTES > self.bytes or (self.bytes and not self.examples):
            raise ConfigError(f"{self.examples:,} examples do not fit a file of {self.bytes:,} bytes")


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

    Raises:
        ConfigError: a value that no folder of shards has.

    Example:
        import pathlib
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import Manifest, write_shards

        pathlib.Path("corpus.txt").write_text("the cat sat .\\nthe cat ran .\\n")
        write_shards("corpus.txt", "shards", WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat .".split()))
        manifest = Manifest.load("shards")
        print(manifest.examples, manifest.sequence_length, manifest.packing["format"])
    """

    tokenizer_fingerprint: str
    vocabulary_size: Annotated[int, Range(at_least=1, at_most=(1 << 31) - 1)]
    sequence_length: Annotated[int, Range(at_least=1, at_most=(1 << 16) - 1)]
    packing: dict
    counts: dict[str, int | float | bool]
    corpus: list[dict[str, str | int]] = field(repr=False)
    shards: list[Shard] = field(repr=False)
    segment_ids: list[Annotated[int, Range(at_least=0, at_most=255)]] = field(default_factory=lambda: [0, 1, 2])
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self):
        self._check_names()
        if len(self.segment_ids) != 3:
            raise ConfigError(f"'segment_ids' must be three numbers, got {brief(self.segment_ids)}")
        if not isinstance(self.packing.get("format"), str):
            raise ConfigError(f"'packing.format' must be str, got {brief(self.packing.get('format'))}")
        if self.packing.get("pair") not in PAIR_TASKS.values():
            raise ConfigError(
                f"'packing.pair' is {brief(self.packing.get('pair'))}; known: {', '.join(PAIR_TASKS.values())}"
            )
        target_length = self.packing.get("target_length", None if self.packing["format"] == "text_pairs" else 0)
        if type(target_length) is not int or not 0 <= target_length < 1 << 15:
            raise ConfigError(
                f"'packing.target_length' is {brief(target_length)}; it must be a number of tokens below 32768"
            )
        segments = self.packing.get("segments", None if self.alternates else 1)
        if type(segments) is not int or segments < 1 or self.sequence_length % segments:
            raise ConfigError(
                f"'packing.segments' is {brief(segments)}, into which rows of {self.sequence_length} tokens cannot be cut"
            )

    @property
    def pair_task(self):
        """What the pair labels are about, of `schema.PAIR_TASKS`; "none" where there are none."""
        return packed_pair_task(self.packing)

    @property
    def row_segments(self):
        """How many segments a row holds, each with its own two texts; see `schema`."""
        return self.packing.get("segments", 1)

    @property
    def target_length(self):
        """The most tokens of the targets of an example, the ones that end them included; 0 where there are none."""
        return self.packing["target_length"] if self.packing["format"] == "text_pairs" else 0

    @property
    def alternates(self):
        """Whether every second row is in reverse order."""
        return self.packing["format"] == "xlnet"

    @property
    def settings(self):
        """Everything that decides what the shards hold, except the corpus: a dict ready for JSON."""
        of_tokenizer = {"tokenizer": self.tokenizer_fingerprint, "schema_version": self.schema_version}
        return self.packing | of_tokenizer

    @classmethod
    def load(cls, folder):
        """Reads `folder`/manifest.json; a user who changes it on purpose removes its checksum.

        Raises:
            DataError: it is missing, not JSON, of another version, was edited, or holds a value that no folder of shards
                has; the message names the file and the key.
        """
        path = f"{str(folder).rstrip('/')}/{MANIFEST_NAME}"
        if not is_there(path):
            raise DataError(
                f"{folder} holds no {MANIFEST_NAME}: it is not a finished folder of shards; write one with "
                "`bert-tf shards`, or run that command again if it was interrupted"
            )
        values = read_json_object(path)
        version, checksum = values.get("schema_version"), values.pop(_CHECKSUM, None)
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{path} has schema version {version!r}, this library reads {SCHEMA_VERSION}; write the shards again"
            )
        try:
            manifest = build(cls, values)
        except ConfigError as error:
            raise DataError(f"{path} is not a file that this library wrote: {error}; write the shards again") from None
        if checksum not in (None, _checksum(values)):
            raise DataError(
                f"{path} was changed since it was written: its checksum differs; copy it again or write the shards again. "
                f'If the change is wanted, remove the line "{_CHECKSUM}" from the file'
            )
        return manifest

    def save(self, folder):
        """Writes `folder`/manifest.json, atomically, with a checksum of its contents."""
        values = dataclasses.asdict(self)
        with atomic_write(f"{folder}/{MANIFEST_NAME}") as file:
            json.dump(values | {_CHECKSUM: _checksum(values)}, file, indent=1, sort_keys=True, ensure_ascii=False)
            file.write("\n")

    def check_tokenizer(self, tokenizer):
        """Raises DataError if the ids in the shards are not those of `tokenizer`."""
        if not hasattr(tokenizer, "fingerprint"):
            raise DataError(f"{tokenizer!r} is no tokenizer; read one with bert_tf.tokenizers.load_tokenizer(folder)")
        recorded, current = self.tokenizer_fingerprint, tokenizer.fingerprint
        if recorded == current:
            return
        sizes = ""
        if tokenizer.vocabulary_size != self.vocabulary_size:
            sizes = f" (vocabulary of {self.vocabulary_size:,} there, {tokenizer.vocabulary_size:,} here)"
        raise DataError(
            f"the shards were written with another tokenizer{sizes}: fingerprint {recorded[:12]} in {MANIFEST_NAME}, "
            f"{current[:12]} here; use the tokenizer saved beside the shards, or write them again"
        )

    @property
    def examples(self):
        """The number of examples in all shards."""
        return sum(shard.examples for shard in self.shards)

    def _check_names(self):
        """Raises ConfigError if a shard's file leads out of the folder or is listed twice."""
        names = set()
        for number, shard in enumerate(self.shards):
            try:
                name = bare_name(shard.file, f"'shards[{number}].file'")
            except DataError as error:
                raise ConfigError(str(error)) from None
            if name in names:
                raise ConfigError(f"'shards[{number}].file' is {brief(name)}, which is listed twice")
            names.add(name)


def _checksum(values):
    """SHA-256 in hex of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
