"""Layer-wise learning rate decay: lower layers change less than higher ones."""

from bert_tf.backend import scale_updates
from bert_tf.training.depth import depths

#: XLNet's variables that its original keeps in one array for all layers, outside of the layers.
XLNET_SHARED = ("content_bias", "position_bias", "segment_bias", "segment_vectors")


def set_layer_decay(optimizer, model, decay, variant="electra"):
    """Gives each variable of `model` its own factor; changes the optimizer in place.

    Args:
        optimizer: a Keras optimizer that is not built yet.
        model: a `TaskModel`.
        decay: the factor from a layer to the one below it.
        variant: "electra" or "xlnet"; see `electra_factors` and `xlnet_factors`.

    Raises:
        ConfigError: as `depths`.
    """
    depth, layers = depths(model, "train.trainable.layer_decay")
    if variant == "electra":
        scale_updates(optimizer, rate_factors=electra_factors(depth, layers, decay))
    else:
        scale_updates(optimizer, gradient_factors=xlnet_factors(depth, layers, decay))


def electra_factors(depth, layers, decay):
    """Factors of the learning rate: decay^(n + 2 - depth), where n is the number of layers.

    Clark et al. 2020, appendix B; `_get_layer_lrs` in google-research/electra `model/optimization.py`. The head keeps
    the whole learning rate, the top layer has decay^2 of it, the embeddings have decay^(n + 2). The original has
    nothing at depth n + 1, where our backbones may have a pooler.
    """
    return {path: decay ** (layers + 2 - d) for path, d in depth.items()}


def xlnet_factors(depth, layers, decay):
    """Factors of the gradient: decay^(n - 1 - i) for layer i from 0; 1 for embeddings, head and attention biases.

    Yang et al. 2019, appendix A.3; `get_train_op` in zihangdai/xlnet `model_utils.py`, which multiplies the clipped
    gradients. Adam divides a gradient by its own size, so a constant factor changes its updates only through epsilon.
    """
    return {
        path: decay ** (layers - d)
        for path, d in depth.items()
        if 1 <= d <= layers and path.rsplit("/", 1)[-1] not in XLNET_SHARED
    }
