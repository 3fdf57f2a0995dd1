"""Word vectors: skip-gram, CBOW and GloVe, word similarity and neighbours; see README.md.

Names are imported when they are first used, so that settings are there without TensorFlow.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "glove": ["Glove"],
    "negative_sampling": ["NegativeSampling"],
    "word_similarity": ["WordTable", "similarity"],
    "training": ["train_vectors"],
    "vectors_config": [
        "CbowConfig", "GloveConfig", "SkipGramConfig", "VectorsConfig", "VectorsTrainConfig", "VocabularyConfig",
    ],
})  # fmt: skip
