"""What is done with a corpus: a shard for each of its chunks, the manifest of all.

A job is one object with everything that decides its result. `prepare` is called once in each process, what it returns
for each unit of the corpus, and `manifest` at the end. `writer` and `beam` drive it.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.tokenizers import load_tokenizer
from tfrecords.config import ShardsConfig
from tfrecords.corpus.chunks import corpus_reader, cut, read_chunks
from tfrecords.corpus.tokens import DocumentTokenizer, token_counts
from tfrecords.packing.formats import COUNTS, count, pack
from tfrecords.packing.text_pairs import text_pair_rows
from tfrecords.packing.xlnet import xlnet_rows
from tfrecords.schema import SCHEMA_VERSION, TOKENIZER_FOLDER, shard_name
from tfrecords.shards.manifest import Manifest, Shard
from tfrecords.shards.records import serialize, serialize_rows, write_records
from tfrecords.shards.results import ChunkResult, Done
from tfrecords.shards.statistics import summarize


@dataclasses.dataclass
class ShardJob:
    """Packs a corpus into shards.

    Attributes:
        files: the corpus, from `corpus.files.find_files`.
        output: Path or address of the folder to write; it holds the tokenizer before `prepare` is called.
        tokenizer: stays in this process; others load the one in `output`.
        config: `ShardsConfig`.

    Raises:
        ConfigError: a format that the tokenizer has no special tokens for.
        DataError: no text in the corpus.
    """

    files: list
    output: Path | str
    tokenizer: object
    config: ShardsConfig
    _tokenize: DocumentTokenizer | None = dataclasses.field(default=None, init=False, repr=False)

    def __post_init__(self):
        if next(iter(corpus_reader(self.files, self.config)), None) is None:
            raise self._empty()
        if self.config.format in ("full_sentences", "token_blocks") and self.tokenizer.sep_id is None:
            raise ConfigError(
                f"{self.config.format} puts a separator between documents, and the tokenizer has none; use doc_sentences"
            )
        if self.config.text_pairs and self.tokenizer.sep_id is None:
            raise ConfigError(
                "text_pairs end each text with the token of the role 'sep' (</s>), and the tokenizer has none; train one "
                "of the kind unigram_t5"
            )
        if self.config.format == "xlnet" and self.tokenizer.layout_name != "xlnet":
            raise ConfigError(
                "xlnet puts <sep> after each of two texts and <cls> at the end, and the tokenizer has another layout; "
                "train one of the kind unigram_xlnet, or use full_sentences"
            )

    @property
    def settings(self):
        """Everything that decides what the shards hold, except the corpus: a dict ready for JSON."""
        return self.config.packing | {"tokenizer": self.tokenizer.fingerprint, "schema_version": SCHEMA_VERSION}

    @property
    def corpus(self):
        """The inputs as a manifest lists them."""
        return [{"file": file.name, "bytes": file.bytes} for file in self.files]

    @property
    def bytes(self):
        return sum(file.bytes for file in self.files)

    def units(self):
        """The `corpus.chunks.Unit`s of the corpus."""
        return cut(self.files, self.config)

    def prepare(self):
        """Prepares `write_unit` and returns it."""
        if self.tokenizer is None:
            self.tokenizer = load_tokenizer(f"{self.output}/{TOKENIZER_FOLDER}")
        self._tokenize = DocumentTokenizer(self.tokenizer, self.config.pieces)
        return self.write_unit

    def write_unit(self, unit):
        """Writes the chunks of a `Unit` that have no shard yet; yields the `Done` of all."""
        for chunk in read_chunks(unit, self.config):
            result = ChunkResult.load(self.output, shard_name(chunk.place), self._identity(chunk))
            yield Done(chunk.place, result or self.write(chunk), result is not None, chunk.size)

    def _identity(self, chunk):
        """A checksum of all that decides the shard of a chunk: another launcher may have had other settings."""
        settings = json.dumps(self.settings, sort_keys=True)
        return hashlib.sha256(f"{settings} {chunk.place} {chunk.sha256}".encode()).hexdigest()

    def write(self, chunk):
        """Writes shard and sidecar of one `Chunk`; returns a `ChunkResult`.

        Raises RunDirectoryError where the folder cannot be written.
        """
        # Documents to sentences to token ids; these to sequences, once for each pass; these to records.
        tokens = self._tokenize(chunk.documents, chunk.begins)
        counts = token_counts(chunk, tokens, self.tokenizer) | dict.fromkeys(COUNTS, 0)
        counts["packed_tokens"] = len(tokens.token_ids) * self.config.duplicates
        records = self._records(chunk.place, tokens, counts) if len(tokens.token_ids) else ()
        name = shard_name(chunk.place)
        result = ChunkResult(
            self._identity(chunk), Shard(name, *write_records(f"{self.output}/{name}", records)), counts
        )
        result.save(self.output)
        return result

    def __getstate__(self):
        return self.__dict__ | {"tokenizer": None, "_tokenize": None}

    def _records(self, place, tokens, counts):
        """Yields the serialized sequences of a chunk, pass by pass, and adds them to `counts`."""
        config, tokenizer = self.config, self.tokenizer
        if config.text_pairs:
            packing = config.packing
            lengths = packing["sequence_length"], packing["target_length"]
            rows = text_pair_rows(tokens, tokenizer.sep_id, *lengths, packing["pack_pairs"], counts)
            yield from serialize_rows(rows, tokenizer.vocabulary_size)
            return
        for number in range(config.duplicates):
            seed = _seed(config.seed, *place, number)
            if config.format == "xlnet":
                rows, lengths, left_out = xlnet_rows(
                    tokens, tokenizer.eod_id, tokenizer.layout, config.sequence_length, config.row_segments, seed
                )
                for name in ("examples", "without_pair", "two_segments"):
                    counts[name] += len(rows)
                counts["example_tokens"] += rows.size
                counts["truncated_tokens"] += left_out
                yield from serialize_rows(zip(rows, lengths), tokenizer.vocabulary_size)
            else:
                token_ids, spans = pack(tokens, tokenizer, config, seed)
                count(spans, tokenizer.layout, config, counts)
                yield from serialize(token_ids, spans, tokenizer.layout, tokenizer.vocabulary_size)

    def manifest(self, totals):
        """The `Manifest` of all shards, from their `Totals`; DataError for a corpus too short for a sequence."""
        layout, counts = self.tokenizer.layout, totals.counts
        if not counts.get("examples"):
            if not counts.get("tokens"):
                raise self._empty()
            raise DataError(
                f"the corpus of {counts['tokens']:,} tokens is too short for a single row of "
                f"{self.config.sequence_length} tokens; use a shorter sequence_length"
            )
        return Manifest(
            tokenizer_fingerprint=self.tokenizer.fingerprint,
            vocabulary_size=self.tokenizer.vocabulary_size,
            sequence_length=self.config.sequence_length,
            packing=self.config.packing,
            counts=summarize(counts),
            corpus=self.corpus,
            shards=[shard for shard in totals.in_order() if shard.examples],
            segment_ids=[0, layout.second_segment, layout.end_segment],
        )

    def _empty(self):
        files = f"{len(self.files)} file{'s' * (len(self.files) != 1)}"
        return DataError(f"the corpus ({files}, {self.bytes:,} bytes) holds no text")


def _seed(*numbers):
    """The seed of one pass over one chunk; distinct for distinct arguments."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()[:8], "little")
