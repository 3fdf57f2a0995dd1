"""What is done with a corpus: its chunks, a file for each of them, the manifest of all.

A job is one object with everything that decides its result. `prepare` is called once in each process, `write` for
each chunk, by any thread of any process, and `manifest` at the end. `writer` and `beam` drive it.
"""

import dataclasses
import hashlib
from pathlib import Path

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers import load_tokenizer
from tfrecords.corpus.tokens import DocumentTokenizer, encode, token_counts
from tfrecords.packing.formats import COUNTS, count, pack
from tfrecords.packing.text_pairs import text_pair_rows
from tfrecords.packing.xlnet import xlnet_rows
from tfrecords.shards.config import CorpusConfig, ShardsConfig
from tfrecords.shards.manifest import Manifest, Shard
from tfrecords.shards.records import serialize, serialize_pairs, serialize_rows, write_records
from tfrecords.shards.schema import MANIFEST_NAME, SCHEMA_VERSION, TOKENIZER_FOLDER, TOKENS_MANIFEST_NAME
from tfrecords.shards.tokenized import TokenFile, TokenizedCorpus
from tfrecords.writing.output_folder import Kind
from tfrecords.writing.results import ChunkResult
from tfrecords.writing.sources import TextSource, TokenSource
from tfrecords.writing.statistics import summarize, summarize_text


@dataclasses.dataclass
class Job:
    """The common part of all jobs.

    Attributes:
        source: `TextSource` or `TokenSource`.
        output: Path of the folder to write; it holds the tokenizer before `prepare` is called.
        tokenizer: stays in this process; others load the one in `output`.
        config: `CorpusConfig`, for shards `ShardsConfig`.
    """

    source: TextSource | TokenSource
    output: Path
    tokenizer: object
    config: CorpusConfig
    _tokenize: DocumentTokenizer | None = dataclasses.field(default=None, init=False, repr=False)

    def prepare(self):
        """Prepares `write` and returns it."""
        if self.tokenizer is None:
            self.tokenizer = load_tokenizer(self.output / TOKENIZER_FOLDER)
        self._tokenize = DocumentTokenizer(self.tokenizer, self.config.pieces)
        return self.write

    def write(self, chunk):
        """Writes file and sidecar of one `Chunk` or `StoredChunk`; returns a `ChunkResult`.

        Raises RunDirectoryError where the folder cannot be written, DataError for a damaged `StoredChunk`.
        """
        # Documents to sentences to token ids; or the ids as they were stored.
        tokens = chunk.tokens(self._tokenize)
        counts = token_counts(chunk, tokens, self.tokenizer)
        entry = self.write_file(self.kind.file_name(chunk.index), chunk, tokens, counts)
        result = ChunkResult(chunk.sha256, entry, counts)
        result.save(self.output)
        return result

    def __getstate__(self):
        return self.__dict__ | {"tokenizer": None, "_tokenize": None}


