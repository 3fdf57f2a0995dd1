"""Pretraining objectives: models that wrap an encoder and know a loss."""

from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.objectives.permutation_lm import PermutationLM
from bert_tf.objectives.replaced_token_detection import ReplacedTokenDetection
