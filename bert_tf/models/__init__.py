"""The model families, one file each, and their published sizes. Pure Keras 3.

Names are imported when they are first used (PEP 562), so that configurations and sizes are there without Keras.
"""

from bert_tf.lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__, {
    "albert": ["AlbertEncoder"],
    "bert": ["BertEncoder"],
    "building": ["build_encoder"],
    "configs": ["AlbertConfig", "BertConfig", "DistilBertConfig", "ElectraConfig", "EncoderConfig", "ModernBertConfig",
                "RobertaConfig", "SpanBertConfig", "XLNetConfig", "generator_config"],
    "distilbert": ["DistilBertEncoder"],
    "electra": ["ElectraEncoder", "make_generator"],
    "encoder": ["ENCODER_INPUTS", "Encoder"],
    "modernbert": ["ModernBertEncoder"],
    "presets": ["PRESETS", "Preset", "preset"],
    "roberta": ["RobertaEncoder"],
    "section": ["build_config", "describe"],
    "spanbert": ["SpanBertEncoder"],
    "xlnet": ["XLNetEncoder"],
})  # fmt: skip
