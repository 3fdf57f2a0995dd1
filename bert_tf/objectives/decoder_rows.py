"""Sources and targets in the rows of a decoder."""

from keras import ops

from bert_tf.objectives.losses import feature
from bert_tf.types import Tensor, Tensors


def source_then_target(features: Tensors, prefix: bool) -> tuple[Tensors, Tensor]:
    """Joins each source and its target in one row, which a decoder reads: source, target, padding.

    Several texts of a row stay together: source 1, target 1, source 2, target 2, ...

    Args:
        features: dict with `token_ids` int [B, S], `target_ids` int [B, T], `target_weights` float [B, T], above 0 at
            the tokens of targets; where they are not the default `padding_mask` bool [B, S] (all real) and
            `sequence_ids` [B, S], `decoder_sequence_ids` int [B, T] (one text a row).
        prefix: whether there is a `prefix_mask`.

    Returns:
        A pair: dict of a decoder's inputs, [B, S + T] each: `token_ids`, `padding_mask`, with `prefix` also
        `prefix_mask`, True at sources, for several texts `sequence_ids` and `position_ids`; int32 [B, T], the position
        in the row that predicts each target: that of the token before it.
    """
    sources = ops.convert_to_tensor(feature(features, "token_ids"))
    targets = ops.cast(feature(features, "target_ids"), sources.dtype)
    token_ids = ops.concatenate([sources, targets], axis=1)
    is_target = ops.concatenate([ops.zeros_like(sources), ops.ones_like(targets)], axis=1)
    mask = features.get("padding_mask")
    mask = ops.ones_like(sources, dtype="bool") if mask is None else ops.cast(mask, "bool")
    real = ops.concatenate([mask, ops.cast(feature(features, "target_weights"), "float32") > 0], axis=1)
    several = features.get("sequence_ids") is not None
    if several:
        texts = [ops.cast(features[name], sources.dtype) for name in ("sequence_ids", "decoder_sequence_ids")]
        texts = ops.concatenate(texts, axis=1)
    else:
        texts = ops.cast(real, sources.dtype)
    # By text, its source before its target, padding last. All keys of a row differ, so that every sort gives one order.
    width = token_ids.shape[1]
    texts = ops.where(real, texts, width)
    order = ops.argsort((2 * texts + is_target) * width + ops.arange(width, dtype=sources.dtype), axis=1)

    def moved(values):
        return ops.take_along_axis(values, order, axis=1)

    inputs = {"token_ids": moved(token_ids), "padding_mask": moved(real)}
    if prefix:
        inputs["prefix_mask"] = moved(ops.logical_and(real, is_target == 0))
    if several:
        texts = moved(texts)
        first = ops.sum(ops.cast(texts[:, None, :] < texts[:, :, None], "int32"), axis=-1)
        inputs["sequence_ids"] = ops.where(inputs["padding_mask"], texts, 0)
        inputs["position_ids"] = ops.arange(width, dtype="int32") - first
    rank = ops.cast(ops.argsort(order, axis=1), "int32")
    return inputs, ops.maximum(rank[:, -targets.shape[1] :] - 1, 0)
