"""Words and markup that are added to the vocabulary of a tokenizer."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.special_tokens import SpecialToken

if TYPE_CHECKING:
    from bert_tf.tokenizers.tokenizer import Tokenizer


def add_tokens(tokenizer: Tokenizer, tokens: Iterable[str | SpecialToken], special: bool = False) -> Tokenizer:
    """A tokenizer with these tokens at the end of its vocabulary; a token that is there already keeps its id.

    A token is one id wherever a text spells it, inside words too, as `add_tokens` of transformers has it: "ai" is also
    found in "said". A word of letters and digits for WordPiece becomes one of its words instead, which stands alone or
    begins a longer word ("covid" in "covids" but not in "postcovid").

    The model needs rows for them: `add_tokens` of what `bert_tf.load` returns does both.

    Args:
        tokenizer: of any kind but "characters", whose words have no ids.
        tokens: each a str or a `SpecialToken`, which says how white space beside it is read.
        special: whether they stand for no text, as markup: then they are never masked or drawn, and `decode` can leave
            them out. Of each str; a `SpecialToken` says it itself.

    Raises:
        ConfigError: a tokenizer of characters.
        DataError: an empty token, or one text in place of a list of them.

    Example:
        from bert_tf.tokenizers import train_wordpiece

        tokenizer = train_wordpiece(["the law of the people"], 40, min_frequency=1).add_tokens(["covid"])
        tokenizer.add_tokens(["<e1>", "</e1>"], special=True).encode("<e1>Covid</e1>")  # three ids
    """
    if tokenizer.kind == "characters":
        raise ConfigError(
            "a tokenizer of the kind 'characters' reads any word as its characters: nothing is added to it"
        )
    if isinstance(tokens, str):
        raise DataError(f"the tokens are one text, {brief(tokens)}; give a list of tokens")
    # These two look for all tokens in the text as it is.
    normalizes = tokenizer.kind not in ("sentencepiece", "byte")
    special_tokens, words = [], []
    for token in tokens:
        if not isinstance(token, (str, SpecialToken)) or not str(getattr(token, "content", token)).strip():
            raise DataError(f"a token to add is {brief(token)}; give a text that is not empty")
        if isinstance(token, str):
            word = None if special else tokenizer.as_word(token)
            words += [] if word is None else [word]
            if word is not None:
                continue
            token = SpecialToken(token, normalized=not special, special=special)
        special_tokens.append(token if normalizes else dataclasses.replace(token, normalized=False))
    special_contents = {token.content for token in tokenizer.special_token_details}
    special_tokens = [token for token in special_tokens if token.content not in special_contents]
    return with_vocabulary(tokenizer, [*words, *(token.content for token in special_tokens)], special_tokens)


#: Arguments that a tokenizer keeps under another name.
_KEPT_AS = {"special_tokens": "special_token_details", "layout": "layout_name"}


def with_vocabulary(
    tokenizer: Tokenizer, new: Sequence[str], special_tokens: Sequence[str | SpecialToken], **arguments: Any
) -> Tokenizer:
    """A tokenizer like this one with the tokens `new` at the end of its vocabulary.

    Args:
        tokenizer: whose class keeps its arguments as attributes.
        new: those that are in the vocabulary already are left out.
        special_tokens: those of them that are looked for in texts.
        arguments: of its class, in place of those that it was made with.
    """
    vocabulary = set(tokenizer.vocabulary)
    arguments_of_new = {
        name: getattr(tokenizer, _KEPT_AS.get(name, name)) for name in inspect.signature(type(tokenizer)).parameters
    }
    arguments_of_new |= tokenizer.grown([token for token in dict.fromkeys(new) if token not in vocabulary])
    arguments_of_new["special_tokens"] = (*arguments_of_new["special_tokens"], *special_tokens)
    return type(tokenizer)(**arguments_of_new | arguments)
