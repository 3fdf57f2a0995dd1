"""The settings that decide what shards hold."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range, check_fields, to_dict
from bert_tf.errors import ConfigError
from tfrecords.schema import PAIR_TASKS

PAIR_FORMATS = ("segment_pair", "sentence_pair")
SINGLE_FORMATS = ("full_sentences", "doc_sentences", "token_blocks")

# A shorter segment of xlnet has no room for two texts.
_SHORTEST_SEGMENT = 16

# The fraction of shorter examples, where the format has one.
_SHORT_SEQUENCES = {"segment_pair": 0.1, "electra": 0.05}


@dataclass(frozen=True)
class CorpusConfig:
    """The settings that decide which token ids a corpus becomes, and how they are cut into files.

    Attributes:
        sentences: "lines" (each line is one), "split" (by rules), or "auto"; see
            `corpus.sentences.document_sentences`.
        text_field: the field of .jsonl or the column of a table that holds the text; see
            `corpus.documents.CorpusReader`.
        errors: "strict" refuses bytes that are not UTF-8, "replace" replaces them by U+FFFD.
        shard_bytes: bytes of text of a shard. Larger plain files are cut into equal parts, smaller files are put together.
            A document of over a quarter of it may be cut. Random next sentences come from the same shard.
        one_document_a_line: in .txt every line is a document; else blank lines separate documents.
        keep_text: the tokens of a document are those of its whole text as it is: line ends, indentation and other
            white space are kept, and a .txt is one document. For causal LM, on code for example; needs a tokenizer
            that knows white space (byte-level BPE) and a format without segments.

    Raises:
        ConfigError: a value out of range.

    Example:
        from tfrecords import CorpusConfig

        CorpusConfig(sentences="lines", text_field="body")
    """

    sentences: Literal["auto", "lines", "split"] = "auto"
    text_field: str = "text"
    errors: Literal["strict", "replace"] = "strict"
    shard_bytes: Annotated[int, Range(at_least=1 << 12, at_most=1 << 28)] = 4 << 20
    one_document_a_line: bool = False
    keep_text: bool = False

    #: Whether the corpus is pairs of texts: `ShardsConfig` with its format text_pairs.
    text_pairs: ClassVar[bool] = False

    def __post_init__(self):
        check_fields(self)
        if self.keep_text and self.sentences != "auto":
            raise ConfigError(
                f"sentences={self.sentences} splits documents, and keep_text keeps them whole; remove one of the two"
            )

    @property
    def pieces(self):
        """What documents are cut into before they are tokenized: see `corpus.tokens.DocumentTokenizer`."""
        return "whole" if self.keep_text else self.sentences


@dataclass(frozen=True)
class ShardsConfig(CorpusConfig):
    """How a corpus is packed into shards, which are a function of these settings, tokenizer and corpus.

    Its settings are those of `CorpusConfig` and these.

    Attributes:
        sequence_length: the most tokens of an example, special tokens included.
        format: how sentences become examples (Liu et al. 2019, section 4.2):
            "segment_pair": two runs of sentences that fill the sequence together, as BERT;
            "sentence_pair": two natural sentences, mostly much shorter than the sequence;
            "full_sentences": contiguous sentences across documents, as RoBERTa;
            "doc_sentences": the same, never across documents, so that the last of each is shorter;
            "token_blocks": text cut where a sequence is full, also within sentences;
            "electra": one or two runs of sentences, as ELECTRA; see `packing.electra.electra_examples`;
            "xlnet": segments of running text with two texts after each, forwards and backwards, for the
            objective permutation_lm; see `packing.xlnet.xlnet_rows`.
        pair_task: the task that two segments get a label for:
            "nsp": next sentence prediction: does B follow A in the document, or is it from another one (BERT)?
            "sop": sentence order prediction: B follows A, or the two are exchanged (ALBERT);
            "none": no label; B always follows A.
            None for "nsp" where the format makes pairs, else "none".
        short_sequence_probability: the fraction of documents (segment_pair) or of examples (electra)
            packed to a random shorter length; None for the original's: 0.1 and 0.05.
        segments: xlnet only: how many segments a row of `sequence_length` tokens holds, between which
            there is memory; None for 2. Published: segments of 512 tokens, so 1024 for two.
        target_length: text_pairs only: the most tokens of a target in an example, the one that ends it included;
            None for `sequence_length`.
        pack_pairs: text_pairs only: whether an example holds several pairs, as many as fit; they do not see each
            other. None for true.
        duplicates: passes over the corpus, each with other draws. The original made 10, each with its own
            masks; here masks are drawn when shards are read, so 1 is enough.
        seed: of the draws of pairs and lengths.

    Raises:
        ConfigError: a value out of range, or one that the format does not use.

    Example:
        from tfrecords import ShardsConfig

        ShardsConfig(sequence_length=512, format="full_sentences")
        ShardsConfig(pair_task="sop")
    """

    # Segment lengths are stored as uint16.
    sequence_length: Annotated[int, Range(at_least=8, at_most=65535)] = 128
    format: Literal[
        "segment_pair",
        "sentence_pair",
        "electra",
        "xlnet",
        "full_sentences",
        "doc_sentences",
        "token_blocks",
        "text_pairs",
    ] = "segment_pair"
    pair_task: Literal["nsp", "sop", "none"] | None = None
    short_sequence_probability: Annotated[float | None, Range(at_least=0, at_most=1)] = None
    segments: Annotated[int | None, Range(at_least=2)] = None
    target_length: Annotated[int | None, Range(at_least=2, at_most=32767)] = None
    pack_pairs: bool | None = None
    duplicates: Annotated[int, Range(at_least=1, at_most=1000)] = 1
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        self._check_text_pairs()
        if self.keep_text and self.format not in SINGLE_FORMATS:
            raise ConfigError(
                f"keep_text keeps documents whole, and {self.format} needs their sentences; use one of the formats "
                f"{', '.join(SINGLE_FORMATS)}"
            )
        if self.format not in PAIR_FORMATS and self.pair_task not in (None, "none"):
            makes = "makes examples of one" if self.format in SINGLE_FORMATS else "has no label of them"
            raise ConfigError(
                f"pair_task: {self.pair_task} asks about two segments, and {self.format} {makes}; "
                "use segment_pair or sentence_pair, or pair_task: none"
            )
        if self.format != "xlnet" and self.segments is not None:
            raise ConfigError(
                f"segments: {self.format} makes rows of one segment; leave it out, or use the format xlnet"
            )
        segment = self.sequence_length / self.row_segments
        if self.format == "xlnet" and (segment % 2 or segment < _SHORTEST_SEGMENT):
            raise ConfigError(
                f"'sequence_length' is {self.sequence_length}; xlnet makes {self.row_segments} segments a row, each of an "
                f"even number of tokens and at least {_SHORTEST_SEGMENT}: {_SHORTEST_SEGMENT * self.row_segments}, "
                f"{(_SHORTEST_SEGMENT + 2) * self.row_segments}, ..., {512 * self.row_segments} as published"
            )
        if self.short_sequence_probability is not None and self.format not in _SHORT_SEQUENCES:
            raise ConfigError(
                f"short_sequence_probability: {self.format} makes no examples of a shorter length; leave it out, or "
                f"use one of the formats {', '.join(_SHORT_SEQUENCES)}"
            )
        if self.duplicates > 1 and not self.draws:
            raise ConfigError(
                f"duplicates > 1 would write the same examples again: {self.format} without a pair draws nothing at "
                "random and masks are drawn when read; leave duplicates at 1"
            )

    def _check_text_pairs(self):
        unused = ("sentences", "text_field", "one_document_a_line", "keep_text")
        reason = "text_pairs, whose files have two columns"
        if not self.text_pairs:
            unused, reason = ("target_length", "pack_pairs"), f"{self.format}, only to text_pairs"
        for name in unused:
            if getattr(self, name) != getattr(ShardsConfig, name):
                raise ConfigError(f"{name} does not apply to the format {reason}; remove {name}")

    @property
    def text_pairs(self):
        return self.format == "text_pairs"

    @property
    def pieces(self):
        return "pairs" if self.text_pairs else super().pieces

    @property
    def packing(self):
        """The settings as a dict, as the manifest records them: with None resolved."""
        resolved = {"pair_task": PAIR_TASKS[self.label_task], "short_sequence_probability": self.short_sequences}
        packing = {"pair" if key == "pair_task" else key: value for key, value in (to_dict(self) | resolved).items()}
        # Settings of one format only, so that shards from before them are the same.
        for name in ("segments", "target_length", "pack_pairs"):
            del packing[name]
        if self.format == "xlnet":
            packing["segments"] = self.row_segments
        if self.text_pairs:
            packing["target_length"] = self.target_length or self.sequence_length
            packing["pack_pairs"] = self.pack_pairs is not False
        return packing

    @property
    def row_segments(self):
        """`segments` with None resolved."""
        if self.format != "xlnet":
            return 1
        return 2 if self.segments is None else self.segments

    @property
    def short_sequences(self):
        """`short_sequence_probability` with None resolved."""
        if self.short_sequence_probability is not None:
            return self.short_sequence_probability
        # Formats without short examples record what their shards always recorded.
        return _SHORT_SEQUENCES.get(self.format, 0.1)

    @property
    def label_task(self):
        """`pair_task` with None resolved: one of `schema.PAIR_TASKS`."""
        if self.pair_task is not None:
            return self.pair_task
        return "nsp" if self.format in PAIR_FORMATS else "none"

    @property
    def draws(self):
        """Whether packing draws at random, so that passes differ."""
        return self.format in (*_SHORT_SEQUENCES, "xlnet") or self.label_task != "none"
