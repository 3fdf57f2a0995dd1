"""What the authors of each family set around their SentencePiece models."""

from collections.abc import Sequence
from typing import Any

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.types import StrPath

MAX_EXTRA_IDS = 10_000  # T5 has 100
# `cleaned`: white space, quotes and accents are seen to before SentencePiece.
FAMILIES: dict[str, dict[str, Any]] = {
    "albert": {
        "class": "AlbertTokenizer", "cleaned": True, "lowercase": True, "extra_ids": 0, "layout": "bert",
        "roles": {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
        "special": (),
    },
    "xlnet": {
        "class": "XLNetTokenizer", "cleaned": True, "lowercase": False, "extra_ids": 0, "layout": "xlnet",
        "roles": {"pad": "<pad>", "unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"},
        "special": ("<s>", "</s>", "<eod>", "<eop>"),
    },
    "t5": {
        "class": "T5Tokenizer", "cleaned": False, "lowercase": False, "extra_ids": 100, "layout": "t5",
        "roles": {"pad": "<pad>", "unk": "<unk>", "sep": "</s>"}, "special": (),
    },
}  # fmt: skip


def check_family(family: Any) -> Any:
    """The settings of a family; ConfigError for an unknown one."""
    if family not in FAMILIES:
        raise ConfigError(f"unknown family '{family}'{nearest(family, FAMILIES)}")
    return FAMILIES[family]


def sentinels(count: int) -> list[str]:
    """T5's sentinels as they follow the pieces, the last first; ConfigError for a count below 0 or above 10,000."""
    if not 0 <= count <= MAX_EXTRA_IDS:
        raise ConfigError(f"extra_ids is {count}; it must be between 0 and {MAX_EXTRA_IDS:,}")
    return [f"<extra_id_{i}>" for i in reversed(range(count))]


def family_tokens(family: str, extra_ids: int | None = None) -> Any:
    """The special tokens that a family has by itself, its sentinels among them, as a set."""
    default = FAMILIES[family]
    count = default["extra_ids"] if extra_ids is None else extra_ids
    return {*default["roles"].values(), *default["special"], *sentinels(count)}


def family_of(pieces: Sequence[str], file: StrPath) -> str:
    """The family whose special tokens are among the pieces of a file; ConfigError if there is none."""
    for family, settings in FAMILIES.items():
        if set(pieces) >= set(settings["roles"].values()):
            return family
    raise ConfigError(f"{file}: its pieces are those of no known family ({', '.join(FAMILIES)})")
