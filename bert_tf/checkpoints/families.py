"""Which families can be read and written in which format: one row each.

A family brings its maps in its own file in models/; here they are only collected.
"""

import dataclasses

from bert_tf.models import albert, bert, distilbert, electra, modernbert, roberta, spanbert, xlnet
from bert_tf.models.config_map import ConfigMap
from bert_tf.models.weights import WeightMap


@dataclasses.dataclass(frozen=True)
class Maps:
    """How a family's checkpoints in one format name settings and weights.

    Where checkpoints come without a configuration, `config` is None, and the shapes of the arrays
    say it: see `electra.config_of_shapes`.
    """

    config: ConfigMap | None
    weights: WeightMap


#: Hugging Face directories. Of families with one `model_type` the first is meant where the caller
#: does not say.
HF = {
    "bert": Maps(bert.HF_CONFIG, bert.HF_WEIGHTS),
    "spanbert": Maps(spanbert.HF_CONFIG, spanbert.HF_WEIGHTS),
    "roberta": Maps(roberta.HF_CONFIG, roberta.HF_WEIGHTS),
    "albert": Maps(albert.HF_CONFIG, albert.HF_WEIGHTS),
    "electra": Maps(electra.HF_CONFIG, electra.HF_WEIGHTS),
    "distilbert": Maps(distilbert.HF_CONFIG, distilbert.HF_WEIGHTS),
    "xlnet": Maps(xlnet.HF_CONFIG, xlnet.HF_WEIGHTS),
    "modernbert": Maps(modernbert.HF_CONFIG, modernbert.HF_WEIGHTS),
}

#: The checkpoints of the original authors' TensorFlow 1 code.
TF1 = {
    "bert": Maps(bert.TF1_CONFIG, bert.TF1_WEIGHTS),
    "albert": Maps(albert.TF1_CONFIG, albert.TF1_WEIGHTS),
    "electra": Maps(None, electra.TF1_WEIGHTS),
    "xlnet": Maps(xlnet.TF1_CONFIG, xlnet.TF1_WEIGHTS),
}

#: What the pair head of a family's published checkpoints was trained on.
PAIR_HEADS = {"bert": "next_sentence", "albert": "sentence_order"}

#: The folders of ELECTRA's two models, where they are kept together as Hugging Face directories.
PAIR = ("discriminator", "generator")
