"""The settings of prompting. No Keras is imported."""

import dataclasses
import string
from typing import Annotated, Literal

from bert_tf.config import Range, check_fields
from bert_tf.errors import ConfigError
from bert_tf.parsing import brief

Rows = str | list[dict[str, str]]


@dataclasses.dataclass(frozen=True)
class SyntheticConfig:
    """Examples that are made by a seed: GPT-3's word scrambling and arithmetic (Brown et al. 2020, section 3.9).

    Their columns are `context` and `completion`, as in the files of github.com/openai/gpt-3/tree/master/data.

    Attributes:
        name: what is made; null for nothing.
        words: a file or folder of text whose words are scrambled, a word list for example; null for the State of the
            Union addresses that ship with the library.
        count: how many examples.
        seed: chooses words, scramblings and numbers.

    Example:
        SyntheticConfig(name="two_digit_addition", count=10)
    """

    name: (
        Literal[
            "cycle_letters_in_word", "mid_word_1_anagrams", "mid_word_2_anagrams", "random_insertion_in_word",
            "reversed_words", "two_digit_addition", "two_digit_subtraction", "three_digit_addition",
            "three_digit_subtraction", "four_digit_addition", "four_digit_subtraction", "five_digit_addition",
            "five_digit_subtraction", "two_digit_multiplication", "single_digit_three_ops",
        ]
        | None
    ) = None  # fmt: skip
    words: str | None = None
    count: Annotated[int, Range(at_least=1, at_most=1_000_000)] = 100
    seed: Annotated[int, Range(at_least=0, below=2**31)] = 0


@dataclasses.dataclass(frozen=True)
class PromptingConfig:
    """A task written as text: how examples become prompts, and how the model's answer is found and judged.

    The prompt is the instruction, then `shots` examples with their answers, then the example that is asked, without
    its answer. In templates `{column}` is a column of the example's row; `{{` is a brace.

    Attributes:
        context: the template of an example without its answer. It should not end with a space: the space belongs to
            the answer.
        answer: the template of the answer, where there are no options.
        options: the label of each option -> the template of its text. The most probable option is the model's answer.
            Empty: the model writes its answer, which must equal the right one, white space around them left out.
        label: the column with the label of the right option.
        instruction: the text before everything.
        separator: the text between two examples.
        test: the examples that are asked: a TSV, CSV or JSON-lines file, or a list of rows.
        examples: where the shots are from, a file or a list; null for the other examples of `test`.
        synthetic: examples made by a seed, in place of `test`.
        limit: only so many examples are asked, the first; null for all.
        shots: examples with their answers in each prompt.
        draw: "random": shots are drawn for each prompt anew, as for GPT-3; "first": the first, in their order.
        seed: of the shots that are drawn.
        scoring: what of an option is compared: "sum": log p(option | prompt); "mean": that divided by its tokens, as
            GPT-3 mostly; "bytes": divided by its bytes; "unconditional": minus log p(option | `unconditional`), as
            GPT-3 on ARC, OpenBookQA and RACE.
        unconditional: the prompt of scoring "unconditional", which says nothing about the example.
        max_new_tokens: the most tokens that the model writes as its answer.
        stop: the answer ends before this text; null for the model's own end. The tokenizer must write it: byte-level
            BPE writes line ends; WordPiece, SentencePiece and the BPE of GPT-1 do not.

    Raises:
        ConfigError: a template with something else than columns in braces; neither or both of `test` and `synthetic`.

    Example:
        rows = [{"english": "thanks", "french": "merci"}, {"english": "hello", "french": "bonjour"}]
        PromptingConfig(context="{english} ->", answer=" {french}", test=rows, shots=1)
    """

    context: str = "{context}"
    answer: str = "{completion}"
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    label: str = "label"
    instruction: str | None = None
    separator: str = "\n"
    test: Rows | None = None
    examples: Rows | None = None
    synthetic: SyntheticConfig = dataclasses.field(default_factory=SyntheticConfig)
    limit: Annotated[int | None, Range(at_least=1)] = None
    shots: Annotated[int, Range(at_least=0, at_most=10_000)] = 0
    draw: Literal["random", "first"] = "random"
    seed: Annotated[int, Range(at_least=0, below=2**31)] = 0
    scoring: Literal["sum", "mean", "bytes", "unconditional"] = "mean"
    unconditional: str = "Answer:"
    max_new_tokens: Annotated[int, Range(at_least=1)] = 32
    stop: str | None = "\n"

    def __post_init__(self):
        check_fields(self)
        for name, template in (("context", self.context), ("answer", self.answer)):
            columns_of(template, name)
        for label, template in self.options.items():
            columns_of(template, f"options.{label}")
        if len(self.options) == 1:
            raise ConfigError("options has one option, which is always right; give two, or none for a written answer")
        if self.stop == "":
            raise ConfigError("stop is empty, at which every answer would end; set stop: null for no such text")

    @property
    def columns(self):
        """The columns that every row must have: a list of str."""
        templates = [self.context, *(self.options.values() or [self.answer])]
        names = [name for template in templates for name in columns_of(template)]
        return list(dict.fromkeys([*names, *([self.label] if self.options else [])]))


def columns_of(template, where="the template"):
    """The columns that a template names, in their order.

    Raises:
        ConfigError: the template is not text with columns in braces.

    Example:
        columns_of("{english} ->")  # ['english']
    """
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"{where} is {brief(template)}: {error}; write a brace that is no column twice") from None
    names = [name for _, name, _, _ in parts if name is not None]
    for _, name, specification, conversion in parts:
        wrong = not name or name.isdigit() or specification or conversion or set("[].") & set(name or "")
        if name is not None and wrong:
            raise ConfigError(f"{where} is {brief(template)}; in braces stands the name of a column and nothing else")
    return names
