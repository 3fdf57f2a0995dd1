"""Strings at which a text ends."""

from keras import ops

from bert_tf.tokenizers.ops.strings import contains_any, up_to_any


class StopStrings:
    """Finds the strings that end a text, while it is written and in the text as a whole.

    Args:
        strings: tuple of str; with none of them every method changes nothing.
        tokenizer: of the model.
        hidden_ids: the ids that no text shows: those that end it, and padding.
        continues: whether the texts continue prompts; see `Tokenizer.decode`.

    Call arguments:
        token_ids: int32 [B, N], the tokens that were written.
        lengths: int32 [B], how many of them there are.

    Returns:
        bool [B]: whether the text has one of the strings. `generate_tokens` takes it as `ends`.

    Example:
        stop = StopStrings(("film",), tokenizer, hidden_ids=(0, 3))
        stop(np.array([[5, 6, 8], [5, 6, 7]]), np.array([3, 3]))  # [True, False]
        stop.cut("a good film in paris")  # ('a good ', True)
    """

    def __init__(self, strings, tokenizer, hidden_ids, continues=False):
        self.strings, self.tokenizer, self.hidden_ids = tuple(strings), tokenizer, tuple(sorted({*hidden_ids}))
        self.continues = continues

    def __call__(self, token_ids, lengths):
        return contains_any(self._shown(token_ids, lengths), self.strings)

    def __bool__(self):
        return bool(self.strings)

    def texts(self, token_ids, lengths):
        """tf.string [B]: the texts up to where the first of the strings begins."""
        return up_to_any(self._shown(token_ids, lengths), self.strings)

    def cut(self, text):
        """A Python text up to where the first of the strings begins, and whether there is one."""
        begins = [begin for begin in map(text.find, self.strings) if begin >= 0]
        return (text[: min(begins)], True) if begins else (text, False)

    def _shown(self, token_ids, lengths):
        """The whole texts."""
        shown = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None] < ops.cast(lengths, "int32")[:, None]
        for hidden in self.hidden_ids:
            shown = ops.logical_and(shown, token_ids != hidden)
        return self.tokenizer.detokenize(token_ids, shown, continues=self.continues)


def unwritable(tokenizer, string):
    """What a tokenizer makes of a string between two words, if no text that it writes has the string; else None."""
    decoded = tokenizer.decode(tokenizer.encode(f"a {string} a"))
    return None if string in decoded or any(string in token for token in tokenizer.vocabulary) else decoded
