"""What is inside a model while it computes: hidden states, queries, keys, values and attention scores, on request.

Distillation compares them between a teacher and a student. Layers call `note` with what they compute; outside of
`recording` this does nothing and costs nothing.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

from bert_tf.types import Options, Tensor

_active = threading.local()  # MirroredStrategy traces each replica in a thread of its own


@dataclasses.dataclass
class Internals:
    """What the layers of one forward pass computed, in the order of their calls; see `recording`.

    Attributes:
        block_inputs, block_outputs: of each transformer layer, float [B, S, H].
        queries, keys, values: of each self-attention, float [B, S, n, d].
        scores: of each self-attention, float32 [B, n, S, S] before the softmax, the mask and biases added.

    Example:
        encoder = BertEncoder(BertConfig(100, 16, num_layers=2, num_heads=2, intermediate_size=32))
        with recording() as internals:
            encoder({"token_ids": np.array([[5, 6, 7]])})
        internals.hidden_states[0].shape  # [1, 3, 16], the embeddings
    """

    block_inputs: list[Tensor] = dataclasses.field(default_factory=list)
    block_outputs: list[Tensor] = dataclasses.field(default_factory=list)
    queries: list[Tensor] = dataclasses.field(default_factory=list)
    keys: list[Tensor] = dataclasses.field(default_factory=list)
    values: list[Tensor] = dataclasses.field(default_factory=list)
    scores: list[Tensor] = dataclasses.field(default_factory=list)

    @property
    def hidden_states(self) -> list[Tensor]:
        """What enters the first layer and what leaves each: list of L + 1 float [B, S, H]."""
        return self.block_inputs[:1] + self.block_outputs


@contextlib.contextmanager
def recording() -> Iterator[Internals]:
    """Keeps what the layers that are called in this block compute; yields the `Internals`.

    Models compute all layers at all positions in the block (`outputs_at` too). Families with layers of their own
    (XLNet) leave it empty. It does not see into layers under gradient checkpointing.
    """
    previous = getattr(_active, "internals", None)
    _active.internals = Internals()
    try:
        yield _active.internals
    finally:
        _active.internals = previous


def is_recording() -> bool:
    """Whether `recording` is active."""
    return getattr(_active, "internals", None) is not None


def note(**tensors: Options) -> None:
    """Adds tensors to the lists of these names, if `recording` is active."""
    if is_recording():
        for name, tensor in tensors.items():
            getattr(_active.internals, name).append(tensor)
