"""Which devices hold which part of a weight, for models that one device cannot hold: `keras.distribution.ModelParallel` on JAX."""

from typing import Any

import keras

#: Patterns of the paths of variables -> the axis of each dimension: True for that of the model. All others are whole on each
#: device. Megatron-LM (Shoeybi et al. 2019, section 3): heads, and the units of the feed-forward layer, are divided, so that
#: each half of a block sums over devices once. A stack of any family has these names.
LAYOUTS = {
    r".*attention/(query|key|value|query_key_value)/kernel": (False, True),
    r".*attention/(query|key|value|query_key_value)/bias": (True,),
    r".*attention/output/kernel": (True, False),
    # XLNet's have an axis of heads.
    r".*attention/(query|key|value|position|output)_kernel": (False, True, False),
    r".*attention/(content|position|segment)_bias": (True, False),
    r".*attention/segment_vectors": (False, True, False),
    r".*layer_\d+/intermediate/kernel": (False, True),
    r".*layer_\d+/intermediate/bias": (True,),
    r".*layer_\d+/output/kernel": (True, False),
}


def layout_map(device_mesh: Any, axis: str = "model") -> Any:
    """The `keras.distribution.LayoutMap` of the stacks of this library.

    The number of heads, and `intermediate_size`, must be multiples of the devices of the axis.

    Args:
        device_mesh: a `keras.distribution.DeviceMesh`.
        axis: the name of the axis of the mesh that weights are divided over.

    Example:
        mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), devices=["cpu:0"])
        layout_map(mesh)["transformer_layer_0/attention/query/kernel"].axes  # (None, 'model')
    """
    layouts = keras.distribution.LayoutMap(device_mesh)
    for pattern, divided in LAYOUTS.items():
        layouts[pattern] = keras.distribution.TensorLayout([axis if is_divided else None for is_divided in divided])
    return layouts
