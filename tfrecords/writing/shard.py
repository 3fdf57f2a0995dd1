"""One unit of work: a chunk of documents in, a shard file with its sidecar out."""

import errno
import hashlib
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.files import explain_disk_errors
from bert_tf.tokenizers import load_tokenizer
from tfrecords.corpus.tokens import DocumentTokenizer, token_counts
from tfrecords.packing.electra import electra_examples, reorder
from tfrecords.packing.pairs import segment_pairs, sentence_pairs
from tfrecords.packing.single_segments import doc_sentences, full_sentences, insert_separators, token_blocks
from tfrecords.packing.spans import ENDS, FILLS
from tfrecords.packing.xlnet import xlnet_rows
from tfrecords.shards.config import PAIR_FORMATS, SINGLE_FORMATS
from tfrecords.shards.manifest import Manifest, Shard
from tfrecords.shards.records import serialize, serialize_rows
from tfrecords.shards.schema import EXCHANGED, IN_ORDER, MANIFEST_NAME, NEXT, NO_PAIR, RANDOM_NEXT, TOKENIZER_FOLDER
from tfrecords.writing.output_folder import Kind
from tfrecords.writing.results import ChunkResult

SHARDS = Kind("shards", Manifest, MANIFEST_NAME, Shard, "shard", ".tfrecord")


