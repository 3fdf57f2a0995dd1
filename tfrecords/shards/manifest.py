"""manifest.json: what a folder of shards holds, and which tokenizer made it."""

from dataclasses import dataclass, field
from typing import Annotated

from bert_tf.config import Range
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import is_there
from bert_tf.parsing import bare_name, brief
from tfrecords.schema import MANIFEST_NAME, PAIR_TASKS, RECORD_FRAME_BYTES, SCHEMA_VERSION, packed_pair_task
from tfrecords.shards.checked_record import load_record, save_record

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
        check_names(self.shards, "shards")
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

    @property
    def files(self):
        return self.shards

    @classmethod
    def load(cls, folder):
        """Reads `folder`/manifest.json; DataError if it is missing, not readable, of another version, or was edited."""
        path = f"{str(folder).rstrip('/')}/{MANIFEST_NAME}"
        if not is_there(path):
            raise DataError(
                f"{folder} holds no {MANIFEST_NAME}: it is not a finished folder of shards; write one with "
                "`bert-tf shards`, or run that command again if it was interrupted"
            )
        return load_record(cls, path, "schema_version", SCHEMA_VERSION, "write the shards again")

    def save(self, folder):
        """Writes `folder`/manifest.json, atomically."""
        save_record(self, f"{folder}/{MANIFEST_NAME}")

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


def check_names(files, key):
    """Raises ConfigError if the `file` of one of `files` leads out of the folder or is listed twice.

    `key` is that of the list, for messages.
    """
    names = set()
    for number, entry in enumerate(files):
        try:
            name = bare_name(entry.file, f"'{key}[{number}].file'")
        except DataError as error:
            raise ConfigError(str(error)) from None
        if name in names:
            raise ConfigError(f"'{key}[{number}].file' is {brief(name)}, which is listed twice")
        names.add(name)
