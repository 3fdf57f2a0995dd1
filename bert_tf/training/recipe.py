"""What a run trains, and what it learns from: the one protocol of labels, shards and teachers."""

import abc


class Recipe(abc.ABC):
    """What a run trains, and what it learns from.

    | recipe | trains | learns from |
    |---|---|---|
    | `LabelsRecipe` | the model of a task | labels |
    | `TaskTeacherRecipe` of `bert_tf.distillation` | the model of a task | a teacher, and labels |
    | `ShardsRecipe` | the model of an objective | shards |
    | `PretrainingTeacherRecipe` of `bert_tf.distillation` | a masked LM | a teacher, and shards |

    `finetune` and `pretrain` read the attributes and call the methods; nothing depends on the order, except that a run
    makes its model, wraps it, and starts it.

    Args:
        config: the settings of the run.

    Attributes:
        config: the settings, as they are recorded.
        data: what is trained on: `TaskData` or a `ShardReader`.
        model_config: the configuration of the backbone that is trained.
        trains_head: whether the head of the model is trained, so that its metrics can choose the best epoch and seed.
    """

    trains_head = True

    def __init__(self, config):
        self.config = config

    @abc.abstractmethod
    def identities(self):
        """The identity of what the run learns and starts from, for inputs.json: setting -> (its value, its identity)."""

    @abc.abstractmethod
    def make_model(self):
        """The model whose weights are kept. It is made in the scope of the strategy, for each seed once."""

    def wrap(self, model):
        """The `TrainableModel` that is fitted: the model itself, or one around it."""
        return model

    @abc.abstractmethod
    def start(self, model, folder):
        """Does what the first update needs, such as setting initial weights or computing the outputs of a teacher.

        Args:
            model: of `make_model`, compiled.
            folder: the run directory; None in a process that may not write there.
        """
