"""Which `ServingModule` serves a task, or a model of a pretraining objective."""

from bert_tf.errors import ConfigError
from bert_tf.export.choices import ServedMultipleChoice, ServedReCoRD
from bert_tf.export.classification import ServedClassifier, ServedMultiLabelClassifier, ServedRegressor
from bert_tf.export.fill_mask import ServedMaskedLM
from bert_tf.export.generation import ServedGeneration
from bert_tf.export.spans import ServedQuestionAnswering
from bert_tf.export.tagging import ServedTagger
from bert_tf.export.word_pairs import ServedWordPair

#: Kind of task, or name of an objective -> its `ServingModule`. Of the others only the encoder is exported.
SERVED = {
    "classification": ServedClassifier,
    "multi_label": ServedMultiLabelClassifier,
    "regression": ServedRegressor,
    "tagging": ServedTagger,
    "multiple_choice": ServedMultipleChoice,
    "multirc": ServedClassifier,
    "record": ServedReCoRD,
    "word_pair": ServedWordPair,
    "question_answering": ServedQuestionAnswering,
    "masked_lm": ServedMaskedLM,
} | dict.fromkeys(("text_to_text", "causal_lm", "denoising"), ServedGeneration)


def register_served(name, served):
    """Adds the `ServingModule` of a task or an objective from outside of the library.

    Raises:
        ConfigError: the name has another.
    """
    if SERVED.setdefault(name, served) is not served:
        raise ConfigError(f"'{name}' is served by {SERVED[name].__name__}; choose another name")
