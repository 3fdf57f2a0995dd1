"""Smaller and faster models of fine-tuned tasks, each compared with the float model before it is written."""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"exporting": ["export_compressed"], "gate": ["Comparison", "compare"]}
)
