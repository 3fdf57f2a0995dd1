"""Encodes prompts as rows of a model, and decodes the tokens that it writes."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from bert_tf.encodings import is_unicode
from bert_tf.errors import ConfigError, DataError
from bert_tf.generation.steps import DecoderSteps, EncoderDecoderSteps
from bert_tf.parsing import brief
from bert_tf.tokenizers.frame import Frame
from bert_tf.tokenizers.tokenizer import Tokenizer
from bert_tf.types import Tensor


class PromptTokenizer:
    """Encodes prompts in the `Frame` that a model was trained with, and decodes what it writes.

    | | decoder | encoder-decoder |
    |---|---|---|
    | prompt | padded on the left, so that all texts go on in the same column | padded on the right |
    | first token written | what follows the prompt | what follows `start_id`, which is padding: so T5 was pretrained |

    Args:
        model: a `Decoder` or an `EncoderDecoder`, or an objective with one as its backbone, such as a `CausalLM`.
        tokenizer: of its pretraining.
        frame: the `Frame` that the model was trained with. None: that of the objective, `objective.frame(tokenizer)`;
            where it has none, and for a backbone, the frame of the tokenizer's layout: `Frame.for_answers` for an
            encoder-decoder or a decoder with a prefix, `Frame.for_continuation` for another decoder.

    The layout's frame is right for a model trained on shards, whose rows begin with the layout's tokens (RoBERTa's
    layout: `<s>`; GPT-2's: none), and for an imported one, whose files tell the layout. After training on ids without
    special tokens, such as those of `tokenizer.encode`, give `frame=Frame.for_continuation(tokenizer, before=())`.

    Attributes:
        model: the decoder or encoder-decoder.
        frame: the `Frame`.
        has_encoder: whether the prompt is read by an encoder.
        start_id: int, the token that the written text of an encoder-decoder begins with.

    Raises:
        ConfigError: the model is an encoder, or has fewer rows in its token table than the tokenizer has tokens; or the
            model of a task without a `frame`.

    Example:
        prompts = PromptTokenizer(gpt, tokenizer)
        token_ids, padding_mask = prompts.rows(["a good film", "the film is"])  # int32 and bool [2, S]
        prompts.text(tokenizer.encode("in paris"))  # ' in paris'
    """

    def __init__(self, model: Any, tokenizer: Tokenizer, frame: Frame | None = None) -> None:
        backbone = getattr(model, "backbone", model)
        if frame is None and backbone is not model:
            if not hasattr(model, "frame"):
                raise ConfigError(
                    f"{model.name} is the model of a task, which knows how its prompts are read; give frame=task.frame"
                )
            frame = model.frame(tokenizer)
        model = backbone
        if model.structure not in ("decoder", "encoder_decoder"):
            raise ConfigError(
                f"{model.name} is an encoder, which does not continue texts; give a decoder (GPT) or an "
                f"encoder-decoder (T5)"
            )
        if tokenizer.vocabulary_size > model.config.vocabulary_size:
            raise ConfigError(
                f"the tokenizer has {tokenizer.vocabulary_size:,} tokens, {model.name} has rows for "
                f"{model.config.vocabulary_size:,}; give the tokenizer of its pretraining"
            )
        self.model, self.tokenizer = model, tokenizer
        self.has_encoder = model.structure == "encoder_decoder"
        self.start_id = tokenizer.pad_id
        if frame is None:
            is_source = self.has_encoder or model.prefix
            frame = Frame.for_answers(tokenizer) if is_source else Frame.for_continuation(tokenizer)
        self.frame = frame

    def ids(self, text: str) -> list[int]:
        """The ids of one prompt, a list of int.

        A text without tokens becomes the special tokens of the frame. Where the frame has none, and the model continues
        its prompts, it becomes the token that begins texts, as in the text generation of transformers.

        Raises:
            DataError: a text without tokens where there is no such special token, or a text with unknown tokens alone;
                a value that is not a str, or not Unicode.
        """
        check_unicode(text)
        tokenizer, frame = self.tokenizer, self.frame
        ids = tokenizer.encode(frame.text_before + text)
        unknown = tokenizer.unk_id
        known = [i for i in ids if i != unknown]
        if len(known) < len(ids) and tokenizer.id_to_token(unknown) not in text and not tokenizer.decode(known).strip():
            raise DataError(f"the vocabulary has none of the words of the prompt {brief(text)}; give others")
        framed = [*frame.before, *ids, *frame.after] or ([] if frame.start is None else [frame.start])
        if not framed:
            raise DataError(f"the prompt {brief(text)} has no token; give at least one word")
        return framed

    def rows(self, texts: list[str], max_new_tokens: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The prompts as int32 [B, S], and bool [B, S], True at real tokens.

        Args:
            texts: list of str.
            max_new_tokens: how many positions the model must have after the prompt.

        Raises:
            DataError: as `ids`; also an empty list, a str instead of a list, or more tokens than the model has positions.
        """
        check_list(texts)
        if not texts:
            raise DataError("there are no prompts; give at least one")
        prompts = [self.ids(text) for text in texts]
        for text, ids in zip(texts, prompts):
            self._check_length(text, ids, max_new_tokens)
        return pad_sequences(prompts, self.tokenizer.pad_id, on_the_left=not self.has_encoder)

    def text(self, ids: Iterable[int]) -> str:
        """The text of generated tokens, without padding and the tokens that end a text.

        A text that continues its prompt begins with the space between the two, if there is one.
        """
        not_shown = {*self.frame.stop_ids, self.tokenizer.pad_id}
        return self.tokenizer.decode(
            [i for i in map(int, ids) if i not in not_shown], continues=not self.frame.is_source
        )

    def steps(
        self, token_ids: Tensor, padding_mask: Tensor, max_new_tokens: int | Tensor, sources: Any = None
    ) -> DecoderSteps | EncoderDecoderSteps:
        """`DecoderSteps` or `EncoderDecoderSteps` for these rows; `sources` as the latter has them."""
        if self.has_encoder:
            return EncoderDecoderSteps(self.model, token_ids, padding_mask, max_new_tokens, self.start_id, sources)
        return DecoderSteps(self.model, token_ids, padding_mask, max_new_tokens)

    def _check_length(self, text, ids, max_new_tokens):
        longest = self.model.config.max_positions
        if self.has_encoder:
            if len(ids) > longest:
                raise DataError(
                    f"a prompt of {len(ids)} tokens is longer than the model's {longest} positions; shorten the prompt "
                    f"{brief(text)}"
                )
            if max_new_tokens > longest:
                raise DataError(f"max_new_tokens={max_new_tokens} exceeds the model's {longest} positions; lower it")
        elif len(ids) + max_new_tokens > longest:
            raise DataError(
                f"a prompt of {len(ids)} tokens and max_new_tokens={max_new_tokens} are more than the model's "
                f"{longest} positions; shorten the prompt {brief(text)} or lower max_new_tokens"
            )


def check_list(texts: object) -> None:
    """Raises DataError for one text where a list is expected: each of its characters would be read as a text."""
    if isinstance(texts, str):
        raise DataError(f"{brief(texts)} is one text; give a list of texts, [{brief(texts)}]")


def check_unicode(text: Any) -> None:
    """Raises DataError for a value that is not a str, and for lone surrogates, which a shell makes of bytes that are not UTF-8."""
    if not isinstance(text, str):
        raise DataError(f"a text must be a str, got {brief(text)}")
    if not is_unicode(text):
        raise DataError(f"{brief(text)} holds what is not a character of Unicode; give it as UTF-8")


def pad_sequences(
    sequences: Sequence[Sequence[int]], pad_id: int, on_the_left: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Lists of ids as int32 [B, S], and bool [B, S], True at real tokens.

    Example:
        pad_sequences([[5, 6], [7]], pad_id=0)  # [[5, 6], [7, 0]], [[True, True], [True, False]]
    """
    side = "pre" if on_the_left else "post"
    real = [[True] * len(ids) for ids in sequences]
    token_ids = keras.utils.pad_sequences(sequences, dtype="int32", padding=side, value=pad_id)
    return token_ids, keras.utils.pad_sequences(real, dtype="bool", padding=side)
