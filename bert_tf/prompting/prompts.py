"""Examples as prompts."""

import dataclasses
import random

from bert_tf.config import nearest
from bert_tf.errors import Advice, ConfigError
from bert_tf.prompting.synthetic import synthetic_rows
from bert_tf.tasks.rows.opening import read_dicts
from bert_tf.tasks.rows.values import BadRow


@dataclasses.dataclass(frozen=True)
class Prompt:
    """One example as text.

    Attributes:
        text: str, what the model reads.
        options: dict: label -> the text that would follow; empty where the model writes its answer.
        expected: the label of the right option, or the right answer.

    Example:
        config = PromptingConfig(synthetic=SyntheticConfig("reversed_words", count=3), shots=1, separator="")
        make_prompts(config)[0].text
    """

    text: str
    options: dict
    expected: str


def make_prompts(config):
    """The prompts of a `PromptingConfig`.

    Each prompt draws its shots for itself, from (`config.seed`, its number); from `test` never the example that is
    asked.

    Returns:
        list of `Prompt`.

    Raises:
        ConfigError: there are no examples, or fewer than there are shots.
        DataError: a file that cannot be read; a row without a column that a template names, or with another label
            than those of the options.

    Example:
        rows = [{"english": "thanks", "french": "merci"}, {"english": "hello", "french": "bonjour"}]
        config = PromptingConfig(context="{english} ->", answer=" {french}", test=rows[1:], examples=rows[:1], shots=1)
        make_prompts(config)[0].text  # 'thanks -> merci\\nhello ->'
    """
    rows, pool = _test_rows(config), config.examples
    pool = rows if pool is None else _rows(pool, config, "examples")
    same_rows = config.examples is None
    if config.shots > len(pool) - same_rows:
        raise ConfigError(
            f"shots={config.shots} needs as many further examples, there are {len(pool) - same_rows}; lower it or set examples"
        )
    shots = [[pool[j] for j in _shots(config, i, len(pool), same_rows)] for i in range(len(rows[: config.limit]))]
    return [_prompt(config, *pair) for pair in zip(rows, shots)]


def _test_rows(config):
    if (config.test is None) == (config.synthetic.name is None):
        raise ConfigError("examples are read or made; give one of ", Advice("test", "FILE"), " and synthetic.name")
    return _rows(synthetic_rows(config.synthetic) if config.test is None else config.test, config, "test")


def _rows(data, config, where):
    """The rows of a file or list, each with the columns that the templates name."""

    def read(row):
        label = row.get(config.label)
        if config.options and label not in config.options:
            raise BadRow(f"the label is '{label}', which options does not name{nearest(label, config.options)}")
        return row

    rows = read_dicts(data, config.columns, read)
    if not rows:
        raise ConfigError(f"{where} has no rows; give at least one example")
    return rows


def _shots(config, index, count, same_rows):
    """The indices of the shots of prompt number `index`; with `own` never `index` itself."""
    if config.draw == "first":
        chosen = range(config.shots)
    else:
        chosen = random.Random(f"{config.seed} {index}").sample(range(count - same_rows), config.shots)
    return [j + (same_rows and j >= index) for j in chosen]


def _prompt(config, row, shots):
    def answer(row):
        return (config.options[row[config.label]] if config.options else config.answer).format_map(row)

    examples = [config.context.format_map(shot) + answer(shot) for shot in shots]
    text = (config.instruction or "") + config.separator.join([*examples, config.context.format_map(row)])
    options = {label: template.format_map(row) for label, template in config.options.items()}
    return Prompt(text, options, row[config.label] if options else answer(row))
