"""Special tokens: their roles, and how each is recognised in text."""

from __future__ import annotations

import dataclasses

SPECIAL_ROLES = ("pad", "unk", "cls", "sep", "mask")
STANDARD_SPECIAL_TOKENS = {role: f"[{role.upper()}]" for role in SPECIAL_ROLES}
#: GPT-2 has one special token, which stands between documents, and no mask.
GPT2_ROLES = dict.fromkeys(("pad", "unk", "cls", "sep"), "<|endoftext|>")


@dataclasses.dataclass(frozen=True)
class SpecialToken:
    """A token that is one id wherever the text spells it, in exactly this case.

    Attributes:
        content: the token.
        lstrip, rstrip: whether white space to its left, to its right, becomes part of it.
        normalized: look for it after the text was normalized, and after the tokens without this.
        special: it stands for no text: it is never masked or drawn, and `decode` can leave it out.
            Without this it is text that happens to be one id, as ModernBERT's runs of spaces.

    Example:
        from bert_tf.tokenizers import SpecialToken, train_byte_level_bpe

        tokenizer = train_byte_level_bpe(["the law"] * 9, 300, special_tokens=[SpecialToken("<ent>", lstrip=True)])
        tokenizer.encode("the <ent>")

    Source: `AddedToken` of the `tokenizers` package.
    """

    content: str
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True


def as_special_token(token: str | SpecialToken) -> SpecialToken:
    """A SpecialToken of a SpecialToken or a str."""
    return token if isinstance(token, SpecialToken) else SpecialToken(token)
