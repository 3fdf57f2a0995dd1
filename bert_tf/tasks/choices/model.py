"""The model of multiple choice: one number for each option, and a softmax over the options of a question."""

import keras
from keras import ops

from bert_tf.tasks.heads import INPUTS, TaskModel, accuracy_sums

#: The logit of an option that is not there. Finite: a question that only fills a batch up has no option at all.
ABSENT = -1e30


@keras.saving.register_keras_serializable("bert_tf")
class MultipleChoice(TaskModel):
    """Chooses one of the options of each question.

    Devlin et al. 2019, section 4.4 (SWAG), and Radford et al. 2018, section 3.3: each option is read in a row of its
    own with the context, a dense layer turns the pooled output of each row into one number, and the numbers of all
    options of a question are normalized together.

    With `lm_weight` the auxiliary language modelling loss is a mean over the tokens of each row, then over all rows, as
    openai/finetune-transformer-lm `train.py` has it.

    Args:
        encoder, dropout, options: as in `TaskModel`.

    Call arguments:
        features: `token_ids`, `segment_ids` int32 [B, C, S], `padding_mask` bool [B, C, S], `option_mask` bool [B, C];
            for training also `labels` int32 and `label_weights` float32 [B].

    Returns:
        {"logits", "probabilities"}: float32 [B, C]; the logits of absent options are -1e30, their probabilities 0.

    Example:
        model = MultipleChoice(encoder)
        rows = tokenizer.pack(tokenizer.tokenize(["a good film", "a bad film"]), sequence_length=8)
        features = {name: tensor[None] for name, tensor in rows.items()}  # one question with two options
        model(features | {"option_mask": np.array([[True, True]])})["probabilities"]  # [1, 2]
    """

    def call(self, features, training=False):
        logits = _of_questions(self.outputs(_rows(features), training=training), features)
        return {"logits": logits, "probabilities": ops.softmax(logits)}

    def loss_sums(self, features, training):
        rows = _rows(features) | {"label_weights": _row_weights(features)}
        outputs, others = self.outputs_and_losses(rows, training)
        logits, labels = _of_questions(outputs, features), features["labels"]
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return {"label": ops.sum(losses * features["label_weights"])} | others, accuracy_sums(logits, features)

    def loss_weights(self, features):
        of_rows = super().loss_weights({"label_weights": _row_weights(features)})
        return of_rows | {"label": ops.sum(features["label_weights"])}


def _rows(features):
    """The inputs of the backbone, [B * C, S]; `token_ids` may have the characters of each word as one dimension more."""
    shapes = {name: ops.shape(features[name]) for name in INPUTS}
    return {name: ops.reshape(features[name], (shape[0] * shape[1], *shape[2:])) for name, shape in shapes.items()}


def _of_questions(outputs, features):
    """[B * C, 1] -> logits [B, C]."""
    mask = ops.convert_to_tensor(features["option_mask"])
    return ops.where(mask, ops.reshape(outputs, ops.shape(mask)), ABSENT)


def _row_weights(features):
    """float32 [B * C]: 1 for an option, 0 for one that is not there or only fills a batch up."""
    mask = ops.cast(features["option_mask"], "float32")
    return ops.reshape(mask * features["label_weights"][:, None], (-1,))
