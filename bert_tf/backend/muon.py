"""Muon for the matrices of a model's layers, AdamW for all other weights."""

import re

import keras

from bert_tf.backend.optimizers import NOT_DECAYED

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

#: Paths of the matrices between hidden vectors. Tables of embeddings, heads and output layers are AdamW's.
HIDDEN_MATRIX = re.compile(r"_layer_\d+/.*kernel$")


class Muon(keras.optimizers.Muon):
    """Momentum whose update of each matrix is made orthogonal (Jordan et al. 2024, github.com/KellerJordan/Muon).

    Keras's, in the variant of Liu et al. 2025 (arXiv:2502.16982, section 2.2): an update is multiplied by
    0.2 sqrt(max(rows, columns)), so that it is as large as AdamW's, and one learning rate serves both. Bias-corrected
    AdamW updates all weights that are no matrix of a layer: tables, heads, biases, norms, and XLNet's attention, whose
    kernels have three dimensions.

    Args:
        learning_rate: float or schedule.
        weight_decay: times the learning rate, of all weights; not applied to biases and layer norms.
        momentum: of the matrices, with Nesterov's correction.
        beta_1, beta_2, epsilon: AdamW's.
        kwargs: as `keras.optimizers.Muon`, such as `global_clipnorm`.

    Example:
        Muon(WarmupDecay(3e-3, warmup_steps=10, total_steps=100), weight_decay=0.1)
    """

    def __init__(
        self, learning_rate=1e-3, weight_decay=0.1, momentum=0.95, beta_1=0.9, beta_2=0.95, epsilon=1e-8, name="muon", **kwargs
    ):
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon=epsilon, weight_decay=weight_decay, momentum=momentum, name=name, **kwargs
        )
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def _should_use_adamw(self, variable):
        return len(variable.shape) != 2 or not HIDDEN_MATRIX.search(variable.path)

    def update_step(self, gradient, variable, learning_rate):
        if keras.backend.backend() == "tensorflow":
            gradient = tf.convert_to_tensor(gradient)  # that of an embedding is sparse
        super().update_step(gradient, variable, learning_rate)

    def _apply_weight_decay(self, variables):
        """One decay for all weights; Keras's Muon has another one for those that AdamW updates."""
        keras.optimizers.Optimizer._apply_weight_decay(self, variables)

    def get_config(self):
        config = keras.optimizers.Optimizer.get_config(self)
        adam = {name: getattr(self, f"adam_{name}") for name in ("beta_1", "beta_2")}
        return config | adam | {"momentum": self.momentum, "epsilon": self.epsilon}
