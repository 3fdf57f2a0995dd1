"""Models on disk: formats of published checkpoints, and the one way to open a model."""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "arrays": ["ArraysInMemory", "NamedArrays"],
        "formats": ["FORMATS", "Format", "open_source", "write_checkpoint"],
        "opened_model": ["OpenedModel"],
        "source": ["Source", "StoredTask"],
    },
)
