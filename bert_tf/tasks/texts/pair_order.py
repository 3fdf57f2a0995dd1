"""Pairs read the other way round: GPT-1 reads each pair of a similarity task in both orders.

Radford et al. 2018, section 3.3: "there is no inherent ordering of the two sentences being compared".
"""

from keras import ops

from bert_tf.errors import Advice, ConfigError


def check_layout(layout):
    """Refuses a layout in which the features do not show where the second text begins.

    Raises:
        ConfigError: the two texts have the same segment (RoBERTa).
    """
    if layout.second_segment == 0:
        raise ConfigError(
            "task.decoder.pair_order=both needs a tokenizer whose layout gives the second text a segment of its own, and this one "
            "gives both texts segment 0; set ",
            Advice("task.decoder.pair_order", "given"),
        )


def swap_texts(features, layout):
    """The features of pairs with the two texts exchanged; the special tokens stay where they belong.

    Args:
        features: dict of `token_ids`, `segment_ids` int32 [B, S], `padding_mask` bool [B, S], padding on the right.
        layout: the `Layout` that they were packed with.

    Returns:
        A dict of the same three.
    """
    inputs = (features[name] for name in ("token_ids", "segment_ids", "padding_mask"))
    token_ids, segments, mask = map(ops.convert_to_tensor, inputs)

    def tokens_of(segment):
        real = ops.logical_and(mask, ops.equal(segments, segment))
        return ops.sum(ops.cast(real, "int32"), axis=1, keepdims=True)  # [B, 1]

    before, after_first = len(layout.before_first), len(layout.after_first)
    between = after_first + len(layout.before_second)
    first = tokens_of(0) - before - after_first
    second = tokens_of(layout.second_segment) - len(layout.before_second) - len(layout.after_second)
    column = ops.broadcast_to(ops.arange(ops.shape(token_ids)[1], dtype="int32")[None], ops.shape(token_ids))
    # before_first, the second text, what is between them, the first text, and the rest as it is.
    ends = [before + 0 * first, before + second, before + second + between, before + second + between + first]
    sources = [column, column + first + between, column + first - second, column - second - between]
    source = column
    for end, moved in reversed(list(zip(ends, sources))):
        source = ops.where(ops.less(column, end), moved, source)
    of_first = ops.less(column, before + second + after_first)
    of_texts = ops.less(column, tokens_of(0) + tokens_of(layout.second_segment))
    segment_ids = ops.where(of_first, 0, ops.where(of_texts, layout.second_segment, segments))
    return {
        "token_ids": ops.take_along_axis(token_ids, ops.clip(source, 0, ops.shape(token_ids)[1] - 1), axis=1),
        "segment_ids": segment_ids,
        "padding_mask": mask,
    }
