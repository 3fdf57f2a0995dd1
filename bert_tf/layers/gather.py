"""The vectors at some positions."""

from keras import ops


def gather_positions(sequence, positions):
    """Returns the vectors at some positions of each sequence.

    It gathers from the flattened batch, as `gather_indexes` in google-research/bert, which copies whole vectors;
    `take_along_axis` would look up one number at a time.

    Args:
        sequence: [B, S, H].
        positions: int [B, P], each in 0..S-1.

    Returns:
        [B, P, H].
    """
    batch, length, size = ops.shape(sequence)
    offsets = ops.arange(batch, dtype=positions.dtype)[:, None] * length
    flat = ops.reshape(sequence, (batch * length, size))
    return ops.take(flat, positions + offsets, axis=0)
