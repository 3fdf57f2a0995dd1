"""Where a family puts its special tokens around one text or two, and which segment each has."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.tokenizers.added_tokens import with_vocabulary

if TYPE_CHECKING:
    from bert_tf.tokenizers.tokenizer import Tokenizer

#: GPT-1's three tokens of fine-tuning. The first has no role of its own: layouts know it by its name.
START_TOKEN, DELIMITER_TOKEN, CLASSIFY_TOKEN = "_start_", "_delimiter_", "_classify_"
PADDING_TOKEN = "<|pad|>"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The special tokens of a row: before_first A after_first (before_second B after_second) at_end.

    Attributes:
        before_first, after_first, before_second, after_second, at_end: tuples of int, the ids put there; those of the
            second text are left out where there is no second text.
        second_segment: `segment_ids` of the second text and its special tokens; the first text's is 0.
        end_segment: `segment_ids` of `at_end`.
        odd_to_longer: of an odd number of tokens that a pair has room for, which text keeps one more where both are cut:
            the longer one, of two of the same length the second, as in the `tokenizers` package from 0.9 on. False: the
            first, as in google-research/bert.

    Example:
        from bert_tf.tokenizers import Layout

        Layout(before_first=(101,), after_first=(102,), after_second=(102,)).special_tokens_per_pair  # 3
    """

    before_first: tuple[int, ...] = ()
    after_first: tuple[int, ...] = ()
    before_second: tuple[int, ...] = ()
    after_second: tuple[int, ...] = ()
    at_end: tuple[int, ...] = ()
    second_segment: int = 1
    end_segment: int = 2
    odd_to_longer: bool = False

    @property
    def special_tokens_per_sequence(self) -> int:
        """How many special tokens a single text gets."""
        return len(self.before_first) + len(self.after_first) + len(self.at_end)

    @property
    def special_tokens_per_pair(self) -> int:
        """How many special tokens two texts get."""
        return self.special_tokens_per_sequence + len(self.before_second) + len(self.after_second)


# Name -> function from (cls_id, sep_id, start_id) to the Layout. Sources: convert_examples_to_features of
# google-research/bert (ALBERT's and ELECTRA's are the same) and of zihangdai/xlnet; fairseq's
# RoBERTa hub_interface.encode, which has one segment only; T5 ends each text with </s>; openai/finetune-transformer-lm
# train.py, transform_roc, and figure 1 of Radford et al. 2018; allenai/bilm-tf marks the begin and the end of each text.
LAYOUTS = {
    "bert": lambda cls, sep, start: Layout((cls,), (sep,), (), (sep,)),
    "roberta": lambda cls, sep, start: Layout((cls,), (sep,), (sep,), (sep,), second_segment=0),
    "xlnet": lambda cls, sep, start: Layout((), (sep,), (), (sep,), (cls,)),
    "t5": lambda cls, sep, start: Layout((), (sep,), (), (sep,)),
    "gpt1": lambda cls, sep, start: Layout((start,), (), (sep,), (), (cls,)),
    "elmo": lambda cls, sep, start: Layout((cls,), (sep,), (cls,), (sep,)),
    "none": lambda cls, sep, start: Layout(),
}
#: The layouts whose models tell the texts of a pair apart by their segments.
WITH_SEGMENTS = ("bert", "xlnet")


def build_layout(name: str, cls_id: int | None, sep_id: int | None, start_id: int | None = None) -> Layout:
    """The Layout of that name: "bert", "roberta", "xlnet", "t5", "gpt1", "elmo", or "none" (no special tokens).

    Raises:
        ConfigError: another name, or a layout that needs a special token that is None.
    """
    if name not in LAYOUTS:
        raise ConfigError(f"unknown layout '{name}'{nearest(name, LAYOUTS)}")
    layout = LAYOUTS[name](cls_id, sep_id, start_id)
    if name == "gpt1" and start_id is None:
        raise ConfigError(f"layout 'gpt1' needs the token '{START_TOKEN}' in the vocabulary")
    separators = (*layout.after_first, *layout.before_second)
    for role, tokens in (("cls", (*layout.before_first, *layout.at_end)), ("sep", separators)):
        if None in tokens:
            raise ConfigError(f"layout '{name}' needs a token for the role '{role}'")
    return layout


def with_layout(tokenizer: Tokenizer, name: str) -> Tokenizer:
    """The tokenizer with another layout, as fine-tuning of a GPT needs it; itself if it has that layout.

    With "gpt1" the vocabulary grows by GPT-1's `_start_`, `_delimiter_` (role "sep") and `_classify_` (role "cls").

    Args:
        tokenizer: a `BPETokenizer` or `ByteLevelBPETokenizer`.
        name: of the layout; see `build_layout`.

    Raises:
        ConfigError: a tokenizer of another kind, or without a token that the layout needs.

    Example:
        from bert_tf.tokenizers import train_byte_level_bpe
        from bert_tf.tokenizers.layout import with_layout

        tokenizer = with_layout(train_byte_level_bpe(["the law"] * 9, 300), "gpt1")
        tokenizer.vocabulary[-3:]  # ['_start_', '_delimiter_', '_classify_']
    """
    if name == tokenizer.layout_name:
        return tokenizer
    if tokenizer.kind not in _CHANGING:
        raise ConfigError(
            f"the tokenizer is of the kind '{tokenizer.kind}' and has the layout '{tokenizer.layout_name}'; only "
            f"{' and '.join(_CHANGING)} tokenizers can get another one, here '{name}'"
        )
    roles, added = tokenizer.role_tokens, tuple[str, ...]()
    if name == "gpt1":
        roles = roles | {"sep": DELIMITER_TOKEN, "cls": CLASSIFY_TOKEN}
        added = (START_TOKEN, DELIMITER_TOKEN, CLASSIFY_TOKEN)
    return with_vocabulary(tokenizer, added, added, layout=name, role_tokens=roles)


def with_padding_token(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer with a token for padding alone, where its texts end with the one that it pads with, as GPT-2's do.

    The vocabulary grows by `<|pad|>`. Other tokenizers are returned as they are.
    """
    layout = tokenizer.layout
    if tokenizer.kind not in _CHANGING or tokenizer.pad_id not in (*layout.after_first, *layout.at_end):
        return tokenizer
    roles = tokenizer.role_tokens | {"pad": PADDING_TOKEN}
    return with_vocabulary(tokenizer, [PADDING_TOKEN], [PADDING_TOKEN], role_tokens=roles)


#: The kinds whose layout can change.
_CHANGING = ("bpe", "byte_level_bpe")


def with_separators(tokenizer: Tokenizer, layout: str | None) -> Tokenizer:
    """The tokenizer with the layout of that name; None for its own.

    One whose own layout has no special tokens, as GPT's, gets "t5" if it has a separator, else "gpt1".
    """
    if layout is None and tokenizer.layout_name == "none":
        layout = "gpt1" if tokenizer.sep_id is None else "t5"
    return with_layout(tokenizer, layout) if layout else tokenizer
