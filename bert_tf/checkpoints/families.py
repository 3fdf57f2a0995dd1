"""Which families can be read and written in which format: one row each.

A family brings its maps in its own file in models/; here they are only collected.
"""

import dataclasses

from bert_tf.models import bert
from bert_tf.models.config_map import ConfigMap
from bert_tf.models.weights import WeightMap


@dataclasses.dataclass(frozen=True)
class Maps:
    """How a family's checkpoints in one format name settings and weights."""

    config: ConfigMap
    weights: WeightMap


#: Hugging Face directories. Of families with one `model_type` the first is meant where the caller
#: does not say.
HF = {
    "bert": Maps(bert.HF_CONFIG, bert.HF_WEIGHTS),
}

#: The checkpoints of the original authors' TensorFlow 1 code.
TF1 = {
    "bert": Maps(bert.TF1_CONFIG, bert.TF1_WEIGHTS),
}

#: What the pair head of a family's published checkpoints was trained on.
PAIR_HEADS = {"bert": "next_sentence", "albert": "sentence_order"}
