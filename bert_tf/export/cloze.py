"""Served ReCoRD: which of some entities fills the placeholder of a query about a passage."""

import tensorflow as tf

from bert_tf.export.choices import ServedMultipleChoice
from bert_tf.export.requests import check_as_many, refuse_texts
from bert_tf.export.signatures import TEXT, ServingModule, Signature
from bert_tf.tasks.cloze_files import PLACEHOLDER


class ServedReCoRD(ServedMultipleChoice):
    """Passage, query and entities to the entity that fills the query's placeholder.

    Inputs of `serving_default`:
        passage: string [N].
        query: string [N], with "@placeholder" in it.
        entities: string [N, C], "" where a passage has fewer than C entities.

    `ids` and the outputs are those of `ServedMultipleChoice`, except that the probabilities of the entities are each for
    itself and do not add up to 1.

    Args:
        model: a `Classifier` of two units.
        tokenizer, sequence_length, static: as in `ServingModule`.

    Example:
        module = ServedReCoRD(Classifier(encoder, 2), tokenizer, sequence_length=32)
        module.answer_text(["a film in paris"], ["it is in @placeholder"], [["paris", "film"]])["answer"]  # [1]
    """

    def __init__(self, model, tokenizer, sequence_length=128, static=False):
        ServingModule.__init__(self, model, tokenizer, sequence_length, static=static)

    @classmethod
    def of_task(cls, task, model, **settings):
        return cls(model, task.tokenizer, **settings)

    def signatures(self):
        texts = {"passage": TEXT, "query": TEXT, "entities": tf.TensorSpec([None, None], tf.string)}
        return super().signatures() | {"serving_default": Signature(self.answer_text, texts)}
