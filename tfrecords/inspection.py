"""Examples of shards in words: what the text was, what the model sees, and why.

What `bert-tf inspect` prints. Everything is computed by the reader and the corruption that training
uses, with the same seed, epoch and example number, so that it shows the very masks of a run.
"""

import dataclasses
import textwrap
from pathlib import Path

from bert_tf.errors import ConfigError
from bert_tf.tokenizers import load_tokenizer
from tfrecords import corruption
from tfrecords.manifest import Manifest
from tfrecords.masking import MaskedLMCorruption, MaskingConfig
from tfrecords.reader import ShardReader
from tfrecords.schema import NEXT, TOKENIZER_FOLDER

MASKED, RANDOM, KEPT = "[MASK]", "random", "kept"


@dataclasses.dataclass(frozen=True)
class Prediction:
    """One predicted position.

    Attributes:
        position: int, in the sequence.
        token: str, what stood there and must be predicted.
        shown: str, what the model sees in its place.
        action: "[MASK]", "random" or "kept".
        draw: float in [0, 1), the random number that decided the action.
        word: tuple of str, the pieces of the word it was chosen with; None without whole-word
            masking.
    """

    position: int
    token: str
    shown: str
    action: str
    draw: float
    word: tuple | None


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One example, decoded.

    Attributes:
        example_index, epoch: int.
        tokens: list of str, uncorrupted, without padding.
        segment_ids: list of int, one for each token.
        texts: list of str, each segment's text as the tokenizer decodes it.
        pair_label: int, or None for a single segment.
        eligible: how many tokens may be predicted (int).
        budget: how many shall be (int).
        predictions: list of `Prediction`, by position.
        config: the `MaskingConfig`.
        sequence_length: int.
    """

    example_index: int
    epoch: int
    tokens: list
    segment_ids: list
    texts: list
    pair_label: int | None
    eligible: int
    budget: int
    predictions: list
    config: MaskingConfig
    sequence_length: int

    def lines(self, width=100):
        """Yields the lines of a plain-text rendering, at most about `width` characters wide."""
        title = f"example {self.example_index}, epoch {self.epoch}"
        yield f"{title} {'-' * (width - len(title) - 1)}"
        yield from _field("length", f"{len(self.tokens)} of {self.sequence_length} tokens", width)
        if self.pair_label is not None:
            follows = "B follows A" if self.pair_label == NEXT else "B is from elsewhere"
            yield from _field("pair", f"label {self.pair_label}: {follows}", width)
        for name, text in zip("AB", self.texts):
            yield from _field(f"text {name}", text, width)
        shown = list(self.tokens)
        for prediction in self.predictions:
            arrow = "" if prediction.action == KEPT else f" -> {prediction.shown}"
            shown[prediction.position] = f"{{{prediction.token}{arrow}}}"
        for segment, name in enumerate("AB"[: len(self.texts)]):
            pieces = [t for t, s in zip(shown, self.segment_ids) if s == segment]
            yield from _field(f"input {name}", pieces, width)
        yield from _field("predicted", self._rule(), width)
        yield from self._table()
        yield ""

    def _rule(self):
        rate = 100 * self.config.rate
        what = "whole words of together at most" if self.config.unit != "token" else "exactly"
        rule = (
            f"{len(self.predictions)} tokens: {what} {self.budget}, which is {rate:g} % of the "
            f"{self.eligible} that are not special"
        )
        if self.config.predictions(self.sequence_length) == self.budget < round(
            self.config.rate * self.eligible
        ):
            rule += f", cut to max_predictions {self.budget}"
        return rule

    def _table(self):
        if not self.predictions:
            return
        config = self.config
        bounds = (config.mask_probability, config.mask_probability + config.random_probability)
        rows = [("position", "token", "model sees", "why")]
        for prediction in self.predictions:
            why = {
                MASKED: f"masked: drew {prediction.draw:.3f}, below {bounds[0]:g}",
                RANDOM: f"random token: drew {prediction.draw:.3f}, {bounds[0]:g} to {bounds[1]:g}",
                KEPT: f"kept: drew {prediction.draw:.3f}, {bounds[1]:g} or above",
            }[prediction.action]
            if prediction.word is not None and len(prediction.word) > 1:
                why += f"; chosen with its word: {' '.join(prediction.word)}"
            rows.append((str(prediction.position), prediction.token, prediction.shown, why))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for position, token, shown, why in rows:
            yield (
                f"  {position:>{widths[0]}}  {token:<{widths[1]}}  {shown:<{widths[2]}}  {why}"
            )


def explain(batch, tokenizer, corrupt, seed):
    """Explains every example of a batch.

    Args:
        batch: dict of tensors as `ShardReader.dataset` yields without `corrupt`.
        tokenizer: the one of the shards.
        corrupt: a `MaskedLMCorruption`.
        seed: int, of the run.

    Yields:
        `Explanation`, one for each example.
    """
    keys = corruption.example_keys(seed, batch["epoch"], batch["example_index"])
    features = corrupt(batch, seed)
    positions = features["mask_positions"]
    draws = corruption.random_bits(keys, corruption.ACTION_STREAM, positions).numpy() / 2**32
    budgets = corrupt.config.budgets(batch["token_ids"].shape[1])
    before = {name: value.numpy() for name, value in batch.items()}
    after = {name: value.numpy() for name, value in features.items()}
    bounds = corrupt.thresholds
    for row in range(len(before["token_ids"])):
        length = int(before["padding_mask"][row].sum())
        ids = before["token_ids"][row, :length].tolist()
        segments = before["segment_ids"][row, :length].tolist()
        words = _words(ids, tokenizer) if corrupt.config.unit != "token" else {}
        predictions = []
        for rank in range(int(after["mask_weights"][row].sum())):
            position = int(after["mask_positions"][row, rank])
            draw = float(draws[row, rank])
            below = [draw * 2**32 < bound for bound in bounds]
            word = words.get(position)
            predictions.append(
                Prediction(
                    position=position,
                    token=tokenizer.id_to_token(int(after["mask_ids"][row, rank])),
                    shown=tokenizer.id_to_token(int(after["token_ids"][row, position])),
                    action=MASKED if below[0] else RANDOM if below[1] else KEPT,
                    draw=draw,
                    word=word and tuple(tokenizer.id_to_token(i) for i in word),
                )
            )
        eligible = sum(i not in tokenizer.special_ids for i in ids)
        yield Explanation(
            example_index=int(before["example_index"][row]),
            epoch=int(before["epoch"][row]),
            tokens=[tokenizer.id_to_token(i) for i in ids],
            segment_ids=segments,
            texts=[
                tokenizer.decode(
                    [
                        i
                        for i, s in zip(ids, segments)
                        if s == segment and i not in (tokenizer.cls_id, tokenizer.sep_id)
                    ]
                )
                for segment in range(max(segments, default=0) + 1)
            ],
            pair_label=int(before["pair_labels"][row]) if before["pair_weights"][row] else None,
            eligible=eligible,
            budget=int(budgets[eligible]),
            predictions=predictions,
            config=corrupt.config,
            sequence_length=batch["token_ids"].shape[1],
        )


def inspect_shards(
    folder, config=MaskingConfig(), seed=0, epoch=0, examples=3, example_index=None, width=100
):
    """Lines that show examples of a folder of shards.

    Args:
        folder: holds the shards, their manifest and their tokenizer.
        config: the `MaskingConfig` whose masks to show.
        seed, epoch: of the run whose masks to show.
        examples: how many of the first examples to show.
        example_index: show this one instead.
        width: characters in a line.

    Yields:
        str.

    Raises:
        ConfigError: a number that is negative.
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
    yield from _field("shards", str(folder), width)
    yield from _field(
        "holds", f"{reader.num_examples:,} examples of length {reader.sequence_length}", width
    )
    yield from _field("packing", packing, width)
    yield ""
    if example_index is not None:
        indices = [example_index]
    else:
        indices = range(min(examples, reader.num_examples))
    corrupt = MaskedLMCorruption(tokenizer, config)
    for index in indices:
        batch = reader.examples([index], epoch)
        for explanation in explain(batch, tokenizer, corrupt, seed):
            yield from explanation.lines(width)


def _words(ids, tokenizer):
    """Position -> ids of the word that it is a piece of; special tokens are in none."""
    words, current = {}, None
    for position, token in enumerate(ids):
        if token in tokenizer.special_ids:
            current = None
            continue
        if current is None or not tokenizer.is_continuation[token]:
            current = []
        current.append(token)
        words[position] = current
    return words


def _field(name, content, width):
    """`name` and the content beside it, wrapped; a list is wrapped between its items only."""
    indent = 11
    if isinstance(content, str):
        wrapped = textwrap.wrap(content, width - indent) or [""]
    else:
        wrapped, line = [], ""
        for item in content:
            if line and len(line) + 1 + len(item) > width - indent:
                wrapped.append(line)
                line = item
            else:
                line = f"{line} {item}" if line else item
        wrapped.append(line)
    for number, line in enumerate(wrapped):
        yield f"{name if number == 0 else '':<{indent}}{line}".rstrip()
