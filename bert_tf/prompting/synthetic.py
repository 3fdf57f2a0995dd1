"""GPT-3's word scrambling and arithmetic: Brown et al. 2020, section 3.9, and github.com/openai/gpt-3/tree/master/data.

What the paper leaves open is as in those files: words of at least 6 letters (5 for `mid_word_1_anagrams`) and at most
15; a cycle by 1 to n - 1 letters; a random one of space, period, slash and exclamation mark after every letter but the
last; inner letters in another order wherever there is one; numbers uniform below 10^digits, so that some have fewer
digits; the first two of three one-digit numbers, each 1 to 9, in parentheses.
"""

import collections
import operator
import random
import re
from pathlib import Path

from bert_tf import samples
from bert_tf.errors import DataError
from tfrecords.corpus.documents import read_texts

#: Words are drawn from so many, the most frequent of the text.
MOST_FREQUENT = 10_000
MAX_LETTERS = 15
_DIGITS = {"two": 2, "three": 3, "four": 4, "five": 5}
_OPERATIONS = {
    "addition": ("plus", operator.add),
    "subtraction": ("minus", operator.sub),
    "multiplication": ("times", operator.mul),
}
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def synthetic_rows(config):
    """Rows with the columns `context` and `completion`, a pure function of a `SyntheticConfig` and its word list.

    Raises:
        DataError: a word list that cannot be read, or has fewer words than are wanted.

    Example:
        synthetic_rows(SyntheticConfig("two_digit_addition", count=1))[0]["context"]  # '\\n\\nQ: What is ... plus ...'
    """
    generator = random.Random(f"{config.name} {config.seed}")
    if config.name not in SCRAMBLINGS:
        return [_question(config.name, generator) for _ in range(config.count)]
    scramble, least = SCRAMBLINGS[config.name]
    words = frequent_words(config.words, least)
    if len(words) < config.count:
        raise DataError(
            f"synthetic.count is {config.count}, and {config.words or 'the sample text'} has {len(words)} words of "
            f"{least} to {MAX_LETTERS} letters; lower synthetic.count or give more text"
        )
    chosen = generator.sample(words, config.count)
    return [{"context": f"\n{scramble(word, generator)} =", "completion": f" {word}"} for word in chosen]


def frequent_words(path, least):
    """The most frequent words of a text, in lower case, with `least` to `MAX_LETTERS` letters; None for the samples."""
    counts = collections.Counter()
    for text in read_texts(path or Path(samples.__file__).parent / "state_of_the_union.jsonl"):
        counts.update(re.findall(r"[^\W\d_]+", text.lower()))
    words = [word for word, _ in counts.most_common() if least <= len(word) <= MAX_LETTERS]
    return words[:MOST_FREQUENT]


def cycle_letters(word, generator):
    """The letters moved around in a circle: "inevitably" -> "lyinevitab"."""
    begin = generator.randrange(1, len(word))
    return word[begin:] + word[:begin]


def anagram(word, generator, outer):
    """All letters but the first and last `kept` in another order: "corruption" -> "criroptuon"."""
    inner = word[outer:-outer]
    shuffled = list(inner)
    while len(set(inner)) > 1 and "".join(shuffled) == inner:
        generator.shuffle(shuffled)
    return word[:outer] + "".join(shuffled) + word[-outer:]


def with_insertions(word, generator):
    """A mark or space between any two letters: "succession" -> "s.u!c/c!e.s s i/o/n"."""
    return "".join(letter + generator.choice(" ./!") for letter in word[:-1]) + word[-1]


def reversed_letters(word, generator):
    """Backwards: "objects" -> "stcejbo"."""
    return word[::-1]


#: Name -> (function of (word, random generator), the fewest letters of a word).
SCRAMBLINGS = {
    "cycle_letters_in_word": (cycle_letters, 6),
    "mid_word_1_anagrams": (lambda word, generator: anagram(word, generator, 1), 5),
    "mid_word_2_anagrams": (lambda word, generator: anagram(word, generator, 2), 6),
    "random_insertion_in_word": (with_insertions, 6),
    "reversed_words": (reversed_letters, 6),
}


def _question(name, generator):
    if name == "single_digit_three_ops":
        a, b, c = (generator.randint(1, 9) for _ in range(3))
        (first, inner), (second, outer) = (generator.choice(list(_SIGNS.items())) for _ in range(2))
        question, answer = f"({a} {first} {b}) {second} {c}", outer(inner(a, b), c)
    else:
        digits, _, operation = name.split("_")
        word, operate = _OPERATIONS[operation]
        a, b = (generator.randrange(10 ** _DIGITS[digits]) for _ in range(2))
        question, answer = f"{a} {word} {b}", operate(a, b)
    return {"context": f"\n\nQ: What is {question}?\n\nA:", "completion": f" {answer}"}
