"""The one list of objectives. No Keras is imported."""

from bert_tf.objectives.bidirectional_lm_config import BIDIRECTIONAL_LM
from bert_tf.objectives.causal_lm_config import CAUSAL_LM
from bert_tf.objectives.denoising_config import DENOISING
from bert_tf.objectives.masked_lm_config import MASKED_LM
from bert_tf.objectives.objective import Objective
from bert_tf.objectives.permutation_lm_config import PERMUTATION_LM
from bert_tf.objectives.replaced_token_detection_config import REPLACED_TOKEN_DETECTION
from bert_tf.objectives.sequence_autoencoder_config import SEQUENCE_AUTOENCODER
from bert_tf.objectives.text_to_text_config import TEXT_TO_TEXT
from bert_tf.registry import Registry

#: Name -> `Objective`. Where a checkpoint shows the heads of several, the first that fits is taken.
OBJECTIVES = Registry(
    "objective",
    "objective.name",
    [
        MASKED_LM,
        REPLACED_TOKEN_DETECTION,
        PERMUTATION_LM,
        CAUSAL_LM,
        SEQUENCE_AUTOENCODER,
        BIDIRECTIONAL_LM,
        DENOISING,
        TEXT_TO_TEXT,
    ],
)


def register_objective(objective: Objective) -> Objective:
    """Adds an `Objective` to the list, from outside of the library too.

    Returns:
        The objective.

    Raises:
        ConfigError: another objective has its name.
    """
    return OBJECTIVES.register(objective)
