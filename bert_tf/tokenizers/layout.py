"""Where a family puts its special tokens around one text or two, and which segment each has."""

import dataclasses

from bert_tf.config import nearest
from bert_tf.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Layout:
    """The special tokens of a row: before_first A after_first (before_second B after_second) at_end.

    Attributes:
        before_first, after_first, before_second, after_second, at_end: tuples of int, the ids put there; those of the
            second text are left out where there is no second text.
        second_segment: `segment_ids` of the second text and its special tokens; the first text's is 0.
        end_segment: `segment_ids` of `at_end`.

    Example:
        from bert_tf.tokenizers import Layout

        Layout(before_first=(101,), after_first=(102,), after_second=(102,)).special_tokens_per_pair  # 3
    """

    before_first: tuple = ()
    after_first: tuple = ()
    before_second: tuple = ()
    after_second: tuple = ()
    at_end: tuple = ()
    second_segment: int = 1
    end_segment: int = 2

    @property
    def special_tokens_per_sequence(self):
        """How many special tokens a single text gets."""
        return len(self.before_first) + len(self.after_first) + len(self.at_end)

    @property
    def special_tokens_per_pair(self):
        """How many special tokens two texts get."""
        return self.special_tokens_per_sequence + len(self.before_second) + len(self.after_second)


# Name -> function from (cls_id, sep_id) to the Layout. Sources: convert_examples_to_features of
# google-research/bert (ALBERT's and ELECTRA's are the same) and of zihangdai/xlnet; fairseq's
# RoBERTa hub_interface.encode, which has one segment only; T5 ends each text with </s>.
LAYOUTS = {
    "bert": lambda cls, sep: Layout((cls,), (sep,), (), (sep,)),
    "roberta": lambda cls, sep: Layout((cls,), (sep,), (sep,), (sep,), second_segment=0),
    "xlnet": lambda cls, sep: Layout((), (sep,), (), (sep,), (cls,)),
    "t5": lambda cls, sep: Layout((), (sep,), (), (sep,)),
    "none": lambda cls, sep: Layout(),
}


def build_layout(name, cls_id, sep_id):
    """The Layout of that name: "bert", "roberta", "xlnet", "t5", or "none" (no special tokens).

    Raises:
        ConfigError: another name, or a layout that needs a special token that is None.
    """
    if name not in LAYOUTS:
        raise ConfigError(f"unknown layout '{name}'{nearest(name, LAYOUTS)}")
    layout = LAYOUTS[name](cls_id, sep_id)
    for role, tokens in (("cls", (*layout.before_first, *layout.at_end)), ("sep", layout.after_first)):
        if None in tokens:
            raise ConfigError(f"layout '{name}' needs a token for the role '{role}'")
    return layout
