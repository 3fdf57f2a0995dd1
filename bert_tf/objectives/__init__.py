"""Pretraining objectives: models that wrap a backbone and know a loss; their settings and the list of them.

Names are imported when they are first used, so that settings are there without Keras.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "bidirectional_lm": ["BidirectionalLM"],
    "bidirectional_lm_config": ["BidirectionalLMConfig"],
    "causal_lm": ["CausalLM"],
    "causal_lm_config": ["CausalLMConfig"],
    "denoising": ["Denoising"],
    "denoising_config": ["DenoisingObjectiveConfig"],
    "masked_lm": ["MaskedLM"],
    "masked_lm_config": ["MaskedLMConfig"],
    "objective": ["Objective", "ObjectiveConfig"],
    "permutation_lm": ["PermutationLM"],
    "permutation_lm_config": ["PermutationLMConfig"],
    "pretraining_model": ["PretrainingModel"],
    "registry": ["OBJECTIVES", "register_objective"],
    "replaced_token_detection": ["ReplacedTokenDetection"],
    "replaced_token_detection_config": ["ReplacedTokenDetectionConfig"],
    "sequence_autoencoder": ["SequenceAutoencoder"],
    "sequence_autoencoder_config": ["SequenceAutoencoderConfig"],
    "text_to_text": ["TextToText"],
    "text_to_text_config": ["TextToTextConfig"],
})  # fmt: skip
