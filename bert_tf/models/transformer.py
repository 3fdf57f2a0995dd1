"""What BERT and the families with its layers share: the stack of layers and the functional model."""

from bert_tf.layers import AttentionMask, TransformerBlock


def transformer_block(config, dtype, name):
    """A `TransformerBlock` with the numbers of a family's configuration."""
    return TransformerBlock(
        num_heads=config.num_heads,
        intermediate_size=config.intermediate_size,
        activation=config.activation,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        initializer_range=config.initializer_range,
        dtype=dtype,
        name=name,
    )


def transformer_blocks(config, dtype):
    """`config.num_layers` blocks with weights of their own, `transformer_layer_0` and so on."""
    return [transformer_block(config, dtype, f"transformer_layer_{i}") for i in range(config.num_layers)]


def encode(
    inputs,
    embeddings,
    blocks,
    dtype,
    projection=None,
    pooler=None,
    output_hidden_states=False,
    output_attention_scores=False,
):
    """The functional model: embeddings, layers, pooler.

    Args:
        inputs: `encoder_inputs()`.
        embeddings: layer from token, segment and position ids to [B, S, E].
        blocks: layers from ([B, S, H], attention mask) to [B, S, H], in the order of their calls;
            one that stands here several times shares its weights.
        dtype: dtype policy of the mask.
        projection: layer from [B, S, E] to [B, S, H], or None where the two are the same.
        pooler: layer from [B, S, H] to [B, H], or None.
        output_hidden_states, output_attention_scores: whether to return all layers' too.

    Returns:
        dict of symbolic tensors: an encoder's outputs (DESIGN, section 3).
    """
    mask = AttentionMask(dtype=dtype, name="attention_mask")(
        inputs["token_ids"],
        padding_mask=inputs["padding_mask"],
        sequence_ids=inputs["sequence_ids"],
    )
    x = embeddings(
        inputs["token_ids"],
        segment_ids=inputs["segment_ids"],
        position_ids=inputs["position_ids"],
    )
    if projection is not None:
        x = projection(x)
    hidden_states, attention_scores = [x], []
    for block in blocks:
        x = block(x, mask, return_attention_scores=output_attention_scores)
        if output_attention_scores:
            x, scores = x
            attention_scores.append(scores)
        hidden_states.append(x)
    outputs = {"sequence_output": x}
    if pooler is not None:
        outputs["pooled_output"] = pooler(x)
    if output_hidden_states:
        outputs["hidden_states"] = hidden_states
    if output_attention_scores:
        outputs["attention_scores"] = attention_scores
    return outputs
