"""What a corpus looks like: counts, unknown-token rate, duplicate sentences, in bounded memory."""

import numpy as np

# Distinct sentences remembered; up to here the duplicate rate is exact, beyond it a sample whose
# standard error is well below one per cent.
SAMPLE_SIZE = 1 << 15

_FULL = 1 << 64
DUPLICATES_HIGH = 0.30
UNKNOWN_HIGH = 0.05
RANDOM_NEXT_HIGH = 0.90
LONE_HIGH = 0.50
FILL_LOW = 0.75


def sentence_hashes(token_ids, row_splits):
    """A 64-bit hash of each row of ids; rows are equal if and (all but surely) only if hashes are.

    Args:
        token_ids: integer [T].
        row_splits: int [N + 1], increasing strictly: no row is empty.

    Returns:
        uint64 [N].
    """
    if len(row_splits) < 2:
        return np.zeros(0, np.uint64)
    lengths = np.diff(row_splits)
    position = np.arange(len(token_ids), dtype=np.uint64) - np.repeat(row_splits[:-1], lengths).astype(np.uint64)
    mixed = _mix(token_ids.astype(np.uint64) + (position << np.uint64(32)))
    # A sum of well mixed (id, position) keys depends on every id and on the order.
    return _mix(np.add.reduceat(mixed, row_splits[:-1]))


def _mix(x):
    """The finalizer of splitmix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class DuplicateSample:
    """Counts of the sentences whose hash lies below a threshold; it halves when too many are kept.

    Whether a sentence is in the sample depends on its hash alone, so every occurrence of a sampled
    sentence is counted, and merging parts in any order gives the sample of the whole: the
    threshold ends at the largest power of a half that keeps at most `size` distinct hashes.

    Attributes:
        threshold: hashes below it are kept, 2^64 = all.
        hashes, counts: uint64 and int64 [K], sorted by hash.
    """

    def __init__(self, hashes=(), threshold=_FULL, size=SAMPLE_SIZE, counts=None):
        self.size, self.threshold = size, threshold
        hashes = np.asarray(hashes, np.uint64)
        counts = np.ones(len(hashes), np.int64) if counts is None else np.asarray(counts, np.int64)
        self.hashes, inverse = np.unique(hashes, return_inverse=True)
        self.counts = np.bincount(inverse, counts, minlength=len(self.hashes)).astype(np.int64)
        self._shrink()

    def merge(self, other):
        """The sample of both parts together."""
        return DuplicateSample(
            np.concatenate([self.hashes, other.hashes]),
            min(self.threshold, other.threshold),
            self.size,
            np.concatenate([self.counts, other.counts]),
        )

    def _shrink(self):
        while True:
            keep = len(self.hashes)
            if self.threshold < _FULL:
                keep = int(np.searchsorted(self.hashes, np.uint64(self.threshold)))
            self.hashes, self.counts = self.hashes[:keep], self.counts[:keep]
            if keep <= self.size:
                return
            self.threshold //= 2

    @property
    def exact(self):
        return self.threshold == _FULL

    @property
    def rate(self):
        """The share of sentences that had occurred before; 0.0 where nothing was seen."""
        total = int(self.counts.sum())
        return 1.0 - len(self.hashes) / total if total else 0.0


def summarize_text(counts, duplicates):
    """The totals of a tokenized corpus plus the rates a reader of its manifest wants.

    Args:
        counts: dict name -> int, the sums over chunks (see `tokens.token_counts`).
        duplicates: the merged `DuplicateSample`.

    Returns:
        A dict ready for JSON: `counts` plus "unknown_rate", "duplicate_sentence_rate",
        "duplicate_rate_is_exact", "tokens_per_sentence".
    """
    return {
        **counts,
        "unknown_rate": _ratio(counts["unknown_tokens"], counts["tokens"]),
        "duplicate_sentence_rate": round(duplicates.rate, 6),
        "duplicate_rate_is_exact": duplicates.exact,
        "tokens_per_sentence": _ratio(counts["tokens"], counts["sentences"]),
    }


def summarize(counts, duplicates):
    """`summarize_text` of the totals of all shards, and "tokens_per_example"."""
    filling = {"tokens_per_example": _ratio(counts["example_tokens"], counts["examples"])}
    return summarize_text(counts, duplicates) | filling


def _ratio(part, whole):
    return round(part / whole, 6) if whole else 0.0


def report_text(counts):
    """`TokenizedCorpus.counts` as lines for people; warnings last, each beginning with "warning:"."""
    return _text_lines(counts) + _text_warnings(counts)


def report(counts, sequence_length):
    """`Manifest.counts` as lines for people; warnings last, each beginning with "warning:"."""
    fill = counts["tokens_per_example"] / sequence_length
    lines = _text_lines(counts)
    lines.insert(
        1,
        f"{counts['examples']:,} examples of {counts['tokens_per_example']:.1f} tokens on average "
        f"({100 * fill:.0f} % of {sequence_length})",
    )
    lines[2] += f", cut off by truncation {100 * _ratio(counts['truncated_tokens'], counts['packed_tokens']):.1f} % of tokens"
    if fill < FILL_LOW:
        lines.append(
            f"examples are short: a batch of {1 / fill:.1f} times as many trains on as many tokens as one of full "
            "sequences"
        )
    lines += _text_warnings(counts)
    if counts["random_next"] > RANDOM_NEXT_HIGH * counts["examples"]:
        lines.append(
            f"warning: {100 * _ratio(counts['random_next'], counts['examples']):.0f} % of the pairs are random, since "
            "most documents hold a single sentence; next sentence prediction learns nothing from them: do blank "
            "lines part documents, not sentences? Else use the format full_sentences"
        )
    lone = _ratio(counts.get("lone_segments", 0), counts["examples"])
    if lone > LONE_HIGH:
        lines.append(
            f"warning: {100 * lone:.0f} % of the examples are a lone sentence, with none of its document to pair it "
            "with: do blank lines part documents, not sentences? Else use the format full_sentences"
        )
    return lines


def _text_lines(counts):
    about = "" if counts["duplicate_rate_is_exact"] else "about "
    lines = [
        f"{counts['documents']:,} documents, {counts['sentences']:,} sentences, {counts['tokens']:,} tokens "
        f"({counts['tokens_per_sentence']:.1f} a sentence)",
        f"unknown tokens {100 * counts['unknown_rate']:.2f} %, duplicate sentences "
        f"{about}{100 * counts['duplicate_sentence_rate']:.1f} %",
    ]
    if counts["replaced_characters"]:
        lines.append(f"{counts['replaced_characters']:,} pieces that were not UTF-8 were replaced by U+FFFD")
    return lines


def _text_warnings(counts):
    lines = []
    if counts["duplicate_sentence_rate"] > DUPLICATES_HIGH:
        lines.append(
            f"warning: {100 * counts['duplicate_sentence_rate']:.0f} % of the sentences are repeats; a model "
            "learns repeats by heart and its loss looks better than it is: remove duplicated documents or boilerplate"
        )
    if counts["unknown_rate"] > UNKNOWN_HIGH:
        lines.append(
            f"warning: {100 * counts['unknown_rate']:.1f} % of the tokens are unknown to the vocabulary; is it "
            "of this language and case? Train one on this corpus with `bert-tf vocab`"
        )
    return lines
