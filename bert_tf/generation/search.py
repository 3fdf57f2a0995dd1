"""The texts that a configuration asks for, by whichever method."""

from bert_tf.generation.beams import beam_search
from bert_tf.generation.sampling import SAME, generate_tokens


def find_texts(steps, config, restrictions, filler=0, each=SAME, ends=None):
    """What `beam_search` or `generate_tokens` finds for each prompt, best first.

    Args:
        steps, config, restrictions, filler, each: of `generate_tokens`.
        ends: of `generate_tokens`. Beam search does not read it: there only stop tokens end a text.

    Returns:
        dict: `token_ids` int32 [B, n, N]; `lengths` int32 and `scores` float32 [B, n]; n is `config.n_best`.

    Example:
        steps = DecoderSteps(gpt, np.array([[5, 6]]), np.array([[True, True]]), max_new_tokens=4)
        find_texts(steps, GenerationConfig(max_new_tokens=4), Restrictions(stop_ids=(3,)))["token_ids"]  # [1, 1, 4]
    """
    if config.method == "beam_search":
        return beam_search(steps, config, restrictions, filler, each)
    found = generate_tokens(steps, config, restrictions, filler, each, ends)
    return {name: value[:, None] for name, value in found.items()}
