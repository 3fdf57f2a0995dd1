"""Strings at which a text ends."""

import base64
import tempfile
from collections.abc import Iterable
from pathlib import Path

import keras
from keras import ops

from bert_tf.backend import on_host
from bert_tf.tokenizers import load_tokenizer
from bert_tf.tokenizers.ops.strings import contains_any, up_to_any
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Settings, Tensor


@keras.saving.register_keras_serializable("bert_tf")
class StopStrings:
    """Finds the strings that end a text, in the graph while the text is generated and in finished texts.

    Args:
        strings: tuple of str; with an empty tuple no text ends early.
        tokenizer: of the model.
        not_shown_ids: the ids that are left out of texts: those that end a text, and padding.
        continues: whether the texts continue prompts; see `Tokenizer.decode`.

    Call arguments:
        token_ids: int32 [B, N], the tokens that were written.
        lengths: int32 [B], how many of them there are.

    Returns:
        bool [B]: whether the text has one of the strings. `generate_tokens` takes it as `ends`.

    Example:
        stop = StopStrings(("film",), tokenizer, not_shown_ids=(0, 3))
        stop(np.array([[5, 6, 8], [5, 6, 7]]), np.array([3, 3]))  # [True, False]
        stop.cut("a good film in paris")  # ('a good ', True)
    """

    def __init__(
        self, strings: Iterable[str], tokenizer: Tokenizer, not_shown_ids: Iterable[int], continues: bool = False
    ) -> None:
        self.strings, self.tokenizer, self.not_shown_ids = tuple(strings), tokenizer, tuple(sorted({*not_shown_ids}))
        self.continues = continues

    def __call__(self, token_ids: Tensor, lengths: Tensor) -> Tensor:
        shown = self._is_shown(token_ids, lengths)
        return on_host(self._contain_any, ops.shape(token_ids)[0], token_ids, shown)

    def _contain_any(self, token_ids, shown):
        return contains_any(self._detokenized(token_ids, shown), self.strings)

    def __bool__(self) -> bool:
        return bool(self.strings)

    def get_config(self) -> Settings:
        """The arguments, with the files of the tokenizer in base64."""
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer.save(folder)
            files = {path.name: base64.b64encode(path.read_bytes()).decode() for path in sorted(Path(folder).iterdir())}
        return {
            "strings": list(self.strings),
            "tokenizer": files,
            "not_shown_ids": list(self.not_shown_ids),
            "continues": self.continues,
        }

    @classmethod
    def from_config(cls, config: Settings) -> "StopStrings":
        """The object with this `get_config`."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in config["tokenizer"].items():
                (Path(folder) / Path(name).name).write_bytes(base64.b64decode(content))
            return cls(**config | {"tokenizer": load_tokenizer(folder)})

    def texts(self, token_ids: Tensor, lengths: Tensor) -> Tensor:
        """tf.string [B]: the texts up to where the first of the strings begins."""
        return up_to_any(self._detokenized(token_ids, self._is_shown(token_ids, lengths)), self.strings)

    def cut(self, text: str) -> tuple[str, bool]:
        """A Python text up to where the first of the strings begins, and whether there is one."""
        begins = [begin for begin in map(text.find, self.strings) if begin >= 0]
        return (text[: min(begins)], True) if begins else (text, False)

    def _is_shown(self, token_ids, lengths):
        """bool [B, N]: the tokens that are written in the whole texts."""
        shown = ops.arange(ops.shape(token_ids)[1], dtype="int32")[None] < ops.cast(lengths, "int32")[:, None]
        for token_id in self.not_shown_ids:
            shown = ops.logical_and(shown, token_ids != token_id)
        return shown

    def _detokenized(self, token_ids, shown):
        return self.tokenizer.detokenize(token_ids, shown, continues=self.continues)


def unwritable(tokenizer: Tokenizer, string: str) -> str | None:
    """What a tokenizer reads instead of a string between two words, if it cannot write the string; else None."""
    decoded = tokenizer.decode(tokenizer.encode(f"a {string} a"))
    return None if string in decoded or any(string in token for token in tokenizer.vocabulary) else decoded
