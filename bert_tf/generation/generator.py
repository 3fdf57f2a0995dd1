"""Generates texts from prompts."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from keras import ops

from bert_tf.backend import as_graph
from bert_tf.errors import ConfigError
from bert_tf.generation.generation_config import GenerationConfig
from bert_tf.generation.prompts import PromptTokenizer
from bert_tf.generation.restrictions import Restrictions
from bert_tf.generation.samplers import SAMPLERS
from bert_tf.generation.sampling import next_token
from bert_tf.generation.stop_strings import StopStrings, unwritable
from bert_tf.parsing import brief
from bert_tf.tokenizers.frame import Frame
from bert_tf.tokenizers.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Generated:
    """One generated text.

    Attributes:
        text: str, without the prompt, stop tokens and stop strings. Prompt + text reads as one text: a text that
            continues its prompt begins with the space between the two, if there is one.
        token_ids: list of int, the new tokens, a stop token included.
        score: float; see `generate_tokens` and `beam_search`.
        finished: whether a stop token or stop string ended the text; False where `max_new_tokens` cut it.

    Example:
        TextGenerator(gpt, tokenizer)(["a good"], GenerationConfig(max_new_tokens=5))[0][0].token_ids
    """

    text: str
    token_ids: list[int]
    score: float
    finished: bool


class TextGenerator:
    """Continues prompts, or answers them as sources, whichever the model was trained for.

    `Frame` says which special tokens a prompt gets, and which of them end a text. Rows of the token table beyond the
    vocabulary, as T5 has them, are never chosen.

    Args:
        model: a `Decoder` or an `EncoderDecoder`, or an objective with one as its backbone.
        tokenizer: of its pretraining.
        stop_tokens: further tokens that end a text, spelled as in the vocabulary.
        allowed_tokens: the only tokens that may be generated, spelled as in the vocabulary; None for all.
        frame: of `PromptTokenizer`, which says which frame None means. A backbone alone does not know the frame of its
            objective: `objective.frame(tokenizer)`, or `bert_tf.load(path).frame`. The model of a task needs
            `task.frame`.
        config: the `GenerationConfig` of calls that give none.

    Raises:
        ConfigError: a model or tokenizer that `PromptTokenizer` refuses, or a token that the vocabulary lacks.

    Example:
        generate = TextGenerator(CausalLM(gpt), tokenizer)
        generate(["a good", "the film is"], GenerationConfig(max_new_tokens=5))[0][0].text
        for piece in generate.stream("a good", GenerationConfig(method="sample", top_p=0.9, max_new_tokens=5)):
            print(piece, end="")
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        stop_tokens: Iterable[str] = (),
        allowed_tokens: Iterable[str] | None = None,
        frame: Frame | None = None,
        config: GenerationConfig = GenerationConfig(),
    ) -> None:
        self.config = config
        for name, tokens in (("stop_tokens", stop_tokens), ("allowed_tokens", allowed_tokens)):
            if tokens is not None and (isinstance(tokens, str) or not isinstance(tokens, Iterable)):
                raise ConfigError(f"{name} is {brief(tokens)}; it must be a list of tokens, such as [{brief(tokens)}]")
        self.tokenizer, self.prompts = tokenizer, PromptTokenizer(model, tokenizer, frame)
        self.model = self.prompts.model
        self.stop_ids = tuple(sorted({*self.prompts.frame.stop_ids, *map(self._id, stop_tokens)}))
        self.allowed_ids = None if allowed_tokens is None else tuple(map(self._id, allowed_tokens))
        if self.allowed_ids is None and tokenizer.vocabulary_size < self.model.config.vocabulary_size:
            self.allowed_ids = tuple(range(tokenizer.vocabulary_size))
        self._compiled: dict[Any, Any] = {}
        self._stop_strings: dict[tuple[str, ...], StopStrings] = {}

    def __call__(self, prompts: list[str], config: GenerationConfig | None = None) -> list[list[Generated]]:
        """Generates texts for each prompt.

        Args:
            prompts: list of str.
            config: a `GenerationConfig`; None for that of the generator.

        Returns:
            For each prompt a list of `Generated`, best first: `config.n_best` with beam search, else one.

        Raises:
            DataError: no prompts; a prompt without a token of the vocabulary; a prompt with which the text would be
                longer than the model's positions.
        """
        config = config or self.config
        token_ids, mask = self.prompts.rows(prompts, config.max_new_tokens)
        result = self._function(config)(token_ids, mask, np.int32(config.seed))
        result = {name: np.asarray(value) for name, value in result.items()}
        return [
            [self._answer(ids[:length].tolist(), float(score), config) for ids, length, score in zip(*texts) if length]
            for texts in zip(result["token_ids"], result["lengths"], result["scores"])
        ]

    def stream(self, prompt: str, config: GenerationConfig | None = None) -> Iterator[str]:
        """Yields the text of one prompt piece by piece, as soon as its characters are known.

        Together the pieces are the text of `__call__`. A stop string stops the computation, too.

        Raises:
            DataError: as `__call__`.
            ConfigError: beam search, which only knows its text at the end.
        """
        config = config or self.config
        if not SAMPLERS[config.method].streams:
            raise ConfigError(f"{config.method} only knows its text at the end; stream with method greedy or sample")
        prompt_ids, mask = self.prompts.rows([prompt], config.max_new_tokens)
        first, following = self._function(config, streamed=True)
        new = np.full((1, config.max_new_tokens), self.tokenizer.pad_id, "int32")
        token, state = first(prompt_ids, mask, new, np.int32(config.seed))
        shown, written, add = "", "", self.tokenizer.growing_text(continues=not self.prompts.frame.is_source)
        not_shown = {*self.stop_ids, self.tokenizer.pad_id}
        for index in range(config.max_new_tokens):
            new[:, index] = token_id = int(np.asarray(token)[0])
            written = written if token_id in not_shown else add(token_id)
            text, is_cut = self.stop_strings(config).cut(written)
            ended = is_cut or token_id in self.stop_ids or index + 1 == config.max_new_tokens
            # Half a character, and the beginning of a stop string, are held back until the rest decides.
            certain = text if ended else text[: _certain_length(text, config.stop_strings)]
            if certain.startswith(shown) and len(certain) > len(shown):
                yield certain[len(shown) :]
                shown = certain
            if ended:
                return
            token, state = following(prompt_ids, mask, new, np.int32(config.seed), state, np.int32(index + 1))

    def _id(self, token):
        if token not in self.tokenizer.vocabulary:
            raise ConfigError(f"the vocabulary has no token {brief(token)}; spell it as the vocabulary file does")
        return self.tokenizer.token_to_id(token)

    def restrictions(self, config: GenerationConfig) -> Restrictions:
        """The `Restrictions` of a configuration, with this generator's tokens."""
        return Restrictions(
            self.stop_ids, config.min_new_tokens, config.no_repeat_ngram, self.allowed_ids, config.repetition_penalty
        )

    def stop_strings(self, config: GenerationConfig) -> StopStrings:
        """The `StopStrings` of a configuration, made once.

        Raises:
            ConfigError: a string that the tokenizer cannot write, so that no text would end there.
        """
        if config.stop_strings in self._stop_strings:
            return self._stop_strings[config.stop_strings]
        for string in config.stop_strings:
            reread = unwritable(self.tokenizer, string)
            if reread is not None:
                raise ConfigError(
                    f"the model's tokenizer cannot write the stop string {brief(string)}: it reads {brief(f'a {string} a')} "
                    f"as {brief(reread)}, and no text would end there; choose another"
                )
        not_shown, continues = (*self.stop_ids, self.tokenizer.pad_id), not self.prompts.frame.is_source
        stop_strings = StopStrings(config.stop_strings, self.tokenizer, not_shown, continues)
        self._stop_strings[config.stop_strings] = stop_strings
        return stop_strings

    def _function(self, config, streamed=False):
        """The computation as a graph, made once for each configuration, whatever its seed."""
        key = dataclasses.replace(config, seed=0), streamed
        if key not in self._compiled:
            self._compiled[key] = self._stream_functions(config) if streamed else self._text_function(config)
        return self._compiled[key]

    def _text_function(self, config):
        restrictions, ends = self.restrictions(config), self.stop_strings(config)

        def function(token_ids, mask, seed):
            steps = self.prompts.steps(token_ids, mask, config.max_new_tokens)
            return SAMPLERS[config.method].generate(
                steps, config, restrictions, self.tokenizer.pad_id, {"seed": seed}, ends
            )

        return as_graph(function, [((None, None), "int32"), ((None, None), "bool"), ((), "int32")])

    def _stream_functions(self, config):
        restrictions = self.restrictions(config)

        def token_of(steps, new, logits, index, seed):
            tokens = ops.concatenate([steps.token_ids, new], axis=1)
            real = ops.concatenate([steps.padding_mask, ops.ones_like(new, dtype="bool")], axis=1)
            column = steps.prompt_length + index
            return next_token(logits, tokens, real, column, index, config, restrictions, {"seed": seed})

        def first(token_ids, mask, new, seed):
            steps = self.prompts.steps(token_ids, mask, config.max_new_tokens)
            logits, cache = steps.first()
            return token_of(steps, new, logits, 0, seed), (cache, steps.sources)

        def following(token_ids, mask, new, seed, state, index):
            cache, sources = state
            steps = self.prompts.steps(token_ids, mask, config.max_new_tokens, sources)
            logits, cache = steps.next(ops.take(new, index - 1, axis=1), cache, index - 1)
            return token_of(steps, new, logits, index, seed), (cache, sources)

        return as_graph(first), as_graph(following)

    def _answer(self, ids, score, config):
        text, is_cut = self.stop_strings(config).cut(self.prompts.text(i for i in ids if i not in self.stop_ids))
        return Generated(text, ids, score, is_cut or ids[-1] in self.stop_ids)


def _certain_length(text, stop_strings):
    """How many characters of a text cannot change any more: all before half a character or the beginning of a stop string."""
    end = len(text.rstrip("\ufffd"))
    for stop in stop_strings:
        for size in range(min(len(stop) - 1, end), 0, -1):
            if text[:end].endswith(stop[:size]):
                end -= size
                break
    return end
