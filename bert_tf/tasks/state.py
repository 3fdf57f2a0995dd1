"""What a task knows beyond its settings."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TaskState:
    """What a task knows beyond its settings: of the model that it is for, and of its training file. task.json keeps it.

    A task with more of it declares a subclass in `Task.state_class`.

    Attributes:
        labels: the label set; None until it is known, and for tasks without labels.
        pairs: whether the texts are pairs; None until it is known.
        structure: of the model: "encoder", "decoder" or "encoder_decoder". It decides how some tasks encode texts.

    Example:
        @dataclasses.dataclass(frozen=True)
        class RankingState(TaskState):
            longest_list: int = 0
    """

    labels: tuple[str, ...] | None = None
    pairs: bool | None = None
    structure: str = "encoder"
