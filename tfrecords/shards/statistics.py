"""What a corpus looks like: counts, unknown-token rate, repeated sentences; and warnings."""

DUPLICATES_HIGH = 0.30
UNKNOWN_HIGH = 0.05
RANDOM_NEXT_HIGH = 0.75
LONE_HIGH = 0.50
FILL_LOW = 0.75
TRUNCATED_HIGH = 0.30
GIANT_DOCUMENT = 1000  # sentences


def summarize(counts):
    """`counts` (the sums of `corpus.tokens.token_counts` over chunks) with rates, ready for JSON.

    "duplicate_sentence_rate" is the fraction of sentences that repeat another one of the same shard.
    """
    return {
        **counts,
        "unknown_rate": _ratio(counts["unknown_tokens"], counts["tokens"]),
        "duplicate_sentence_rate": _ratio(counts["repeated_sentences"], counts["sentences"]),
        "tokens_per_sentence": _ratio(counts["tokens"], counts["sentences"]),
        "tokens_per_example": _ratio(counts["example_tokens"], counts["examples"]),
    }


def _ratio(part, whole):
    return round(part / whole, 6) if whole else 0.0


def report(counts, sequence_length, target_length=0):
    """`Manifest.counts` as lines for people; warnings come last and begin with "warning:".

    `target_length` is that of the manifest, for the format text_pairs.
    """
    fill = counts["tokens_per_example"] / (sequence_length + target_length)
    truncated = _ratio(counts["truncated_tokens"], counts["packed_tokens"])
    sizes = [_number_of(counts[f"{what}s"], what) for what in ("document", "sentence", "token")]
    lines = [
        f"{', '.join(sizes)} ({counts['tokens_per_sentence']:.1f} a sentence)",
        f"{_number_of(counts['examples'], 'example')} of {counts['tokens_per_example']:.1f} tokens on average "
        f"({_percent(fill)} of {sequence_length + target_length})",
        f"unknown tokens {100 * counts['unknown_rate']:.2f} %, sentences repeated within a shard "
        f"{100 * counts['duplicate_sentence_rate']:.1f} %, cut off by truncation {100 * truncated:.1f} % of tokens",
    ]
    if counts["replaced_characters"]:
        pieces = _number_of(counts["replaced_characters"], "piece")
        lines.append(f"replaced by U+FFFD: {pieces} of text that was not UTF-8")
    if "pairs" in counts:
        cut = {name: counts[f"truncated_{name}"] for name in ("sources", "targets")}
        shown = (f"{name} {number:,} ({100 * _ratio(number, counts['pairs']):.1f} %)" for name, number in cut.items())
        lines.append(f"{_number_of(counts['pairs'], 'pair')}; truncated: {', '.join(shown)}")
    elif counts.get("two_segments") or counts.get("lone_segments"):
        lines.append(_pair_line(counts))
    if fill < FILL_LOW:
        lines.append(
            f"examples are short: a batch of {1 / fill:.1f} times as many trains on as many tokens as one of full "
            "sequences"
        )
    return lines + _text_warnings(counts) + _packing_warnings(counts, truncated)


def _pair_line(counts):
    """How many pairs there are of each kind, and how many sequences of one segment."""

    def shown(name, number):
        return f"{number:,} {name} ({100 * _ratio(number, counts['examples']):.1f} %)"

    names = {"next": "next", "random_next": "random", "in_order": "in order", "exchanged": "exchanged"}
    kinds = [shown(name, counts[key]) for key, name in names.items() if counts[key]]
    line = "pairs: " + (", ".join(kinds) or shown("without a label", counts["two_segments"]))
    ends, fills = counts["random_next_ends"], counts["random_next_fills"]
    if ends or fills:
        drawn = counts["random_next"] - ends - fills
        line += f": {drawn:,} drawn, {ends:,} because no text follows A, {fills:,} because A has the full length"
    single = counts["lone_segments"]
    return f"{line}; {shown('with one segment', single)}" if single else line


def _packing_warnings(counts, truncated):
    if "pairs" in counts:
        if truncated <= TRUNCATED_HIGH:
            return []
        return [f"warning: {_percent(truncated)} of the tokens are cut off; raise sequence_length and target_length"]
    random_next = _ratio(counts["random_next"], counts["examples"])
    ends = _ratio(counts.get("random_next_ends", 0), counts["examples"])
    lone = _ratio(counts.get("lone_segments", 0), counts["examples"])
    sentences = f"{_ratio(counts['sentences'], counts['documents']):.1f} sentences on average"
    advice = "do blank lines separate documents, not sentences? Else use the format full_sentences"
    lines = []
    if random_next > RANDOM_NEXT_HIGH:
        lines.append(
            f"warning: {_percent(random_next)} of the pairs are random, {_percent(ends)} because no text follows A in "
            f"its document: the documents have {sentences}, and next sentence prediction learns little from such pairs: "
            f"{advice}"
        )
    if lone > LONE_HIGH:
        lines.append(
            f"warning: {_percent(lone)} of the examples have one segment, since their documents are short ({sentences}): "
            f"{advice}"
        )
    if truncated > TRUNCATED_HIGH:
        lines.append(
            f"warning: {_percent(truncated)} of the tokens are cut off, since sentences are long for the sequence "
            f"({counts['tokens_per_sentence']:.0f} tokens on average): use a longer sequence_length, or the format "
            "full_sentences, which keeps every token"
        )
    return lines


def _text_warnings(counts):
    lines = []
    per_document = counts["sentences"] / max(counts["documents"], 1)
    if per_document > GIANT_DOCUMENT:
        average = " on average" if counts["documents"] > 1 else ""
        lines.append(
            f"warning: the corpus is {_number_of(counts['documents'], 'document')} of {per_document:,.0f} "
            f"sentences{average}: in a .txt file only a blank line ends a document; where each line is one (a review, a "
            "post), set one_document_a_line=true, or unrelated lines count as text that follows each other"
        )
    if counts["duplicate_sentence_rate"] > DUPLICATES_HIGH:
        lines.append(
            f"warning: {_percent(counts['duplicate_sentence_rate'])} of the sentences repeat another one of the same "
            "shard; a model memorizes repeats, so its loss looks better than it is: remove duplicated documents or "
            "boilerplate"
        )
    if counts["unknown_rate"] > UNKNOWN_HIGH:
        lines.append(
            f"warning: {100 * counts['unknown_rate']:.1f} % of the tokens are unknown to the vocabulary; is it "
            "of this language and case? Train one on this corpus with `bert-tf vocab`"
        )
    return lines


def _percent(fraction):
    return f"{100 * fraction:.0f} %"


def _number_of(number, what):
    """A number with its noun: "1 document", "2 documents"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
