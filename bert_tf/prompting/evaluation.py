"""A model's answers to prompts, and how many are right."""

import collections
import dataclasses
import math

from bert_tf.errors import ConfigError, DataError
from bert_tf.generation import GenerationConfig, PromptTokenizer, TextGenerator, TextScorer
from bert_tf.generation.stop_strings import unwritable
from bert_tf.parsing import brief
from bert_tf.prompting.prompts import make_prompts


@dataclasses.dataclass(frozen=True)
class PromptingResult:
    """How many prompts were answered right.

    Attributes:
        accuracy: float, the fraction.
        standard_error: float, of the accuracy as a mean over examples: sqrt(a (1 - a) / (n - 1)); nan for one.
        count: int, n.
        chance: float, of an option drawn at random; None for written answers.
        majority: float, the accuracy of always giving the most frequent right answer of these examples.
        answers: list of dict, for each prompt `prompt`, `expected`, `answer`, `correct`; with options also `scores`,
            label -> float, what was compared.

    Example:
        rows = [{"text": "a film", "label": "good"}, {"text": "a bad film", "label": "bad"}]
        config = PromptingConfig(context="{text} is", options={"good": " good", "bad": " bad"}, test=rows)
        result = run_prompts(gpt, tokenizer, config)
        result.accuracy, result.chance
    """

    accuracy: float
    standard_error: float
    count: int
    chance: float | None
    majority: float
    answers: list


def run_prompts(model, tokenizer, config, batch_size=8, progress=None, frame=None, longest=None):
    """Asks a model all prompts of a configuration.

    Args:
        model: a `Decoder` or an `EncoderDecoder`.
        tokenizer: of its pretraining.
        config: a `PromptingConfig`.
        batch_size: texts computed together.
        progress: function(prompts answered, all prompts), called now and then; None for nothing.
        frame: of `TextGenerator`: how the model was trained to read prompts.
        longest: the most tokens of a prompt and its answer together, the length that the model was trained with; None
            for its positions.

    Returns:
        A `PromptingResult`.

    Raises:
        ConfigError, DataError: as `make_prompts`, `TextScorer` and `TextGenerator`; a `config.stop` that the tokenizer
            cannot write, with a model that continues its prompt; a prompt that is too long for `longest`.

    Example:
        rows = [{"english": "a film", "french": "film"}, {"english": "the film", "french": "film"}]
        config = PromptingConfig(context="{english} in paris", answer="{french}", test=rows, stop=".", max_new_tokens=4)
        run_prompts(gpt, tokenizer, config).accuracy
    """
    prompts, answers = make_prompts(config), []
    if longest is not None:
        _check_length(prompts, PromptTokenizer(model, tokenizer, frame), config, longest)
    if config.options:
        answer = _Choosing(TextScorer(model, tokenizer, batch_size, frame), config)
    else:
        answer = _Writing(TextGenerator(model, tokenizer, frame=frame), config)
    for begin in range(0, len(prompts), batch_size):
        answers += answer(prompts[begin : begin + batch_size])
        if progress is not None:
            progress(len(answers), len(prompts))
    accuracy, count = sum(a["correct"] for a in answers) / len(answers), len(answers)
    most = collections.Counter(prompt.expected for prompt in prompts).most_common(1)[0][1]
    return PromptingResult(
        accuracy=accuracy,
        standard_error=math.sqrt(accuracy * (1 - accuracy) / (count - 1)) if count > 1 else math.nan,
        count=count,
        chance=1 / len(config.options) if config.options else None,
        majority=most / count,
        answers=answers,
    )


class _Choosing:
    """Chooses the most probable option."""

    def __init__(self, scorer, config):
        self.scorer, self.config = scorer, config
        self.unconditional = {}  # option -> its log-likelihood without the example

    def __call__(self, prompts):
        pairs = [(prompt.text, option) for prompt in prompts for option in prompt.options.values()]
        scores = iter([self._number_to_compare(*pair) for pair in zip(pairs, self.scorer.continuations(pairs))])
        answers = []
        for prompt in prompts:
            compared = {label: next(scores) for label in prompt.options}
            answer = max(compared, key=compared.get)
            shown = {"prompt": prompt.text, "expected": prompt.expected, "answer": answer}
            answers.append(shown | {"correct": answer == prompt.expected, "scores": compared})
        return answers

    def _number_to_compare(self, pair, score):
        """What of an option is compared; see `PromptingConfig.scoring`."""
        if self.config.scoring == "unconditional":
            if pair[1] not in self.unconditional:
                (alone,) = self.scorer.continuations([(self.config.unconditional, pair[1])])
                self.unconditional[pair[1]] = alone.log_likelihood
            return score.log_likelihood - self.unconditional[pair[1]]
        divisor = {"sum": 1, "mean": score.tokens, "bytes": score.bytes}[self.config.scoring]
        return score.log_likelihood / divisor


class _Writing:
    """Writes an answer, which is right if it equals the expected one."""

    def __init__(self, generate, config):
        self.generate = generate
        stop_strings = _stop_strings(generate, config.stop)
        self.config = GenerationConfig(max_new_tokens=config.max_new_tokens, stop_strings=stop_strings)

    def __call__(self, prompts):
        answers = []
        for prompt, (generated,) in zip(prompts, self.generate([prompt.text for prompt in prompts], self.config)):
            answer = generated.text.strip()
            shown = {"prompt": prompt.text, "expected": prompt.expected.strip(), "answer": answer}
            answers.append(shown | {"correct": answer == shown["expected"]})
        return answers


def _stop_strings(generate, stop):
    """The texts at which an answer ends: `stop`, or none.

    Raises:
        ConfigError: a text that no answer has, so that none would end before `max_new_tokens`. The answers to sources
            end by
            themselves: there it is left out.
    """
    decoded = None if stop is None else unwritable(generate.tokenizer, stop)
    if decoded is None:
        return () if stop is None else (stop,)
    if generate.prompts.frame.is_source:
        return ()
    raise ConfigError(
        f"stop is {brief(stop)}, which the model's tokenizer cannot write: it reads {brief(f'a {stop} a')} as "
        f"{brief(decoded)}, and no answer would end there; set stop and separator to a text that it writes, such "
        f"as '.', or set stop: null"
    )


def _check_length(prompts, prompt_tokenizer, config, longest):
    for prompt in prompts:
        answer = config.max_new_tokens
        if config.options:
            answer = max(len(prompt_tokenizer.tokenizer.encode(option)) for option in prompt.options.values())
        count = len(prompt_tokenizer.ids(prompt.text))
        if (count if prompt_tokenizer.has_encoder else count + answer) > longest:
            raise DataError(
                f"the prompt {brief(prompt.text)} has {count} tokens and its answer up to {answer}, and the model was "
                f"trained on sequences of {longest}; lower shots{'' if config.options else ' or max_new_tokens'}"
            )
