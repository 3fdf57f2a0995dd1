"""Smaller and faster models of fine-tuned tasks, each compared with the float model before it is written."""

from bert_tf.lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__, {
    "early_exit": ["EarlyExitClassifier", "ExitClassifiers"],
    "early_exit_export": ["ServedEarlyExit", "export_early_exit"],
    "exporting": ["export_compressed"],
    "gate": ["Comparison", "compare"],
    "heads": ["head_importance", "without_heads"],
    "pruning": ["prune_heads"],
})  # fmt: skip
