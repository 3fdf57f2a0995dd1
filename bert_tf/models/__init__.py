"""The families of models and their published sizes. Pure Keras 3; see README.md.

Names are imported when they are first used (PEP 562): configurations and sizes need no Keras.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "backbone": ["Backbone", "policy"],
    "config_map": ["REQUIRED", "ConfigMap"],
    "decoder": ["DECODER_INPUTS", "Decoder"],
    "encoder": ["ENCODER_INPUTS", "Encoder", "encoder_inputs"],
    "model_config": ["StackConfig", "ModelConfig"],
    "encoder_decoder": ["ENCODER_DECODER_INPUTS", "EncoderDecoder"],
    "families": [
        "FAMILIES", "PRESETS", "build_config", "build_backbone", "describe", "family_of", "preset", "register_family",
    ],
    "task_heads": ["TaskHead"],
    "family": ["Family", "Maps", "Preset"],
    "lora": ["enable_lora", "merge_lora"],
    "stack": ["ContextLayers", "Memory", "Stack", "block_settings", "transformer_blocks"],
    "transformer_encoder": ["TransformerEncoder"],
    "weights": ["WeightMap"],
    # The families.
    "albert.config": ["AlbertConfig"],
    "albert.model": ["AlbertEncoder"],
    "bert.config": ["BertConfig", "SpanBertConfig"],
    "bert.model": ["BertEncoder", "SpanBertEncoder"],
    "distilbert.config": ["DistilBertConfig"],
    "distilbert.model": ["DistilBertEncoder"],
    "electra.config": ["ElectraConfig", "generator_config"],
    "electra.model": ["ElectraEncoder", "make_generator"],
    "elmo.config": ["ElmoConfig", "TransformerBiLMConfig"],
    "elmo.model": ["Elmo", "TransformerBiLM"],
    "gpt1.config": ["GPT1Config"],
    "gpt1.model": ["GPT1Decoder"],
    "gpt2.config": ["GPT2Config"],
    "gpt2.model": ["GPT2Decoder"],
    "lstm.config": ["BiLstmConfig", "LstmLMConfig"],
    "lstm.model": ["BiLstmEncoder", "LstmLM"],
    "modernbert.config": ["ModernBertConfig"],
    "modernbert.model": ["ModernBertEncoder"],
    "roberta.config": ["RobertaConfig"],
    "roberta.model": ["RobertaEncoder"],
    "t5.config": ["T5Config", "T5DecoderConfig", "T5EncoderConfig"],
    "t5.model": ["T5", "T5Decoder", "T5Encoder"],
    "transformer.config": ["TransformerConfig"],
    "transformer.model": ["Transformer"],
    "word_vectors.config": ["WordVectorsConfig"],
    "word_vectors.model": ["WordVectorsEncoder"],
    "xlnet.config": ["XLNetConfig"],
    "xlnet.model": ["XLNetEncoder"],
})  # fmt: skip
