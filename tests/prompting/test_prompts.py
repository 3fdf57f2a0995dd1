"""Prompts as exact strings, and the synthetic tasks, against their definition and GPT-3's published files."""

import dataclasses
import random
import re

import pytest

from bert_tf.config import load
from bert_tf.errors import ConfigError, DataError
from bert_tf.prompting import PromptingConfig, SyntheticConfig, make_prompts, synthetic_rows
from bert_tf.prompting.synthetic import SCRAMBLINGS, anagram, cycle_letters, with_insertions

PAIRS = [{"english": e, "french": f} for e, f in (("thanks", "merci"), ("hello", "bonjour"), ("mint", "menthe"))]


def test_the_lecture_s_prompt():
    (prompt,) = make_prompts(load(PromptingConfig, "prompts/translation"))
    assert prompt.text == "thanks -> merci\nhello -> bonjour\nmint -> menthe\notter ->"
    assert (prompt.expected, prompt.options) == (" loutre", {})


def test_prompts_of_gpt_3_s_tasks():
    """The published files have "\\nasinoc =" and " casino", "\\n\\nQ: What is 98 plus 45?\\n\\nA:" and " 143"."""
    prompt = make_prompts(load(PromptingConfig, "prompts/word_scrambling", {"shots": 2}))[0]
    instruction = r"Please unscramble the letters into a word, and write that word:"
    assert re.fullmatch(rf"{instruction}(\n[a-z]+ = [a-z]+){{2}}\n[a-z]+ =", prompt.text)
    prompt = make_prompts(load(PromptingConfig, "prompts/arithmetic", {"shots": 1}))[0]
    assert re.fullmatch(r"\n\nQ: What is \d+ plus \d+\?\n\nA: \d+\n\nQ: What is \d+ plus \d+\?\n\nA:", prompt.text)


def test_options_of_each_row_and_of_all():
    config = PromptingConfig(
        context="{premise} so", options={"0": " {choice1}", "1": " {{{choice2}}}"}, instruction="Choose.\n",
        separator=" | ", test=[{"premise": "it rained", "choice1": "wet", "choice2": "dry", "label": "0"}],
        examples=[{"premise": "it burned", "choice1": "cold", "choice2": "hot", "label": "1"}], shots=1,
    )  # fmt: skip
    (prompt,) = make_prompts(config)
    assert prompt.text == "Choose.\nit burned so {hot} | it rained so"
    assert (prompt.options, prompt.expected) == ({"0": " wet", "1": " {dry}"}, "0")


def test_shots_are_others_than_the_example_and_depend_on_the_seed_alone():
    rows = [{"context": f"c{i}", "completion": f" a{i}"} for i in range(8)]
    config = PromptingConfig(test=rows, shots=3, limit=6)
    prompts = make_prompts(config)
    assert len(prompts) == 6 and prompts == make_prompts(config)
    for i, prompt in enumerate(prompts):
        *shots, asked = prompt.text.split("\n")
        assert asked == f"c{i}" and len(set(shots)) == 3 and f"c{i} a{i}" not in shots
        assert all(re.fullmatch(r"c(\d) a\1", shot) for shot in shots)
    assert make_prompts(dataclasses.replace(config, seed=1)) != prompts
    assert make_prompts(dataclasses.replace(config, draw="first"))[1].text == "c0 a0\nc2 a2\nc3 a3\nc1"
    every = make_prompts(PromptingConfig(test=rows, shots=7))  # all others, whichever they are
    assert all(len(set(prompt.text.split("\n"))) == 8 for prompt in every)


@pytest.mark.parametrize("name", SCRAMBLINGS)
def test_scrambled_words(name):
    rows = synthetic_rows(SyntheticConfig(name, count=150, seed=3))
    assert rows == synthetic_rows(SyntheticConfig(name, count=150, seed=3))
    assert rows != synthetic_rows(SyntheticConfig(name, count=150, seed=4))
    words = [row["completion"].removeprefix(" ") for row in rows]
    assert len(set(words)) == 150
    for row, word in zip(rows, words):
        scrambled = re.fullmatch(r"\n(.*) =", row["context"])[1]
        assert word.islower() and 5 <= len(word) <= 15
        if name == "reversed_words":
            assert scrambled == "".join(reversed(word))
        elif name == "random_insertion_in_word":
            assert scrambled[::2] == word and set(scrambled[1::2]) <= set(" ./!")
            assert len(scrambled) == 2 * len(word) - 1
        elif name == "cycle_letters_in_word":
            assert scrambled in word + word and scrambled != word and len(scrambled) == len(word)
        else:
            kept = int(name[9])
            assert sorted(scrambled) == sorted(word) and (scrambled != word or len(set(word[kept:-kept])) == 1)
            assert (scrambled[:kept], scrambled[-kept:]) == (word[:kept], word[-kept:])


