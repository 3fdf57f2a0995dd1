"""The special tokens around prompts, and at the end of generated texts. No TensorFlow is imported."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from bert_tf.tokenizers.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Frame:
    """The special tokens around a prompt and at the end of its answer, as a model was trained with them.

    A model continues its prompt, or the prompt is a source, which the model answers with a target: a text of its own.

    | made by | for | before the prompt | after it | at the end of a target |
    |---|---|---|---|---|
    | `for_continuation` | a decoder of running text (GPT): it continues | what begins a text (`[CLS]`, for example) | nothing | |
    | `for_answers` | an encoder-decoder (T5), a decoder with a prefix | what begins a text | what ends a text (T5: `</s>`) | what ends a text |
    | `for_answers_in_pairs` | a decoder fine-tuned by the task text_to_text | what begins a pair of texts | what stands between the two | what ends a pair |
    | `for_answers_in_shards` | a model pretrained on sources and targets | nothing | the separator | the separator |

    Attributes:
        is_source: whether the prompt is a source. False: the model continues it.
        before, after: tuples of int, the ids before and after the prompt.
        end: int, the id that ends a target; None for continuations, and where nothing ended targets.
        stop_ids: tuple of int, the ids at which the model has ended what it writes.
        start: int, the id that begins a text to be continued which has no token of its own, and every document whose
            perplexity is measured; None for sources, and for tokenizers without a special token to begin with
            (GPT-1's).
        text_before: a text in front of each prompt, such as "simplify: ".

    Example:
        Frame.for_continuation(tokenizer).before  # (2,): [CLS]
        Frame.for_answers(tokenizer).after  # (3,): [SEP]
    """

    is_source: bool
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    end: int | None = None
    stop_ids: tuple[int, ...] = ()
    start: int | None = None
    text_before: str = ""

    @classmethod
    def for_continuation(cls, tokenizer: Tokenizer, before: tuple[int, ...] | None = None) -> Self:
        """The frame of a decoder of running text; `before`: None is that of the tokenizer's layout."""
        layout = tokenizer.layout
        before = layout.before_first if before is None else before
        # GPT-2 puts its one special token between documents: it ends one and begins the next.
        starts = [*before, tokenizer.cls_id, tokenizer.eod_id, tokenizer.sep_id]
        stop_ids = {i for i in (*layout.after_first, tokenizer.eod_id, tokenizer.sep_id) if i is not None}
        start = next((i for i in starts if i is not None), None)
        return cls(False, before, stop_ids=tuple(sorted(stop_ids)), start=start)

    @classmethod
    def for_answers(cls, tokenizer: Tokenizer) -> Self:
        """The frame of sources and targets that each stand as a single text does."""
        layout = tokenizer.layout
        after = (*layout.after_first, *layout.at_end)
        return cls._of_sources(tokenizer, layout.before_first, after, after)

    @classmethod
    def for_answers_in_pairs(cls, tokenizer: Tokenizer) -> Self:
        """The frame of sources and targets that stand as the two texts of a pair do."""
        layout = tokenizer.layout
        after = (*layout.after_first, *layout.before_second)
        return cls._of_sources(tokenizer, layout.before_first, after, (*layout.after_second, *layout.at_end))

    @classmethod
    def for_answers_in_shards(cls, tokenizer: Tokenizer) -> Self:
        """The frame of sources and targets that the separator ends, as shards of pairs and denoising have them."""
        return cls._of_sources(tokenizer, (), (tokenizer.sep_id,), (tokenizer.sep_id,))

    @classmethod
    def _of_sources(cls, tokenizer, before, after, ends):
        stop_ids = ends[:1] or tuple(sorted({tokenizer.eod_id, tokenizer.sep_id} - {None}))
        return cls(True, before, after, end=ends[0] if ends else None, stop_ids=stop_ids)
