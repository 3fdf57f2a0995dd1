"""Examples of shards in words: the text, and what the model sees of it. For `bert-tf inspect`.

Reader and corruption are those of training, with the same seed, epoch and example number, so these are the masks
of a run.
"""

import dataclasses

import numpy as np

from bert_tf import console
from bert_tf.errors import ConfigError
from bert_tf.table import Table
from tfrecords.corruption.corruption import Corruption, RowExplanation
from tfrecords.corruption.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.reading.reader import ShardReader, shards_tokenizer
from tfrecords.shards.manifest import Manifest

# What a pair label means, by task.
PAIR_LABELS = {
    "nsp": ("B follows A", "B is from elsewhere"),
    "sop": ("A and B are in order", "exchanged: in the document B comes before A"),
}
_INDENT = 11


@dataclasses.dataclass(frozen=True)
class ShardExample:
    """One example, decoded.

    Attributes:
        example_index, epoch: int.
        tokens: list of str, uncorrupted, without padding, in the order the model reads them.
        segments: list of int, which text each token belongs to: 0, 1, or 2 at the end; 3, 4, 5 in the
            second segment of a row of several, and so on.
        texts: list of str, the texts 0, 1, 3, 4, ... as the tokenizer decodes them.
        pair_label: what the label of a pair means, a str; None where there is no label.
        corruption: a `RowExplanation`.
        sequence_length: int.
    """

    example_index: int
    epoch: int
    tokens: list
    segments: list
    texts: list
    pair_label: str | None
    corruption: RowExplanation
    sequence_length: int

    def lines(self, width=100):
        """Yields lines of plain text, at most about `width` characters wide."""
        title = f"example {self.example_index}, epoch {self.epoch}"
        yield f"{title} {'-' * (width - len(title) - 1)}"
        yield from _field("length", f"{len(self.tokens)} of {self.sequence_length} tokens", width)
        if self.pair_label is not None:
            yield from _field("pair", self.pair_label, width)
        segments = list(dict.fromkeys(self.segments))
        for segment, text in zip(sorted(s for s in segments if s % 3 < 2), self.texts):
            yield from _field(f"text {self._name(segment)}", text, width)
        shown, predictions = list(self.tokens), self.corruption.predictions
        for p in predictions:
            shown[p.position] = f"{{{p.token}}}" if p.shown in (None, p.token) else f"{{{p.token} -> {p.shown}}}"
        for segment in segments:
            pieces = [token for token, s in zip(shown, self.segments) if s == segment]
            yield from _field(f"input {self._name(segment)}", pieces, width)
        yield from _field("predicted", self.corruption.rule, width)
        for name, note in self.corruption.notes.items():
            yield from _field(name, note, width)
        if predictions:
            rows = [(p.position, p.token, "-" if p.shown is None else p.shown, p.why) for p in predictions]
            yield from Table(["position", "token", "model sees", "why"], rows, left=(1, 2, 3)).text().split("\n")
        yield ""

    def _name(self, segment):
        """A, B or end; 1A, 1B, 1end, 2A, ... in rows of several segments."""
        number = segment // 3 + 1 if max(self.segments) > 2 else ""
        return f"{number}{('A', 'B', 'end')[segment % 3]}"


