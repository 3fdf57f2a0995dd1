"""The shard format: what one record holds and what the manifest beside the shards says.

A record is a serialized `tf.train.Example` with these features, all unpadded:

| feature | type | meaning |
|---|---|---|
| `token_ids` | bytes | little-endian ids, `id_dtype(vocabulary_size)` each, special tokens included, at most `sequence_length` of them |
| `segment_lengths` | bytes | two little-endian uint16: tokens of segment A and of segment B, each with the special tokens before and after it (B: 0 = single segment); what follows both is the layout's `at_end` |
| `pair_label` | bytes | one uint8: `NEXT` or `RANDOM_NEXT`, `IN_ORDER` or `EXCHANGED`, or `NO_PAIR`; the manifest says which pair it is about |

The tokenizer's layout says which special tokens are where (`bert_tf.tokenizers.layout`): in BERT's,
A is [CLS] ... [SEP] and B is ... [SEP].

Rows of the format xlnet hold several segments of equal length, each with its own two texts:
`segment_lengths` has two uint16 for each segment, and what a segment has beyond both is its
`at_end`. Rows 1, 3, ... of a shard are in reverse order, and every shard has an even number of rows.

Examples of the format text_pairs hold one source and target or several: the ids of all sources, each with the token
that ends it, then those of all targets. `segment_lengths` has two uint16 for each pair: tokens of its source and of its
target. A source has at most `sequence_length` tokens, a target at most `target_length`; all of an example together,
too.

The ids are bytes, not int64 lists, because one op decodes a whole batch of fixed-width bytes: some eighteen times
faster than parsing varints one example at a time.
"""

import numpy as np

SCHEMA_VERSION = 1

# What the TFRecord container adds to each record: its length, and checksums of the length and of the data
# (tensorflow/core/lib/io/record_writer.h).
RECORD_FRAME_BYTES = 16

TOKEN_IDS = "token_ids"
SEGMENT_LENGTHS = "segment_lengths"
PAIR_LABEL = "pair_label"

# As google-research/bert labels next sentence prediction: 0 = B follows A, 1 = B is random.
NEXT = 0
RANDOM_NEXT = 1
# As google-research/albert labels sentence order prediction.
IN_ORDER = 0
EXCHANGED = 1
NO_PAIR = 255

# The tasks on two segments -> their names in manifest.json, under "pair".
PAIR_TASKS = {"nsp": "next_sentence", "sop": "sentence_order", "none": "none"}

MANIFEST_NAME = "manifest.json"
TOKENIZER_FOLDER = "tokenizer"


def shard_name(place):
    """The file of the shard of a chunk: of the numbers of its unit and in it, see `corpus.chunks`."""
    return "shard-{:05}-{:03}.tfrecord".format(*place)


def packed_pair_task(packing):
    """The task, of `PAIR_TASKS`, that the pair labels of shards with these packing settings belong to."""
    return next(task for task, name in PAIR_TASKS.items() if name == packing["pair"])


def id_dtype(vocabulary_size):
    """The NumPy dtype of the stored ids: uint16 where it is wide enough, else int32."""
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<i4")