@dataclasses.dataclass
class ShardJob(Job):
    """Packs a corpus into shards. The config is a `ShardsConfig`.

    Raises:
        ConfigError: a format that the tokenizer has no special tokens for.
    """

    config: ShardsConfig
    kind = Kind("shards", Manifest, MANIFEST_NAME, Shard, "shard", ".tfrecord")

    def __post_init__(self):
        if self.config.format in ("full_sentences", "token_blocks") and self.tokenizer.sep_id is None:
            raise ConfigError(
                f"{self.config.format} puts a separator between documents, and the tokenizer has none; use doc_sentences"
            )
        if self.config.text_pairs and self.tokenizer.sep_id is None:
            raise ConfigError(
                "text_pairs end each text with the token of the role 'sep' (</s>), and the tokenizer has none; train one "
                "with `bert-tf vocab --kind unigram_t5`"
            )
        if self.config.format == "xlnet" and self.tokenizer.layout_name != "xlnet":
            raise ConfigError(
                "xlnet puts <sep> after each of two texts and <cls> at the end, and the tokenizer has another layout; "
                "train one with `bert-tf vocab --kind unigram_xlnet`, or use full_sentences"
            )

    @property
    def settings(self):
        """Everything that decides what the shards hold, except the corpus: a dict ready for JSON."""
        return self.config.packing | {"tokenizer": self.tokenizer.fingerprint, "schema_version": SCHEMA_VERSION}

    def write_file(self, name, chunk, tokens, counts):
        """Writes the shard of a chunk and adds what it holds to `counts`; returns its `Shard`."""
        counts |= dict.fromkeys(COUNTS, 0)
        counts["packed_tokens"] = len(tokens.token_ids) * self.config.duplicates
        # Token ids to sequences, once for each pass, to records.
        records = self._records(chunk.index, tokens, counts) if len(tokens.token_ids) else ()
        return Shard(name, *write_records(self.output / name, records))

    def _records(self, index, tokens, counts):
        """Yields the serialized sequences of a chunk, pass by pass, and adds them to `counts`."""
        config, tokenizer = self.config, self.tokenizer
        if config.text_pairs:
            packing = config.packing
            lengths = packing["sequence_length"], packing["target_length"]
            rows = text_pair_rows(tokens, tokenizer.sep_id, *lengths, packing["pack_pairs"], counts)
            yield from serialize_pairs(rows, tokenizer.vocabulary_size)
            return
        for number in range(config.duplicates):
            seed = _seed(config.seed, index, number)
            if config.format == "xlnet":
                rows, lengths, left_out = xlnet_rows(
                    tokens, tokenizer.eod_id, tokenizer.layout, config.sequence_length, config.row_segments, seed
                )
                for name in ("examples", "without_pair", "two_segments"):
                    counts[name] += len(rows)
                counts["example_tokens"] += rows.size
                counts["truncated_tokens"] += left_out
                yield from serialize_rows(rows, lengths, tokenizer.vocabulary_size)
            else:
                token_ids, spans = pack(tokens, tokenizer, config, seed)
                count(spans, tokenizer.layout, config, counts)
                yield from serialize(token_ids, spans, tokenizer.layout, tokenizer.vocabulary_size)

    def manifest(self, totals):
        """The `Manifest` of all shards, from their `Totals`; DataError for a corpus too short for a sequence."""
        layout, counts = self.tokenizer.layout, totals.counts
        if not counts.get("examples"):
            if not counts.get("tokens"):
                raise self.source.empty()
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
            corpus=self.source.corpus,
            shards=[shard for shard in totals.in_order() if shard.examples],
            segment_ids=[0, layout.second_segment, layout.end_segment],
        )


@dataclasses.dataclass
class TokenJob(Job):
    """Keeps the token ids of a corpus of text."""

    kind = Kind("token files", TokenizedCorpus, TOKENS_MANIFEST_NAME, TokenFile, "tokens", ".npz")

    @property
    def settings(self):
        """As of `ShardJob`."""
        return TokenizedCorpus(self.tokenizer.fingerprint, 0, to_dict(self.config), {}, [], []).settings

    def write_file(self, name, chunk, tokens, counts):
        """Writes the token file of a chunk; returns its `TokenFile`."""
        data = encode(tokens, self.tokenizer.vocabulary_size)
        with atomic_write(self.output / name, "wb") as file:
            file.write(data)
        return TokenFile(
            file=name,
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            documents=chunk.begun,
            text_bytes=chunk.text_bytes,
            replaced_characters=chunk.replaced,
            text_sha256=chunk.sha256,
        )

    def manifest(self, totals):
        """The `TokenizedCorpus` of all files, from their `Totals`; DataError for an empty corpus."""
        if not totals.counts.get("tokens"):
            raise self.source.empty()
        return TokenizedCorpus(
            tokenizer_fingerprint=self.tokenizer.fingerprint,
            vocabulary_size=self.tokenizer.vocabulary_size,
            reading=to_dict(self.config),
            counts=summarize_text(totals.counts),
            corpus=self.source.corpus,
            files=totals.in_order(),
        )


def _seed(seed, index, number):
    """The seed of one pass over one chunk; distinct for distinct arguments."""
    return int.from_bytes(hashlib.sha256(f"{seed} {index} {number}".encode()).digest()[:8], "little")