class ShardWriter:
    """Turns chunks into shards; one lives in each process, and all threads there may call it.

    Args:
        folder: the output folder; it holds the tokenizer.
        config: `ShardsConfig`.
        tokenizer: that tokenizer, where it is loaded already.
    """

    def __init__(self, folder, config, tokenizer=None):
        self._folder, self._config = Path(folder), config
        self._tokenizer = load_tokenizer(self._folder / TOKENIZER_FOLDER) if tokenizer is None else tokenizer
        self._tokenize = DocumentTokenizer(self._tokenizer, config.sentences)

    def __call__(self, chunk):
        """Writes shard and sidecar of one chunk.

        Args:
            chunk: `Chunk` or `StoredChunk`.

        Returns:
            ChunkResult.

        Raises:
            RunDirectoryError: the disk is full or the folder cannot be written.
            DataError: the file of a `StoredChunk` is damaged.
        """
        tokens = chunk.tokens(self._tokenize)
        counts = token_counts(chunk, tokens, self._tokenizer) | {
            "packed_tokens": len(tokens.token_ids) * self._config.duplicates,
            "examples": 0,
            "example_tokens": 0,
            "truncated_tokens": 0,
            **dict.fromkeys(("next", "random_next", "random_next_ends", "random_next_fills", "in_order", "exchanged"), 0),
            "without_pair": 0,
            "two_segments": 0,
            "lone_segments": 0,
        }
        passes = self._passes(chunk.index, tokens, counts) if len(tokens.token_ids) else []
        shard = self._write(SHARDS.file_name(chunk.index), passes)
        result = ChunkResult(chunk.sha256, shard, counts)
        result.save(self._folder)
        return result

    def _passes(self, index, tokens, counts):
        """Yields the serialized examples, pass by pass, and adds them to `counts`."""
        config, tokenizer = self._config, self._tokenizer
        for number in range(config.duplicates):
            seed = _seed(config.seed, index, number)
            if config.format == "xlnet":
                yield from self._segmented_rows(tokens, seed, counts)
                continue
            ids, spans = _pack(tokens, tokenizer, config, seed)
            _count(spans, tokenizer.layout, config, counts)
            yield from serialize(ids, spans, tokenizer.layout, tokenizer.vocabulary_size)

    def _segmented_rows(self, tokens, seed, counts):
        """Yields the serialized rows of the format xlnet, and adds them to `counts`."""
        config, tokenizer = self._config, self._tokenizer
        rows, lengths, left_out = xlnet_rows(
            tokens, tokenizer.eod_id, tokenizer.layout, config.sequence_length, config.row_segments, seed
        )
        for name in ("examples", "without_pair", "two_segments"):
            counts[name] += len(rows)
        counts["example_tokens"] += rows.size
        counts["truncated_tokens"] += left_out
        return serialize_rows(rows, lengths, tokenizer.vocabulary_size)

    def _write(self, name, records):
        path = self._folder / name
        # Machines of a cluster may work on the same chunk twice, under the same process number.
        temporary = path.with_name(f".{name}.{os.uname().nodename}.{os.getpid()}.tmp")
        examples = 0
        with explain_disk_errors(path):
            try:
                with tf.io.TFRecordWriter(str(temporary)) as writer:
                    for record in records:
                        writer.write(record)
                        examples += 1
                with open(temporary, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                    size = os.fstat(file.fileno()).st_size
                    os.fsync(file.fileno())
                os.replace(temporary, path)
            # What TensorFlow's file system raises in place of OSError.
            except tf.errors.ResourceExhaustedError as error:
                raise OSError(errno.ENOSPC, error.message) from error
            except tf.errors.PermissionDeniedError as error:
                raise OSError(errno.EACCES, error.message) from error
            finally:
                temporary.unlink(missing_ok=True)
        return Shard(name, examples, size, digest)


def _pack(tokens, tokenizer, config, seed):
    """One pass over a chunk in the format asked for: the ids, and `Spans` that point into them."""
    token_ids, *splits = tokens
    layout = tokenizer.layout
    if config.format in PAIR_FORMATS:
        room = config.sequence_length - layout.special_tokens_per_pair
        if config.format == "sentence_pair":
            return token_ids, sentence_pairs(*splits, room, seed, config.pair_task)
        return token_ids, segment_pairs(*splits, room, seed, config.short_sequences, config.pair_task)
    if config.format == "electra":
        spans, sentences = electra_examples(*splits, config.sequence_length, layout, seed, config.short_sequences)
        return reorder(token_ids, splits[0], sentences), spans
    room = config.sequence_length - layout.special_tokens_per_sequence
    if config.format == "doc_sentences":
        return token_ids, doc_sentences(*splits, room)
    across_documents = token_blocks if config.format == "token_blocks" else full_sentences
    spans, separators = across_documents(*splits, room)
    return insert_separators(token_ids, separators, tokenizer.sep_id), spans


def _count(spans, layout, config, counts):
    """Adds the examples of one pass to `counts`."""
    first, second = spans.first_end - spans.first_start, spans.second_end - spans.second_start
    pairs = int(np.count_nonzero(second))
    singles = len(second) - pairs
    counts["examples"] += len(second)
    counts["example_tokens"] += int((first + second).sum())
    counts["example_tokens"] += pairs * layout.special_tokens_per_pair + singles * layout.special_tokens_per_sequence
    counts["two_segments"] += pairs
    counts["truncated_tokens"] += int(spans.truncated.sum())
    counts["without_pair"] += int(np.count_nonzero(spans.labels == NO_PAIR))
    counts["lone_segments"] += 0 if config.format in SINGLE_FORMATS else singles
    if config.pair_task == "next_sentence":
        is_random = spans.labels == RANDOM_NEXT
        counts["next"] += int(np.count_nonzero(spans.labels == NEXT))
        counts["random_next"] += int(np.count_nonzero(is_random))
        counts["random_next_ends"] += int(np.count_nonzero(is_random & (spans.lone == ENDS)))
        counts["random_next_fills"] += int(np.count_nonzero(is_random & (spans.lone == FILLS)))
    elif config.pair_task == "sentence_order":
        counts["in_order"] += int(np.count_nonzero(spans.labels == IN_ORDER))
        counts["exchanged"] += int(np.count_nonzero(spans.labels == EXCHANGED))


def _seed(seed, index, number):
    """Of one pass over one chunk; distinct for distinct arguments."""
    return int.from_bytes(hashlib.sha256(f"{seed} {index} {number}".encode()).digest()[:8], "little")
