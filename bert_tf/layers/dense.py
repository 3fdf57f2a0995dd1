"""Dense layers as the originals make them."""

from bert_tf.backend import Dense, initializer


def range_of(deviation):
    """The `initializer_range` of a truncated normal that has this standard deviation.

    BERT's cuts a normal of 0.02 at two deviations, and what is left has 0.0176. Others name what their weights have.
    """
    return deviation / 0.87962566


def dense(layer, units, activation, initializer_range, name, use_bias=True, inputs=None):
    """A `Dense` inside another layer: its kernel from a truncated normal or another distribution, its bias zeros.

    Args:
        layer: the layer around it, which gives the dtype policy.
        units: width of the result.
        activation: function or None.
        initializer_range: standard deviation of the normal; or the name of another initializer of Keras.
        name: of the layer.
        use_bias: whether it has a bias.
        inputs: width of the input, to build the layer; None to build it later.
    """
    result = Dense(
        units,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=initializer(initializer_range),
        bias_initializer="zeros",
        dtype=layer.dtype_policy,
        name=name,
    )
    if inputs is not None:
        result.build((None, None, inputs))
    return result
