"""The sizes that a configuration claims, held against the arrays beside it before a model is built.

A configuration is a small file that can ask for any amount of memory. The arrays cannot: a shape
that a file claims is checked against the bytes that it has.
"""

import re

from bert_tf.errors import DataError

#: Arrays of one checkpoint; the largest published model of these families has under 1,000.
MAX_ARRAYS = 20_000
#: Layers that may share their weights, so that no array shows how many there are (ALBERT).
MAX_SHARED_LAYERS = 1000

_BLOCK = re.compile(r"(?P<scope>generator/)?transformer_(?:layer_\d+|group_\d+_layer_\d+)/")


def check_sizes(config, shapes, where, scope=""):
    """Refuses a configuration that asks for other sizes than the arrays have, or for more layers.

    Args:
        config: of the encoder.
        shapes: dict from the path of a variable to (name of the array, its shape as our variable has it).
        where: the checkpoint; begins the message.
        scope: "generator/" for the generator of an ELECTRA.

    Raises:
        DataError: lists what differs.
    """
    blocks = {match[0] for path in shapes if (match := _BLOCK.match(path)) and (match["scope"] or "") == scope}
    expected, layers = _expected_shapes(config, scope, blocks)
    problems = []
    if len(blocks) < layers:
        problems.append(f"the configuration asks for {layers:,} layers, the file holds {len(blocks):,}")
    if config.num_layers > MAX_SHARED_LAYERS and layers != config.num_layers:
        problems.append(f"the configuration asks for {config.num_layers:,} layers; at most {MAX_SHARED_LAYERS:,} are opened")
    for path, (names, shape) in expected.items():
        if path not in shapes:
            problems.append(f"nothing fills '{path}', to which the configuration gives the shape {shape}")
        elif tuple(shapes[path][1]) != shape:
            name, found = shapes[path]
            problems.append(f"'{name}' has shape {tuple(found)}; the configuration asks for {shape} ({names})")
    if problems:
        raise DataError(f"{where}: the configuration does not fit the weights:\n  " + "\n  ".join(problems))


def _expected_shapes(config, scope, blocks):
    """Path of a variable -> (the fields that its shape comes from, the shape); and how many blocks there must be.

    Every array of the encoder whose size is a product of two fields is either here, or a product
    of two that are both shown here to be as large as a whole row or column of a file.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    width = getattr(config, "embedding_size", hidden)
    width_name = "embedding_size" if hasattr(config, "embedding_size") else "hidden_size"
    expected = {"embeddings/token_embeddings": (f"vocabulary_size, {width_name}", (config.vocabulary_size, width))}
    is_modern, is_xlnet = hasattr(config, "local_attention"), hasattr(config, "clamp_length")
    if not is_modern and not is_xlnet:
        rows = config.max_positions + (config.padding_id + 1 if hasattr(config, "padding_id") else 0)
        expected["embeddings/position_embeddings"] = (f"max_positions, {width_name}", (rows, width))
    if getattr(config, "num_segments", 0):
        expected["embeddings/segment_embeddings"] = (f"num_segments, {width_name}", (config.num_segments, width))
    if width != hidden:
        expected[f"{scope}embedding_projection/kernel"] = ("embedding_size, hidden_size", (width, hidden))
    for block in blocks:
        both = 2 * inner if is_modern else inner
        expected[f"{block}intermediate/kernel"] = ("hidden_size, intermediate_size", (hidden, both))
        if is_xlnet:
            heads = (hidden, config.num_heads, hidden // config.num_heads)
            expected[f"{block}attention/query_kernel"] = ("hidden_size, num_heads", heads)
        elif is_modern:
            expected[f"{block}attention/query_key_value/kernel"] = ("hidden_size", (hidden, 3 * hidden))
        else:
            expected[f"{block}attention/query/kernel"] = ("hidden_size", (hidden, hidden))
    shared = getattr(config, "share", "none") == "all"
    return expected, config.num_groups * config.inner_groups if shared else config.num_layers
