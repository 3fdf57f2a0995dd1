"""Fine-tuning on labels."""

import dataclasses
import functools

from bert_tf.checkpoints import OpenedModel, open_source
from bert_tf.hub import local_file
from bert_tf.models.families import build_backbone
from bert_tf.tasks import Task, build_task, check_task
from bert_tf.tasks.build import class_of, read_all
from bert_tf.tasks.examples import Examples
from bert_tf.tasks.frozen_outputs import keep_frozen_outputs
from bert_tf.training import data_identity
from bert_tf.training.recipe import Recipe
from bert_tf.training.starting import copy_token_table, fill_head, finetuning_dropout, new_config, with_dropout


@dataclasses.dataclass(frozen=True, eq=False)
class TaskData:
    """The data of a run of fine-tuning.

    Attributes:
        task: the `Task`, which has learned from the training file.
        examples: the `Examples` that are trained on.
        files: split ("train", "dev", "test") -> the `Examples` of that file, where it is given.
    """

    task: Task
    examples: Examples
    files: dict[str, Examples]


class LabelsRecipe(Recipe):
    """A task on the model of `init_from`, trained on the labels of `data.train`; see `FinetuneConfig`."""

    @functools.cached_property
    def source(self):
        """Where the weights come from, of `open_source`."""
        return open_source(self.config.init_from)

    @functools.cached_property
    def data(self):
        task, files = read_all(self.make_task(), self.config.data.files)
        return TaskData(task, files["train"], files)

    @functools.cached_property
    def model_config(self):
        return new_config(self.source, self.config.encoder, self.whole)

    @property
    def whole(self):
        """Whether the task is on the whole of an encoder-decoder, and not on the encoder alone."""
        return class_of(check_task(self.config.task)).whole

    def make_task(self):
        """The `Task`, before a file is read."""
        return build_task(self.config.task, self.source.tokenizer, self.config.data.columns, self.model_config)

    def identities(self):
        paths = {f"data.{split}": path for split, path in self.config.data.files.items()}
        files = {setting: (path, data_identity.of_file(local_file(path))) for setting, path in paths.items()}
        origin = self.config.init_from
        return files | ({"init_from": (origin, self.source.identity())} if origin else {})

    def make_model(self):
        source, config, task, train = self.source, self.model_config, self.data.task, self.config.train
        pooler = task.needs_pooler(config)
        if self.config.encoder:
            encoder = build_backbone(config, pooler=pooler)
            if train.pretrained:
                copy_token_table(encoder, source, "encoder")
            return task.model(encoder)
        config = with_dropout(config, finetuning_dropout(source) if train.dropout is None else train.dropout)
        source = dataclasses.replace(source, config=config)
        fresh = ("pooler",) if pooler else ()
        model = task.model(OpenedModel(source, pooler=pooler, fresh=fresh, trained=train.pretrained).backbone)
        if train.pretrained and not getattr(task.config, "reinitialize_layers", 0):
            fill_head(model, source)
        return model

    def start(self, model, folder):
        data = self.data
        if data.task.config.frozen_features:
            for examples in (data.examples, data.files["dev"]) if folder else (data.examples,):
                keep_frozen_outputs(data.task, model, examples, self.config.train.batch_size)