def test_scramblings_are_drawn_as_in_the_published_files():
    """There cycles are uniform in 1..n - 1 and insertions in four characters; two equal letters stay as they are."""
    generator, draws = random.Random(0), 3000
    cycles = [cycle_letters("abcdefg", generator) for _ in range(draws)]
    for begin in range(1, 7):
        assert abs(cycles.count("abcdefg"[begin:] + "abcdefg"[:begin]) - draws / 6) < 3 * (draws * 5 / 36) ** 0.5
    marks = "".join(with_insertions("ab", generator)[1] for _ in range(draws))
    for mark in " ./!":
        assert abs(marks.count(mark) - draws / 4) < 3 * (draws * 3 / 16) ** 0.5
    assert anagram("yellow", generator, 2) == "yellow" and anagram("strand", generator, 2) == "starnd"
    assert {anagram("abcde", generator, 1)[1:-1] for _ in range(200)} == {"bdc", "cbd", "cdb", "dbc", "dcb"}


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("two_digit_addition", 0, 99), ("five_digit_subtraction", 0, 99_999), ("two_digit_multiplication", 0, 99),
     ("three_digit_addition", 0, 999), ("four_digit_subtraction", 0, 9999), ("single_digit_three_ops", 1, 9)],
)  # fmt: skip
def test_arithmetic(name, low, high):
    rows = synthetic_rows(SyntheticConfig(name, count=400))
    assert rows == synthetic_rows(SyntheticConfig(name, count=400))
    numbers = []
    for row in rows:
        question = re.fullmatch(r"\n\nQ: What is (.*)\?\n\nA:", row["context"])[1]
        if name == "single_digit_three_ops":
            assert re.fullmatch(r"\(\d [-+*] \d\) [-+*] \d", question)
        numbers += [int(number) for number in re.findall(r"\d+", question)]
        for word, sign in (("plus", "+"), ("minus", "-"), ("times", "*")):
            question = question.replace(word, sign)
        assert row["completion"] == f" {eval(question)}"
    assert low <= min(numbers) and max(numbers) <= high
    mean, deviation = (low + high) / 2, (((high - low + 1) ** 2 - 1) / 12 / len(numbers)) ** 0.5
    assert abs(sum(numbers) / len(numbers) - mean) < 3 * deviation


def test_words_of_a_file(tmp_path):
    (tmp_path / "words.txt").write_text("Elephant\nzebras ox\ngiraffe2 x\n")
    rows = synthetic_rows(SyntheticConfig("reversed_words", words=str(tmp_path / "words.txt"), count=3))
    assert sorted(row["completion"] for row in rows) == [" elephant", " giraffe", " zebras"]
    with pytest.raises(DataError, match="synthetic.count is 4, and .*words.txt has 3 words of 6 to 15 letters"):
        synthetic_rows(SyntheticConfig("reversed_words", words=str(tmp_path / "words.txt"), count=4))


@pytest.mark.parametrize(("settings", "message"), [
    ({"context": "{english"}, "context is '{english'"),
    ({"context": "{english.upper}"}, "in braces stands the name of a column"),
    ({"context": "{english!r}"}, "in braces stands the name of a column"),
    ({"options": {"a": " a"}}, "options has one option"), ({"stop": ""}, "stop is empty"),
])  # fmt: skip
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        PromptingConfig(**settings)


def test_wrong_rows_are_refused():
    french = {"context": "{english}", "answer": "{french}", "test": PAIRS}
    options = {"context": "{english}", "options": {"merci": "a", "bonjour": "b"}, "label": "french", "test": PAIRS}
    for settings, error, message in (
        ({}, ConfigError, "give one of test=FILE and synthetic.name"),
        (french | {"context": "{englsh}"}, DataError, "example 0: there is no column 'englsh'; did you mean 'english'"),
        (french | {"shots": 3}, ConfigError, "shots=3 needs as many further examples, there are 2"),
        (options, DataError, "example 2: the label is 'menthe', which options does not name"),
    ):
        with pytest.raises(error, match=message):
            make_prompts(PromptingConfig(**settings))
