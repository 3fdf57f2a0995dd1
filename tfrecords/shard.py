"""One unit of work: a chunk of documents in, a shard file with its sidecar out."""

import base64
import dataclasses
import errno
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.files import atomic_write, explain_disk_errors
from bert_tf.tokenizers import load_tokenizer
from tfrecords.manifest import Shard
from tfrecords.packing import drop_empty, full_sentences, insert_separators, segment_pairs
from tfrecords.records import serialize
from tfrecords.schema import NO_PAIR, RANDOM_NEXT, TOKENIZER_FOLDER
from tfrecords.sentences import document_sentences
from tfrecords.statistics import DuplicateSample, sentence_hashes

# Sentences tokenized by one call: enough to spread its cost, little memory.
_BATCH = 8192
UNFINISHED_FOLDER = ".unfinished"


@dataclass(frozen=True)
class ShardResult:
    """A finished shard: its entry in the manifest, its counts, its sample of sentences."""

    chunk_sha256: str
    shard: Shard
    counts: dict
    duplicates: DuplicateSample

    def save(self, path):
        """Writes the sidecar that lets an interrupted run go on behind this shard."""
        values = {
            "chunk_sha256": self.chunk_sha256,
            "shard": dataclasses.asdict(self.shard),
            "counts": self.counts,
            "threshold": self.duplicates.threshold,
            "hashes": _to_text(self.duplicates.hashes, "<u8"),
            "repeats": _to_text(self.duplicates.counts, "<i8"),
        }
        with atomic_write(path) as file:
            json.dump(values, file)

    @classmethod
    def load(cls, path):
        """The result in a sidecar; None if there is none or it is damaged, and the shard must be redone."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            hashes, repeats = _from_text(values["hashes"], "<u8"), _from_text(values["repeats"], "<i8")
            duplicates = DuplicateSample(hashes, values["threshold"], counts=repeats)
            return cls(values["chunk_sha256"], Shard(**values["shard"]), values["counts"], duplicates)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None


def _to_text(array, dtype):
    return base64.b64encode(array.astype(dtype).tobytes()).decode()


def _from_text(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def shard_name(index):
    return f"shard-{index:05}.tfrecord"


def sidecar_path(folder, index):
    return Path(folder) / UNFINISHED_FOLDER / f"shard-{index:05}.json"


class ShardWriter:
    """Turns chunks into shards; one lives in each worker process.

    Args:
        folder: the output folder; it holds the tokenizer.
        config: `ShardsConfig`.
    """

    def __init__(self, folder, config):
        self._folder, self._config = Path(folder), config
        self._tokenizer = load_tokenizer(self._folder / TOKENIZER_FOLDER)
        self._tokenize = tf.function(self._ragged, input_signature=[tf.TensorSpec([None], tf.string)])

    def _ragged(self, text):
        ids = self._tokenizer.tokenize(text)
        return ids.flat_values, ids.row_lengths()

    def __call__(self, work):
        """Writes shard and sidecar of one chunk.

        Args:
            work: (`Chunk`, threshold); the sample of sentences need not go beyond the threshold.

        Returns:
            ShardResult.

        Raises:
            RunDirectoryError: the disk is full or the folder cannot be written.
        """
        chunk, threshold = work
        config, tokenizer = self._config, self._tokenizer
        token_ids, sentence_splits, document_splits = self._token_ids(chunk.documents)
        counts = {
            "documents": chunk.begun,
            "text_bytes": sum(map(len, chunk.documents)),
            "replaced_characters": chunk.replaced,
            "sentences": len(sentence_splits) - 1,
            "tokens": len(token_ids),
            "unknown_tokens": int(np.count_nonzero(token_ids == tokenizer.unk_id)),
            "packed_tokens": len(token_ids) * config.duplicates,
            "examples": 0,
            "example_tokens": 0,
            "truncated_tokens": 0,
            "random_next": 0,
            "without_pair": 0,
        }
        duplicates = DuplicateSample(sentence_hashes(token_ids, sentence_splits), threshold)
        passes = []
        if len(token_ids):
            passes = self._passes(chunk.index, token_ids, sentence_splits, document_splits, counts)
        shard = self._write(shard_name(chunk.index), passes)
        result = ShardResult(chunk.sha256, shard, counts, duplicates)
        result.save(sidecar_path(self._folder, chunk.index))
        return result

    def _token_ids(self, documents):
        """The ids of all sentences in one array, with row splits of sentences and of documents."""
        sentences, document_ends = [], [0]
        for text in documents:
            sentences += document_sentences(text.decode(), self._config.sentences)
            document_ends.append(len(sentences))
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for first in range(0, len(sentences), _BATCH):
            values, rows = self._tokenize(tf.constant(sentences[first : first + _BATCH]))
            ids.append(values.numpy())
            lengths.append(rows.numpy())
        splits = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return np.concatenate(ids), *drop_empty(splits, np.array(document_ends))

    def _passes(self, index, token_ids, sentence_splits, document_splits, counts):
        """Yields the serialized examples, pass by pass, and adds them to `counts`."""
        config, tokenizer = self._config, self._tokenizer
        for number in range(config.duplicates):
            if config.format == "full_sentences":
                spans, separators = full_sentences(sentence_splits, document_splits, config.sequence_length)
                ids, around = insert_separators(token_ids, separators, tokenizer.sep_id), 2
            else:
                seed = _seed(config.seed, index, number)
                spans = segment_pairs(
                    sentence_splits, document_splits, config.sequence_length, seed, config.short_sequence_probability
                )
                ids, around = token_ids, 3
            unpaired = int(np.count_nonzero(spans.labels == NO_PAIR))
            counts["examples"] += len(spans.labels)
            counts["truncated_tokens"] += int(spans.truncated.sum())
            counts["random_next"] += int(np.count_nonzero(spans.labels == RANDOM_NEXT))
            counts["without_pair"] += unpaired
            in_spans = spans.first_end - spans.first_start + spans.second_end - spans.second_start
            counts["example_tokens"] += int(in_spans.sum()) + around * len(spans.labels)
            if around == 3:
                counts["example_tokens"] -= unpaired
            yield from serialize(ids, spans, tokenizer.cls_id, tokenizer.sep_id, tokenizer.vocabulary_size)

    def _write(self, name, records):
        path = self._folder / name
        temporary = path.with_name(f".{name}.{os.getpid()}.tmp")
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


def _seed(seed, index, number):
    """Of one pass over one chunk; distinct for distinct arguments."""
    return int.from_bytes(hashlib.sha256(f"{seed} {index} {number}".encode()).digest()[:8], "little")
