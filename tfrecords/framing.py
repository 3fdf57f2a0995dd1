"""The TFRecord container in NumPy: where each record of a file lies, and which of them are damaged.

A record is `length (uint64) | masked CRC-32C of the length (uint32) | data | masked CRC-32C of the
data (uint32)`, all little-endian (tensorflow/core/lib/io/record_writer.h). tf.data reads the same
files but reports neither the number nor the file of a damaged record, and gives up at the first;
this reader knows both and can go on behind it.
"""

import dataclasses
import struct

import numpy as np

HEADER_BYTES = 12  # length and its checksum
FOOTER_BYTES = 4  # checksum of the data

_LENGTH = struct.Struct("<Q")


def _crc32c_table():
    """The 256 steps of the Castagnoli polynomial (reflected 0x82F63B78), one per input byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table.astype(np.uint32)


_CRC32C = _crc32c_table()


@dataclasses.dataclass(frozen=True)
class Damage:
    """The first damaged record of a file: its number, its byte offset, and what is wrong."""

    record: int
    offset: int
    reason: str


def record_offsets(buffer):
    """Byte offsets of the records of a file, trusting the lengths that stand in it.

    Args:
        buffer: bytes of the whole file.

    Returns:
        list of n + 1 ints: where each record starts and, last, where the file ends; None if the
        lengths do not lead exactly to the end of the file.
    """
    offsets, offset, end, length_at = [], 0, len(buffer), _LENGTH.unpack_from
    append = offsets.append
    while offset <= end - HEADER_BYTES:
        append(offset)
        offset += length_at(buffer, offset)[0] + (HEADER_BYTES + FOOTER_BYTES)
    append(offset)
    return offsets if offset == end else None


def intact_records(buffer):
    """Checks every checksum of a file.

    A record whose data is damaged is passed over, since its length still leads to the next one.
    Behind a damaged length nothing can be found again, and the rest of the file is given up.

    Args:
        buffer: bytes of the whole file.

    Returns:
        numbers: int64 [n], the numbers of the intact records, counting the damaged ones too.
        spans: int64 [n, 2], where the data of each begins and ends.
        damage: `Damage` of the first damaged record, or None.
    """
    data = np.frombuffer(buffer, np.uint8)
    starts, lengths, cut = [], [], None
    offset, end = 0, len(buffer)
    while offset < end:
        if offset + HEADER_BYTES > end:
            cut = "the file ends inside the record's header"
            break
        (length,) = _LENGTH.unpack_from(buffer, offset)
        header = np.array([offset]), np.array([8])
        if offset + HEADER_BYTES + length + FOOTER_BYTES > end:
            intact_length = _masked_crc32c(data, *header)[0] == _uint32_at(data, offset + 8)
            cut = (
                "the file ends inside the record"
                if intact_length
                else "the record's length does not match its checksum"
            )
            break
        starts.append(offset)
        lengths.append(length)
        offset += HEADER_BYTES + length + FOOTER_BYTES
    cut_at = (len(starts), offset) if cut else None

    starts, lengths = np.array(starts, np.int64), np.array(lengths, np.int64)
    good_length = _masked_crc32c(data, starts, np.full_like(starts, 8)) == _uint32_at(
        data, starts + 8
    )
    if not good_length.all():
        first = int(np.argmin(good_length))
        cut = "the record's length does not match its checksum"
        cut_at = (first, int(starts[first]))
        starts, lengths = starts[:first], lengths[:first]

    begins = starts + HEADER_BYTES
    good_data = _masked_crc32c(data, begins, lengths) == _uint32_at(data, begins + lengths)
    damage = Damage(*cut_at, cut) if cut else None
    if not good_data.all():
        first = int(np.argmin(good_data))
        damage = Damage(
            first, int(starts[first]), "the record's data does not match its checksum"
        )
    numbers = np.flatnonzero(good_data)
    return numbers, np.stack([begins, begins + lengths], axis=1)[numbers], damage


def _uint32_at(data, offsets):
    """Little-endian uint32 at each of `offsets` in the uint8 array `data`."""
    offsets = np.asarray(offsets)
    bytes_ = data[offsets[..., None] + np.arange(4)].astype(np.uint32)
    return (bytes_ << np.array([0, 8, 16, 24], np.uint32)).sum(-1, dtype=np.uint32)


def _masked_crc32c(data, begins, lengths):
    """Masked CRC-32C of `data[begin : begin + length]` for many spans side by side.

    One step handles one byte of every span: some hundred NumPy calls for a whole shard.
    """
    order = np.argsort(-lengths, kind="stable")
    begins, lengths = begins[order], lengths[order]
    crc = np.full(len(begins), 0xFFFFFFFF, np.uint32)
    # Spans are sorted by falling length, so those that still have a byte `i` come first.
    longest = int(lengths[0]) if len(lengths) else 0
    alive = np.searchsorted(-lengths, -np.arange(longest), side="left")
    for i in range(longest):
        n = alive[i]
        crc[:n] = _CRC32C[(crc[:n] ^ data[begins[:n] + i]) & 0xFF] ^ (crc[:n] >> 8)
    crc = ~crc
    masked = ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)
    result = np.empty_like(masked)
    result[order] = masked
    return result