def explain(batch, tokenizer, corrupt, seed, pair_task="nsp", row_segments=1):
    """Yields a `ShardExample` for every example of a batch.

    Args:
        batch: dict of tensors as `ShardReader.dataset` yields without `corrupt`.
        tokenizer: the one of the shards.
        corrupt: a `Corruption`.
        seed: int, of the run.
        pair_task, row_segments: those of the shards' manifest.
    """
    features = corrupt(batch, seed)
    before = {name: value.numpy() for name, value in batch.items()}
    as_read = features.get("segment_ids", batch["segment_ids"]).numpy()
    width = before["token_ids"].shape[1]
    texts_before = 3 * (np.arange(width) // (width // row_segments))
    marks = (tokenizer.cls_id, tokenizer.sep_id)
    for row, explained in enumerate(corrupt.explain(batch, features, seed)):
        length = int(before["padding_mask"][row].sum())
        ids = before["token_ids"][row, :length].tolist()
        segments = _segments(ids, (before["segment_ids"][row] + texts_before)[:length].tolist(), tokenizer.layout)
        label = None
        if "pair_weights" in before and before["pair_weights"][row]:
            label = int(before["pair_labels"][row])
            label = f"label {label}: {PAIR_LABELS[pair_task][label]}"
        yield ShardExample(
            example_index=int(before["example_index"][row]),
            epoch=int(before["epoch"][row]),
            tokens=explained.tokens or [tokenizer.readable(i) for i in ids],
            # A row that is read in another order has its segments in that order.
            segments=segments if explained.tokens is None else (as_read[row] + texts_before)[:length].tolist(),
            texts=[
                tokenizer.decode([i for i, s in zip(ids, segments) if s == segment and i not in marks])
                for segment in sorted(set(segments))
                if segment % 3 < 2
            ],
            pair_label=label,
            corruption=explained,
            sequence_length=width,
        )


def _segments(ids, segment_ids, layout):
    """The segment of each token, also where a layout has one `segment_ids` for both texts, as RoBERTa."""
    border = [*layout.after_first, *layout.before_second]
    if layout.second_segment or len(border) < 2:
        return segment_ids
    for at in range(len(ids) - len(border)):
        if ids[at : at + len(border)] == border:
            second = at + len(layout.after_first)
            return [int(position >= second) for position in range(len(ids))]
    return segment_ids


class Uncorrupted(Corruption):
    """Explains batches that an objective uses as they are: their targets, where they have some."""

    def __call__(self, batch, seed):
        return batch

    def explain(self, batch, features, seed):
        """Yields a `RowExplanation` for each row."""
        for row, mask in enumerate(features["padding_mask"].numpy()):
            sources = features["token_ids"][row].numpy()[mask].tolist()
            if "target_ids" not in features:
                yield RowExplanation("the tokens as they are")
                continue
            targets = features["target_ids"][row].numpy()[features["target_weights"][row].numpy() > 0].tolist()
            rule = f"{len(targets)} tokens from an input of {len(sources)}"
            if "sequence_ids" in features:
                rule += f"; pairs in this row: {int(features['sequence_ids'][row].numpy().max())}"
            yield RowExplanation(rule, notes={"writes": " ".join(map(self.tokenizer.readable, targets))})


def inspect_shards(
    folder,
    config=MaskingConfig(),
    seed=0,
    epoch=0,
    examples=3,
    example_index=None,
    width=100,
    corruption=MaskedLMCorruption,
    verify=False,
):
    """Yields lines (str) that show examples of a folder of shards.

    Args:
        folder: holds the shards, their manifest and their tokenizer.
        config: the settings of `corruption`, such as a `MaskingConfig`.
        seed, epoch: of the run whose masks to show.
        examples: how many of the first examples to show.
        example_index: show this one instead.
        width: characters in a line.
        corruption: a subclass of `Corruption`; None for batches as they are, which those of
            the format text_pairs always are.
        verify: read every shard first, and compare it with its checksum.

    Raises:
        ConfigError: a number that is negative, or a setting that the corruption refuses.
        DataError: whatever `ShardReader` refuses, or no such example.

    Example:
        import pathlib
        from bert_tf.tokenizers import WordPieceTokenizer
        from tfrecords import MaskingConfig, inspect_shards, write_shards

        pathlib.Path("corpus.txt").write_text("the cat sat .\\nthe cat ran .\\n")
        write_shards("corpus.txt", "shards", WordPieceTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat .".split()))
        print("\\n".join(inspect_shards("shards", MaskingConfig(rate=0.3), examples=1)))
    """
    if examples < 1 or epoch < 0:
        raise ConfigError(f"examples {examples} must be at least 1 and epoch {epoch} not negative")
    manifest = Manifest.load(folder)  # first: without it, this is no folder of shards
    tokenizer = shards_tokenizer(folder)
    reader = ShardReader(folder, tokenizer)
    yield from _field("shards", str(folder), width)
    if verify:
        reader.verify()
        yield from _field("verified", f"{len(manifest.shards):,} shards have their checksums", width)
    yield from _field("holds", f"{reader.num_examples:,} examples of length {reader.sequence_length}", width)
    packing = manifest.packing | {"pair_task": manifest.pair_task}
    packing.pop("pair", None)  # its name in manifest.json
    yield from _field("packing", ", ".join(f"{key} {value}" for key, value in packing.items()), width)
    yield ""
    indices = range(min(examples, reader.num_examples)) if example_index is None else [example_index]
    as_they_are = corruption is None or manifest.packing["format"] == "text_pairs"
    corrupt = Uncorrupted(tokenizer, None) if as_they_are else corruption.of_shards(reader, tokenizer, config)
    for index in indices:
        batch = reader.examples([index], epoch)
        for explanation in explain(batch, tokenizer, corrupt, seed, manifest.pair_task, manifest.row_segments):
            yield from explanation.lines(width)


def _field(name, content, width):
    """`name` and the content beside it, wrapped; a list is wrapped between its items only."""
    items = console.split_words(content, width - _INDENT) if isinstance(content, str) else content
    for number, line in enumerate(console.wrap(items, width - _INDENT)):
        yield f"{name if number == 0 else '':<{_INDENT}}{line}".rstrip()
