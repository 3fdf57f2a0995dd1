"""The families of models and their published sizes. Pure Keras 3; see README.md.

Names are imported when they are first used (PEP 562): configurations and sizes need no Keras.
"""

from bert_tf.lazy import lazy_names
from bert_tf.models.families import FAMILIES

_NAMES = {
    "electra": ["make_generator"],
    "electra_config": ["generator_config"],
    "backbone": ["Backbone", "policy"],
    "config_map": ["REQUIRED", "ConfigMap"],
    "decoder": ["DECODER_INPUTS", "Decoder"],
    "encoder": ["ENCODER_INPUTS", "Encoder", "encoder_inputs"],
    "encoder_decoder": ["ENCODER_DECODER_INPUTS", "EncoderDecoder"],
    "encoder_config": ["EncoderConfig", "ModelConfig"],
    "families": [
        "FAMILIES", "PRESETS", "build_config", "build_encoder", "describe", "family_of", "preset",
        "register_family",
    ],
    "family": ["Family", "Maps", "Preset"],
    "stack": ["ContextLayers", "Memory", "Stack", "block_settings", "transformer_blocks"],
    "transformer_encoder": ["TransformerEncoder"],
    "weights": ["WeightMap"],
}  # fmt: skip
for _record in FAMILIES.values():
    for _path in (f"{_record.config.__module__}:{_record.config.__name__}", _record.model):
        _module, _name = _path.removeprefix(f"{__name__}.").split(":")
        _NAMES.setdefault(_module, []).append(_name)

__getattr__, __all__ = lazy_names(__name__, _NAMES)
