"""A table of characters, written as the model that tensorflow-text's `FastBertNormalizer` runs.

The operator looks each character of the text up in a double-array trie over UTF-8 bytes and
writes what it finds instead. tensorflow-text builds only its own two tables; this file builds
the same structure for any table.

Source: tensorflow_text/core/kernels/fast_bert_normalizer.h (encoding of the values),
darts_clone_trie_wrapper.h (encoding of the trie), fast_bert_normalizer_model.fbs (the file).
"""

import struct

import numpy as np

from bert_tf.tokenizers.characters import NUM_CODE_POINTS, private_code_points

_CHANGED = 0x40000000  # of a value: the character becomes something else
_VALUE = 0x80000000  # of a trie unit: holds a value, is no node
_HAS_VALUE = 0x100  # of a trie unit: a value hangs at its base
_MAX_LENGTH = 63  # bytes, in the 6 bits that a value has for it
_DROP = _CHANGED  # becomes the empty string


def build_normalizer_model(table):
    """The model for `tensorflow_text.FastBertNormalizer(model_buffer=...)`.

    Bytes that are no UTF-8, and private use beyond the basic plane, become nothing.

    Args:
        table: dict of one-character string -> string of at most 63 bytes. Characters that are
            not in it stay as they are.

    Returns:
        uint8 array.
    """
    pool, places = bytearray(), {}
    values = np.zeros(NUM_CODE_POINTS, np.uint32)
    values[private_code_points()] = _DROP
    for character, result in table.items():
        encoded = result.encode("utf-8")
        if len(encoded) > _MAX_LENGTH:
            raise ValueError(f"U+{ord(character):04X} becomes {len(encoded)} bytes; at most {_MAX_LENGTH}")
        if encoded not in places:
            places[encoded] = len(pool)
            pool += encoded
        values[ord(character)] = _CHANGED | places[encoded] << 6 | len(encoded)
    return _flatbuffer(_build_trie(values), int(values[0]), bytes(pool))


def _build_trie(values):
    """uint32 units of the double array.

    A unit holds its byte in bits 0-7, whether it has a value in bit 8, and from bit 10 the
    exclusive or of its own index and its base. The child over byte b is at base ^ b, the value
    at base ^ 0. Only bytes 0x80-0xBF continue a character, so 64 units serve a node, and equal
    nodes share them. Four times 64 units form a group: the upper two hold children, and the
    lower two hold values. A node's own value, taken when a character breaks off there, is the
    first of its lower part: nothing is written.
    """
    distinct, indices = np.unique(values, return_inverse=True)
    value_units = [_VALUE | int(v) for v in distinct]
    slots = _ValueSlots()
    slot_of = [slots.take() for _ in distinct]
    regions = _Regions(start=512)  # group 0 holds the root, group 1 its children

    # The last byte of a character: 64 leaves, from 0x80 on.
    blocks, block_of = np.unique(indices.reshape(-1, 64), axis=0, return_inverse=True)
    unchanged = int(np.searchsorted(distinct, 0))
    leaves = []
    for block in blocks:
        targets = [None if i == unchanged else slot_of[i] for i in block]
        leaves.append(regions.add(targets))
    block_of = block_of.reshape(-1)
    bottom = [leaves[b] for b in block_of]  # by code point >> 6

    def node(children):
        return regions.add([None if c is None else _base(c) for c in children])

    root = {}
    for lead in range(0xC2, 0xE0):
        root[lead] = bottom[lead & 0x1F]
    for lead in range(0xE0, 0xF0):
        rows = range((lead & 0xF) << 6, ((lead & 0xF) + 1) << 6)
        root[lead] = node([None if r < 0x20 else bottom[r] for r in rows])
    for lead in range(0xF0, 0xF5):
        thirds = range((lead & 7) << 6, ((lead & 7) + 1) << 6)
        root[lead] = node(
            [
                node([bottom[t << 6 | i] for i in range(64)]) if 0x10 <= t < 0x110 else None
                for t in thirds
            ]
        )

    size = max(regions.next_group + 256, slots.end())
    units = np.zeros(size + -size % 256, np.uint32)
    units[0] = 256 << 10  # the root: no label, base 256
    for i in range(1, 128):
        if indices[i] != unchanged:
            _link(units, 256 + i, i, slot_of[indices[i]])
    for byte in range(0x80, 0x100):
        _link(units, 256 + byte, byte, _base(root[byte]) if byte in root else slots.drop)
    for start, targets in regions.content:
        for i, target in enumerate(targets):
            if target is not None:
                _link(units, start + i, 0x80 + i, target)
    for slot, unit in zip(slot_of, value_units):
        units[slot] = unit
    units[slots.drop] = _VALUE | _DROP
    for start, _ in regions.content:
        units[_base(start)] = _VALUE | _DROP
    return units


def _base(start):
    return start ^ 0x80


def _link(units, index, label, base):
    units[index] = (index ^ base) << 10 | _HAS_VALUE | label


class _ValueSlots:
    """Hands out the units that hold values: in each group the lower half but two, the nodes' own."""

    def __init__(self):
        self.drop = 1
        self.next = 2

    def take(self):
        slot = self.next
        self.next += 1
        while self.next % 256 >= 128 or self.next % 64 == 0 or 256 <= self.next < 512:
            self.next += 1
        return slot

    def end(self):
        return self.next + 1


class _Regions:
    """Hands out the upper two quarters of each group; equal content gets the same place."""

    def __init__(self, start):
        self.next_group, self.half = start, 128
        self.known, self.content = {}, []

    def add(self, targets):
        key = tuple(targets)
        if key not in self.known:
            start = self.next_group + self.half
            self.known[key] = start
            self.content.append((start, targets))
            if self.half == 192:
                self.next_group += 256
            self.half = 320 - self.half
        return self.known[key]


def _flatbuffer(trie, value_of_zero, pool):
    """The table FastBertNormalizerModel: bool, [uint32], int32, [ubyte], in this order."""
    vtable_at, table_at = 4, 16
    trie_at = table_at + 20
    pool_at = trie_at + 4 + 4 * len(trie)
    vtable = struct.pack("<HHHHHH", 12, 20, 16, 4, 8, 12)  # sizes, then each field's place
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
