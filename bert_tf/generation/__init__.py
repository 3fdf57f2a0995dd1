"""Text from a decoder or an encoder-decoder: greedy, sampled, or by beam search; and how probable a text is.

Names are imported when they are first used, so that settings are there without Keras.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "beams": ["beam_search"],
    "generation_config": ["GenerationConfig"],
    "generator": ["Generated", "TextGenerator"],
    "prompts": ["PromptTokenizer"],
    "restrictions": ["Restrictions"],
    "samplers": ["SAMPLERS", "Sampler"],
    "sampling": ["generate_tokens"],
    "scoring": ["ContinuationScore", "Perplexity", "TextScorer"],
    "steps": ["DecoderSteps", "EncoderDecoderSteps", "Steps"],
    "stop_strings": ["StopStrings"],
})  # fmt: skip
