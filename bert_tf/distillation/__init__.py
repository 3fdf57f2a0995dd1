"""Distillation: a small model, the student, learns from a large one, the teacher.

Names are imported when they are first used, so that settings are there without TensorFlow.
"""

from bert_tf.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "distill_config": [
        "DistillConfig", "DistillPretrainConfig", "StudentConfig", "TaskStudentConfig", "TaskTeacherConfig", "TeacherConfig",
    ],
    "augment_config": ["AugmentConfig"],
    "augmentation": ["Augmenter"],
    "augmented_file": ["augment", "augment_file"],
    "distilling": ["distill", "distill_pretraining"],
    "distiller": ["Distiller"],
    "term_loss": ["TermLoss"],
    "views": ["MaskedLMView", "TaskView"],
    "layer_maps": ["spread_layers", "uniform_layers"],
    "terms": ["TERMS", "Term", "TermConfig", "read_terms", "register_term"],
})  # fmt: skip
