"""Examples of shards in words: what the text was, what the model sees, and why.

What `bert-tf inspect` prints. Everything is computed by the reader and the corruption that training
uses, with the same seed, epoch and example number, so that it shows the very masks of a run.
"""

import dataclasses
from pathlib import Path

import numpy as np

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import load_tokenizer
from tfrecords.corruption.explanation import Explained, field, table
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.reading.reader import ShardReader
from tfrecords.shards.manifest import Manifest
from tfrecords.shards.schema import TOKENIZER_FOLDER

# What a pair label means, by task.
PAIR_LABELS = {
    "next_sentence": ("B follows A", "B is from elsewhere"),
    "sentence_order": ("A and B are in order", "exchanged: in the document B stands before A"),
}


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One example, decoded.

    Attributes:
        example_index, epoch: int.
        tokens: list of str, uncorrupted, without padding, in the order the model reads them.
        segments: list of int, which text each token belongs to: 0, 1, or 2 at the end; 3, 4, 5 in the
            second segment of a row of several, and so on.
        texts: list of str, the texts 0, 1, 3, 4, ... as the tokenizer decodes them.
        pair_label: int, or None where nothing is asked about a pair.
        pair_task: one of `schema.PAIR_TASKS`.
        corruption: what the corruption says of the row, an `Explained`.
        sequence_length: int.
    """

    example_index: int
    epoch: int
    tokens: list
    segments: list
    texts: list
    pair_label: int | None
    pair_task: str
    corruption: Explained
    sequence_length: int

    @property
    def predictions(self):
        return self.corruption.predictions

    def lines(self, width=100):
        """Yields the lines of a plain-text rendering, at most about `width` characters wide."""
        title = f"example {self.example_index}, epoch {self.epoch}"
        yield f"{title} {'-' * (width - len(title) - 1)}"
        yield from field("length", f"{len(self.tokens)} of {self.sequence_length} tokens", width)
        if self.pair_label is not None:
            meaning = PAIR_LABELS[self.pair_task][self.pair_label]
            yield from field("pair", f"label {self.pair_label}: {meaning}", width)
        texts = [segment for segment in dict.fromkeys(self.segments) if segment % 3 < 2]
        for segment, text in zip(sorted(texts), self.texts):
            yield from field(f"text {self._name(segment)}", text, width)
        shown = list(self.tokens)
        for prediction in self.predictions:
            hidden = prediction.shown is None or prediction.shown == prediction.token
            arrow = "" if hidden else f" -> {prediction.shown}"
            shown[prediction.position] = f"{{{prediction.token}{arrow}}}"
        for segment in dict.fromkeys(self.segments):
            pieces = [t for t, s in zip(shown, self.segments) if s == segment]
            yield from field(f"input {self._name(segment)}", pieces, width)
        yield from field("predicted", self.corruption.rule, width)
        for name, note in self.corruption.notes.items():
            yield from field(name, note, width)
        yield from table(self.predictions)
        yield ""

    def _name(self, segment):
        """A, B or end; 1A, 1B, 1end, 2A, ... in rows of several segments."""
        number = segment // 3 + 1 if max(self.segments) > 2 else ""
        return f"{number}{('A', 'B', 'end')[segment % 3]}"


def explain(batch, tokenizer, corrupt, seed, pair_task="next_sentence", row_segments=1):
    """Explains every example of a batch.

    Args:
        batch: dict of tensors as `ShardReader.dataset` yields without `corrupt`.
        tokenizer: the one of the shards.
        corrupt: a corruption that explains itself, see `explanation`.
        seed: int, of the run.
        pair_task, row_segments: those of the shards' manifest.

    Yields:
        `Explanation`, one for each example.
    """
    features = corrupt(batch, seed)
    before = {name: value.numpy() for name, value in batch.items()}
    as_read = features["segment_ids"].numpy()
    texts_before = 3 * (np.arange(batch["token_ids"].shape[1]) // (batch["token_ids"].shape[1] // row_segments))
    for row, explained in enumerate(corrupt.explain(batch, features, seed, tokenizer)):
        length = int(before["padding_mask"][row].sum())
        ids = before["token_ids"][row, :length].tolist()
        segments = _segments(ids, (before["segment_ids"][row] + texts_before)[:length].tolist(), tokenizer.layout)
        yield Explanation(
            example_index=int(before["example_index"][row]),
            epoch=int(before["epoch"][row]),
            tokens=explained.tokens or [tokenizer.id_to_token(i) for i in ids],
            # A row that is read in another order has its segments in that order.
            segments=segments if explained.tokens is None else (as_read[row] + texts_before)[:length].tolist(),
            texts=[
                tokenizer.decode(
                    [
                        i
                        for i, s in zip(ids, segments)
                        if s == segment and i not in (tokenizer.cls_id, tokenizer.sep_id)
                    ]
                )
                for segment in sorted(set(segments))
                if segment % 3 < 2
            ],
            pair_label=int(before["pair_labels"][row]) if _is_pair(before, row) else None,
            pair_task=pair_task,
            corruption=explained,
            sequence_length=batch["token_ids"].shape[1],
        )


def _is_pair(before, row):
    return "pair_weights" in before and bool(before["pair_weights"][row])


def _segments(ids, segment_ids, layout):
    """The segment of each token, also where a layout has one `segment_ids` for both texts, as RoBERTa."""
    border = [*layout.after_first, *layout.before_second]
    if layout.second_segment or len(border) < 2:
        return segment_ids
    for at in range(len(ids) - len(border)):
        if ids[at : at + len(border)] == border:
            behind = at + len(layout.after_first)
            return [int(place >= behind) for place in range(len(ids))]
    return segment_ids


def inspect_shards(
    folder,
    config=MaskingConfig(),
    seed=0,
    epoch=0,
    examples=3,
    example_index=None,
    width=100,
    corruption=MaskedLMCorruption,
):
    """Lines that show examples of a folder of shards.

    Args:
        folder: holds the shards, their manifest and their tokenizer.
        config: what `corruption` takes, e.g. the `MaskingConfig` whose masks to show.
        seed, epoch: of the run whose masks to show.
        examples: how many of the first examples to show.
        example_index: show this one instead.
        width: characters in a line.
        corruption: class of a corruption that explains itself, as `MaskedLMCorruption`.

    Yields:
        str.

    Raises:
        ConfigError: a number that is negative; what the corruption refuses.
        DataError: what `ShardReader` refuses, or no such example.
    """
    folder = Path(folder)
    if examples < 1 or epoch < 0:
        raise ConfigError(f"examples {examples} must be at least 1 and epoch {epoch} not negative")
    # The manifest first: its absence says that the folder is none of shards.
    manifest = Manifest.load(folder)
    tokenizer = load_tokenizer(folder / TOKENIZER_FOLDER)
    reader = ShardReader(folder, tokenizer)
    packing = ", ".join(f"{key} {value}" for key, value in manifest.packing.items())
    yield from field("shards", str(folder), width)
    yield from field(
        "holds", f"{reader.num_examples:,} examples of length {reader.sequence_length}", width
    )
    yield from field("packing", packing, width)
    yield ""
    if example_index is not None:
        indices = [example_index]
    else:
        indices = range(min(examples, reader.num_examples))
    corrupt = corruption.of_shards(reader, tokenizer, config)
    for index in indices:
        batch = reader.examples([index], epoch)
        for explanation in explain(batch, tokenizer, corrupt, seed, manifest.pair_task, manifest.row_segments):
            yield from explanation.lines(width)
