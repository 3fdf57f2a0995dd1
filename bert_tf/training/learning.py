"""What a run of fine-tuning trains, and from what: labels here; a teacher in `bert_tf.distillation`."""

from bert_tf.checkpoints import open_source
from bert_tf.hub import local_file
from bert_tf.models.families import build_backbone
from bert_tf.tasks import build_task, check_task
from bert_tf.tasks.build import class_of, read_all
from bert_tf.tasks.frozen_outputs import keep_frozen_outputs
from bert_tf.training import inputs
from bert_tf.training.starting import copy_token_table, fill_head, finetuning_dropout, new_config, with_dropout


class FromLabels:
    """A task on the model of `init_from`, trained on the labels of `data.train`.

    Args:
        config: `FinetuneConfig`.

    Attributes:
        source: where the model is from, of `open_source`.
        whole: whether the task is trained on the whole of an encoder-decoder, and not on the encoder alone.
        trains_head: whether the head of the task is trained, so that the dev metric can choose the best epoch and seed.
    """

    trains_head, whole = True, False

    def __init__(self, config):
        self.config, self.source = config, open_source(config.init_from)

    @property
    def model_config(self):
        """The configuration of the encoder that is trained, once `whole` is known."""
        return new_config(self.source, self.config.encoder, self.whole)

    def make_task(self):
        """The `Task`, before a file is read."""
        config = check_task(self.config.task)
        self.whole = class_of(config).whole
        return build_task(config, self.source.tokenizer, self.config.data.columns, self.model_config)

    def read(self, task):
        """(the task, which has learned from the training file; the `Examples` of each split)."""
        return read_all(task, self.config.data.files)

    def examples(self, data):
        """The `Examples` that are trained on, of those that `read` returned."""
        return data["train"]

    def identities(self):
        """What the run is trained on, for `inputs`: setting -> (its value, its identity)."""
        return self._identities_of_files() | {"init_from": (self.config.init_from, self.source.identity())}

    def make_model(self, task, train):
        """The model of the task, its weights set as far as they are pretrained; `train` is of one seed."""
        source, config = self.source, self.model_config
        pooler = task.needs_pooler(config)
        if self.config.encoder:
            encoder = build_backbone(config, pooler=pooler)
            if train.pretrained:
                copy_token_table(encoder, source, "encoder")
            return task.model(encoder)
        config = with_dropout(config, finetuning_dropout(source) if train.dropout is None else train.dropout)
        model = task.model(source.make_encoder(config, pooler, train.pretrained))
        if train.pretrained and not getattr(task.config, "reinitialize_layers", 0):
            fill_head(model, source)
        return model

    def make_trained(self, model):
        """The `TrainableModel` that is `fit`: the model itself, or one around it."""
        return model

    def prepare(self, task, model, examples, dev, folder, writes):
        """Makes what the batches hold beside the labels, before the first epoch.

        Args:
            task, model: the task and its model.
            examples, dev: `Examples` of the training file and the dev file.
            folder: the run directory, which is recorded by now.
            writes: whether this process may write there.
        """
        if task.config.frozen_features:
            for some in (examples, dev) if writes else (examples,):
                keep_frozen_outputs(task, model, some, self.config.train.batch_size)

    def _identities_of_files(self):
        return {
            f"data.{split}": (path, inputs.of_file(local_file(path))) for split, path in self.config.data.files.items()
        }
