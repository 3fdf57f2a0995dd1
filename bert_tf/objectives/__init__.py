"""Pretraining objectives: models that wrap an encoder and know a loss."""

from bert_tf.objectives.masked_lm import MaskedLM
