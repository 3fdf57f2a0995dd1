"""Zero-, one- and few-shot prompting: tasks written as text for a model that is not trained on them.

Names are imported when they are first used, so that settings are there without Keras.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "evaluation": ["PromptingResult", "run_prompts"],
    "prompting_config": ["PromptingConfig", "SyntheticConfig"],
    "prompts": ["Prompt", "make_prompts"],
    "synthetic": ["synthetic_rows"],
})  # fmt: skip
