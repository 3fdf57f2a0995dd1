"""The update of Adam as one operation of TensorFlow."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.backend import plain


def dense(gradient: Any) -> Any:
    """A gradient as a tensor, although it may be one of looked-up rows."""
    return tf.convert_to_tensor(gradient)


def apply_adam(optimizer: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
    """As `plain.apply_adam`, in a single pass through memory."""
    if variable.dtype not in ("float32", "float64"):  # the operation would keep moments in half precision
        plain.apply_adam(optimizer, dense(gradient), variable, learning_rate)
        return
    index = optimizer._get_variable_index(variable)
    variable = variable.value if isinstance(variable, keras.Variable) else variable
    step = tf.cast(optimizer.iterations + 1, variable.dtype)
    correct = optimizer.bias_correction
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[index].value.handle,
        v=optimizer._velocities[index].value.handle,
        # The kernel's step size is lr * sqrt(1 - beta_2^t) / (1 - beta_1^t).
        beta1_power=tf.pow(tf.cast(optimizer.beta_1, step.dtype), step) if correct else 0.0,
        beta2_power=tf.pow(tf.cast(optimizer.beta_2, step.dtype), step) if correct else 0.0,
        lr=tf.cast(learning_rate, variable.dtype),
        beta1=optimizer.beta_1,
        beta2=optimizer.beta_2,
        epsilon=optimizer.epsilon,
        grad=gradient,
    )
