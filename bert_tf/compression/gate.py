"""The comparison that a compressed model must pass before it is written."""

import dataclasses

import numpy as np

from bert_tf.errors import Advice, ConfigError
from bert_tf.progress import Progress
from bert_tf.tasks.inference import infer


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How a compressed model differs from the float model on the same examples.

    Attributes:
        examples: how many were compared.
        agreement: the fraction of them that both models answer alike: the same label, the same tags, the same span.
        largest_difference, mean_difference: of the numbers in the answers, such as probabilities, where both have them.
        metric: the task's metric; None where the examples have no labels.
        sign: 1 where a higher value of the metric is better, else -1.
        before, after: the metric of the float model and of the compressed one.

    Example:
        found = Comparison(100, agreement=0.99, largest_difference=0.1, mean_difference=0.01)
        found.check(0.02, "use float16")  # it would raise with 0.005
    """

    examples: int
    agreement: float
    largest_difference: float
    mean_difference: float
    metric: str | None = None
    sign: int = 1
    before: float | None = None
    after: float | None = None

    @property
    def loss_of_metric(self):
        """How much worse the metric of the compressed model is; 0 where there is none."""
        return 0.0 if self.metric is None else max(0.0, self.sign * (self.before - self.after))

    def check(self, tolerance, advice):
        """Refuses a compressed model that differs by more than `tolerance`.

        Args:
            tolerance: the largest fraction of examples with another answer, and the largest loss of the metric.
            advice: what the user can change beside the tolerance.

        Raises:
            ConfigError: it differs by more, or answers with numbers that are not finite.
        """
        if not np.isfinite([self.largest_difference, self.loss_of_metric]).all():
            raise ConfigError(f"the compressed model answers with numbers that are not finite; {advice}")
        problems = []
        if 1 - self.agreement > tolerance:
            problems.append(
                f"{100 * (1 - self.agreement):.2f} % of {self.examples} answers differ from the float model's"
            )
        if self.loss_of_metric > tolerance:
            problems.append(f"{self.metric} is {self.after:.4f} instead of {self.before:.4f}")
        if problems:
            raise ConfigError(
                f"the compressed model differs from the float model by more than the tolerance {tolerance}: "
                f"{' and '.join(problems)}. Nothing was written; {advice}, or allow more with ",
                Advice("tolerance"),
            )

    def lines(self):
        """Yields what it says, as lines of text."""
        yield (
            f"{100 * self.agreement:.2f} % of {self.examples} answers agree with the float model; their numbers differ "
            f"by {self.mean_difference:.2g} on average, {self.largest_difference:.2g} at most"
        )
        if self.metric is not None:
            yield f"{self.metric}: {self.before:.4f} before, {self.after:.4f} after"


def check_tolerance(tolerance):
    """Refuses a tolerance that is no fraction.

    Raises:
        ConfigError: it is not from 0 to 1.
    """
    if not 0 <= tolerance <= 1:
        raise ConfigError(f"the tolerance is {tolerance}; it must be from 0 to 1, as 0.01 for one hundredth")


def compare(task, examples, before, after):
    """Compares two models on the same examples.

    Args:
        task: a `Task`.
        examples: `Examples`; with labels its metric is compared, too.
        before, after: functions from the features of a batch (dict of tensors) to the outputs of a model of the task
            (dict of tensors or arrays).

    Returns:
        A `Comparison`.

    Raises:
        ConfigError: examples without labels for a task whose answers are numbers alone.

    Example:
        task = build_task({"sequence_length": 16}, tokenizer)
        examples = task.read({"text": ["a good film", "a bad film"], "label": ["pos", "neg"]})
        task = task.learn(examples)
        model = task.model(encoder)
        compare(task, examples, model.infer, model.infer).agreement  # 1.0
    """
    models = {"float model": before, "compressed model": after}
    sides = [task.decide(examples, outputs_of(task, examples, model, name)) for name, model in models.items()]
    first, second = ([task.deciding(answer) for answer in task.answers(examples, side)] for side in sides)
    pairs = [_differences(*pair) for pair in zip(first, second, strict=True)]
    if examples.labels is None and not any(map(_says_more_than_numbers, first)):
        raise ConfigError(
            f"{task.kind} predicts numbers, so there is no share of right answers; give a labelled file, ",
            Advice("dev", "FILE"),
            ", in place of ",
            Advice("texts"),
        )
    numbers = np.array([number for _, differences in pairs for number in differences] or [0.0])
    metric = {}
    if examples.labels is not None:
        values = [task.measure(examples, side)[task.metric] for side in sides]
        metric = {"metric": task.metric, "sign": task.sign, "before": values[0], "after": values[1]}
    agreement = float(np.mean([same for same, _ in pairs]))
    return Comparison(len(pairs), agreement, float(numbers.max()), float(numbers.mean()), **metric)


def outputs_of(task, examples, model, label, batch_size=32):
    """What `model` returns for each sequence of `examples`: `Outputs`."""
    sequences = task.sequences(examples)
    plan = sequences.plan(task.config, batch_size)
    return infer(task, sequences, plan, model, progress=Progress(label, len(plan), "batches"))


def _differences(first, second):
    """(whether two answers say the same, the differences of the numbers that both have)."""
    if isinstance(first, float) and isinstance(second, float):
        return True, [abs(first - second)]
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        first, second = list(first.values()), [second[name] for name in first]
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)) and len(first) == len(second):
        parts = [_differences(*pair) for pair in zip(first, second)]
        return all(same for same, _ in parts), [number for _, numbers in parts for number in numbers]
    return first == second, []


def _says_more_than_numbers(answer):
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, (list, tuple)):
        return any(map(_says_more_than_numbers, answer))
    return not isinstance(answer, float)
