"""A table of characters (character_tables.py), written as the model that tensorflow-text's `FastBertNormalizer` runs.

The operator looks up each character of the text in a double-array trie over UTF-8 bytes and writes what it finds
instead. tensorflow-text builds only its own two tables; this file builds the same structure for any table.

Source: tensorflow_text/core/kernels/fast_bert_normalizer.h (encoding of the values),
darts_clone_trie_wrapper.h (encoding of the trie), fast_bert_normalizer_model.fbs (the file).
"""

import struct
from typing import Any

import numpy as np

from bert_tf.tokenizers.character_tables import NUM_CODE_POINTS, private_code_points

_CHANGED = 0x40000000  # of a value: the character becomes something else
_VALUE = 0x80000000  # of a trie unit: holds a value, and is not a node
_HAS_VALUE = 0x100  # of a trie unit: a value hangs at its base
_MAX_LENGTH = 63  # bytes, in the 6 bits that a value has for it
_DROP = _CHANGED  # becomes the empty string


def build_character_map(table: Any, drop_private: bool = True) -> np.ndarray:
    """The model for `tensorflow_text.FastBertNormalizer(model_buffer=...)`, a uint8 array. It drops bytes that are not
    UTF-8.

    Args:
        table: dict of one-character string -> string of at most 63 bytes; other characters stay as they are.
        drop_private: whether characters of private use beyond the basic plane are dropped too.
    """
    pool, numbers = bytearray(), {}
    values = [0, _DROP]  # numbers 0 and 1: unchanged, dropped
    number_of = np.zeros(NUM_CODE_POINTS, np.int32)
    if drop_private:
        number_of[private_code_points()] = 1
    for character, result in table.items():
        encoded = result.encode("utf-8")
        if len(encoded) > _MAX_LENGTH:
            raise ValueError(f"U+{ord(character):04X} becomes {len(encoded)} bytes; at most {_MAX_LENGTH}")
        if encoded not in numbers:
            numbers[encoded] = len(values)
            values.append(_CHANGED | len(pool) << 6 | len(encoded))
            pool += encoded
        number_of[ord(character)] = numbers[encoded]
    return _flatbuffer(_build_trie(values, number_of), values[number_of[0]], bytes(pool))


def _build_trie(values, number_of):
    """uint32 units of the double array, for values and the number of each code point's value.

    A unit holds its byte in bits 0-7, whether it has a value in bit 8, and from bit 10 the exclusive or of its own
    index and its base. The child over byte b is at base ^ b, the value at base ^ 0. Only bytes 0x80-0xBF continue a
    character, so 64 units serve a node, and equal nodes share them. Four times 64 units form a group: the upper two
    hold children, and the lower two hold values. A node's own value, taken when a character breaks off there, is the
    first of its lower part: nothing is written.
    """
    slots = _value_slots(len(values))
    regions = _Regions(start=512)  # group 0 holds the root, group 1 its children

    # The last byte of a character: 64 leaves, from 0x80 on.
    leaves = np.where(number_of == 0, 0, slots[number_of]).reshape(-1, 64)
    bottom = [regions.add(row) for row in leaves]  # by code point >> 6

    def node(children):
        return regions.add(np.array([_base(c) if c else 0 for c in children]))

    root = {byte: int(slots[1]) for byte in range(0x80, 0x100)}  # no byte that begins a character
    root |= {i: int(slots[number_of[i]]) for i in range(1, 0x80) if number_of[i]}
    for lead in range(0xC2, 0xE0):
        root[lead] = _base(bottom[lead & 0x1F])
    for lead in range(0xE0, 0xF0):
        seconds = range((lead & 0xF) << 6, ((lead & 0xF) + 1) << 6)
        root[lead] = _base(node([bottom[i] if i >= 0x20 else 0 for i in seconds]))
    for lead in range(0xF0, 0xF5):
        seconds = range((lead & 7) << 6, ((lead & 7) + 1) << 6)
        thirds = [node(bottom[i << 6 : (i + 1) << 6]) if 0x10 <= i < 0x110 else 0 for i in seconds]
        root[lead] = _base(node(thirds))

    size = max(regions.next_group + 256, int(slots[-1]) + 1)
    units = np.zeros(size + -size % 256, np.uint32)
    units[0] = 256 << 10  # the root: no label, base 256
    for byte, base in root.items():
        units[256 + byte] = _unit(256 + byte, byte, base)
    labels = np.arange(0x80, 0xC0)
    for start, bases in regions.content:
        index = np.arange(start, start + 64)
        units[index] = np.where(bases == 0, 0, _unit(index, labels, bases))
        units[_base(start)] = _VALUE | _DROP
    units[slots] = np.array(values, np.uint32) | np.uint32(_VALUE)
    return units


def _base(start):
    return start ^ 0x80


def _unit(index, label, base):
    return (index ^ base) << 10 | _HAS_VALUE | label


def _value_slots(count):
    """Indices for values: the lower half of each group but the nodes' own, and not in group 1."""
    groups = np.arange(count // 126 + 2)
    slots = (groups[groups != 1, None] * 256 + np.arange(128)).reshape(-1)
    return slots[slots % 64 != 0][:count]


class _Regions:
    """Allocates the upper two quarters of each group; equal content has the same units."""

    def __init__(self, start):
        self.next_group, self.half = start, 128
        self.known, self.content = {}, []

    def add(self, bases):
        """The start of 64 units with these bases, 0 where there is no child."""
        key = bases.tobytes()
        if key not in self.known:
            start = self.next_group + self.half
            self.known[key] = start
            self.content.append((start, bases))
            if self.half == 192:
                self.next_group += 256
            self.half = 320 - self.half
        return self.known[key]


def _flatbuffer(trie, value_of_zero, pool):
    """The table FastBertNormalizerModel: bool, [uint32], int32, [ubyte], in this order."""
    vtable_at, table_at = 4, 16
    trie_at = table_at + 20
    pool_at = trie_at + 4 + 4 * len(trie)
    vtable = struct.pack("<HHHHHH", 12, 20, 16, 4, 8, 12)  # sizes, then each field's offset
    table = struct.pack(
        "<iIiIB3x", table_at - vtable_at, trie_at - table_at - 4, value_of_zero, pool_at - table_at - 12, 1
    )
    content = b"".join(
        (
            struct.pack("<I", table_at),
            vtable,
            table,
            struct.pack("<I", len(trie)),
            trie.astype("<u4").tobytes(),
            struct.pack("<I", len(pool)),
            pool,
        )
    )
    return np.frombuffer(content, np.uint8)
