"""Pretraining objectives: models that wrap a backbone and know a loss; their settings and the list of them.

Names are imported when they are first used, so that settings are there without Keras.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "bidirectional_lm": ["BidirectionalLM"],
    "causal_lm": ["CausalLM"],
    "denoising": ["Denoising"],
    "masked_lm": ["MaskedLM"],
    "permutation_lm": ["PermutationLM"],
    "pretraining_model": ["PretrainingModel"],
    "registry": ["OBJECTIVES", "Objective", "register_objective"],
    "replaced_token_detection": ["ReplacedTokenDetection"],
    "sequence_autoencoder": ["SequenceAutoencoder"],
    "settings": [
        "BidirectionalLMConfig", "CausalLMConfig", "DenoisingObjectiveConfig", "MaskedLMConfig", "ObjectiveConfig",
        "PermutationLMConfig", "ReplacedTokenDetectionConfig", "SequenceAutoencoderConfig", "TextToTextConfig",
    ],
    "text_to_text": ["TextToText"],
})  # fmt: skip
