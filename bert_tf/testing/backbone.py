"""The contract of a backbone, checked on a small one."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf

from bert_tf.backend.randomness import step_randomness
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError, DataError
from bert_tf.models.model_config import DROPOUT_RATES

#: Positions of the checked sequences, and of those of them that hold tokens.
LENGTH, REAL = 9, 6
POSITIONS = np.array([[3, 0, 3], [5, 1, 2]], "int32")


def check_backbone(encoder, folder, unreached=(), packing=True, training=True, tolerance=1e-4):
    """Checks a model of any family and kind, imported ones too.

    - Inputs and outputs have the declared names, dtypes and shapes, for static and dynamic batches; inputs that are
      left out have their defaults; a missing or unknown input is refused.
    - Padding changes nothing at real positions; a packed sequence has the outputs that it has alone.
    - `outputs_at` equals the outputs at these positions, its gradients theirs; encoder-decoders have none.
    - Gradients reach every trainable weight and are finite.
    - `get_config`, a `.keras` file, and weights assigned by their paths make the same model again; so does
      `keras.models.clone_model`, as a functional model without optional inputs. An exported model answers the same.
    - Dropout is active only in training, and a pure function of the seed. Gradient checkpointing (`remat`) changes
      no gradient.
    - bfloat16 and float16 give finite outputs close to those of float32.

    Args:
        encoder: a small encoder in float32, of 9 positions or more.
        folder: an empty folder to write into.
        unreached: paths of weights that are trained only by an objective of the family, such as XLNet's
            "embeddings/query_vector".
        packing: False for a model that does not separate the texts of a packed sequence.
        training: False leaves out dropout and gradient checkpointing, half of the time: for another model of a class
            that was checked.
        tolerance: absolute, of outputs of order 1 that must be equal up to rounding.

    Raises:
        AssertionError: names what differs.

    Example:
        check_backbone(BertEncoder(BertConfig(100, 16, 2, 2, 32)), tmp_path)
    """
    plain = _copy(encoder, rate=0.0)
    _check_declared(plain, tolerance)
    _check_padding(plain, tolerance)
    if packing:
        _check_packing(plain, tolerance)
    if encoder.structure != "encoder_decoder":
        _check_outputs_at(plain, tolerance)
    _check_gradients(plain, unreached)
    _check_round_trips(encoder, folder)
    if training:
        _check_randomness(_copy(encoder, rate=0.3), plain, tolerance)
    _check_precision(plain)


def _copy(encoder, rate=None, **changes):
    """A model with the same weights, with dropout of another rate, or with other arguments of its constructor."""
    config = encoder.config
    if rate is not None:
        rates = set(DROPOUT_RATES) & to_dict(config).keys()
        config = dataclasses.replace(config, **dict.fromkeys(rates, rate))
    copy = type(encoder).from_config(encoder.get_config() | {"config": to_dict(config)} | changes)
    _assign(copy, encoder)
    return copy


def _assign(model, other):
    weights = {v.path: v for v in other.weights}
    assert len(weights) == len(other.weights), "two weights have the same path"
    assert weights.keys() == {v.path for v in model.weights}
    for variable in model.weights:
        variable.assign(weights[variable.path])


def _tokens(encoder, *shape, seed=0):
    """Ids of the vocabulary's upper half: none is RoBERTa's padding id, which changes positions.

    Of a model that reads the characters of words, ids for each character.
    """
    size, shape = encoder.config.vocabulary_size, (*shape, *encoder.input["token_ids"].shape[2:])
    return np.random.default_rng(seed).integers(size // 2, size, shape).astype("int32")


def _inputs(encoder):
    """Two sequences, the second with padding at its end."""
    mask = np.arange(LENGTH) < [[LENGTH], [REAL]]
    return _given(encoder, {"token_ids": _tokens(encoder, 2, LENGTH), "padding_mask": mask})


def _given(encoder, inputs):
    """Those of the inputs that the model has; an encoder-decoder gets the same text on both sides."""
    both = inputs | {f"decoder_{name}": value for name, value in inputs.items()}
    return {name: value for name, value in both.items() if name in encoder.input}


def _check_declared(encoder, tolerance):
    inputs = _inputs(encoder)
    outputs = encoder(inputs)
    declared = encoder.output
    assert outputs.keys() == declared.keys(), f"declared {sorted(declared)}, computed {sorted(outputs)}"
    for name in outputs:
        for tensor, symbol in zip(tf.nest.flatten(outputs[name]), tf.nest.flatten(declared[name]), strict=True):
            assert keras.backend.standardize_dtype(tensor.dtype) == symbol.dtype, name
            assert len(tensor.shape) == len(symbol.shape), name
            assert all(a in (None, b) for a, b in zip(symbol.shape, tensor.shape)), (name, symbol.shape, tensor.shape)
    assert outputs["sequence_output"].shape == (2, LENGTH, encoder.config.hidden_size)
    assert encoder.embedding_table.shape[0] == encoder.config.vocabulary_size

    for batch, length in ((None, None), (2, LENGTH)):
        signature = {
            name: tf.TensorSpec([batch, length, *value.shape[2:]], value.dtype) for name, value in inputs.items()
        }
        traced = tf.function(lambda tensors: encoder(tensors), input_signature=[signature])
        _assert_close(traced(inputs), outputs, tolerance)

    ids = inputs["token_ids"]
    defaults = {
        "segment_ids": np.zeros(ids.shape[:2], "int32"),
        "padding_mask": np.ones(ids.shape[:2], bool),
        "sequence_ids": np.ones(ids.shape[:2], "int32"),
        "position_ids": np.tile(np.arange(LENGTH, dtype="int32"), (2, 1)),
    }
    alone = encoder(_given(encoder, {"token_ids": ids}))
    for name in defaults.keys() & encoder.input.keys():
        _assert_close(encoder(_given(encoder, {"token_ids": ids, name: defaults[name]})), alone, tolerance)
    for wrong in (
        {"padding_mask": inputs["padding_mask"]},
        {"token_ids": ids, "no_input": ids},
        ids,
        {"token_ids": ids[0]},
    ):
        try:
            encoder(wrong)
        except DataError:
            continue
        raise AssertionError(f"inputs that are not declared were accepted: {wrong}")


def _check_padding(encoder, tolerance):
    ids = _tokens(encoder, 2, REAL)
    alone = encoder(_given(encoder, {"token_ids": ids}))
    for seed in (1, 2):
        padded = np.concatenate([ids, _tokens(encoder, 2, LENGTH - REAL, seed=seed)], 1)
        mask = np.tile(np.arange(LENGTH) < REAL, (2, 1))
        outputs = encoder(_given(encoder, {"token_ids": padded, "segment_ids": 1 * ~mask, "padding_mask": mask}))
        _assert_close(outputs["sequence_output"][:, :REAL], alone["sequence_output"], tolerance)
        if "pooled_output" in alone:
            _assert_close(outputs["pooled_output"], alone["pooled_output"], tolerance)


def _check_packing(encoder, tolerance):
    lengths = (3, 4)
    row = {
        "token_ids": _tokens(encoder, 1, LENGTH),  # whatever is at padding
        "segment_ids": np.array([[0, 0, 1, 0, 1, 1, 1, 1, 1]], "int32"),
        "sequence_ids": np.array([[1, 1, 1, 2, 2, 2, 2, 0, 0]], "int32"),
        "position_ids": np.array([[0, 1, 2, 0, 1, 2, 3, 0, 1]], "int32"),
    }
    packed, start = encoder(_given(encoder, row))["sequence_output"], 0
    for length in lengths:
        columns = slice(start, start + length)
        text = {name: row[name][:, columns] for name in ("token_ids", "segment_ids")}
        alone = encoder(_given(encoder, text))["sequence_output"]
        _assert_close(packed[:, columns], alone, tolerance)
        start += length


def _check_outputs_at(encoder, tolerance):
    inputs = _inputs(encoder)

    def gathered():
        outputs = encoder(inputs)
        vectors = tf.gather(outputs["sequence_output"], POSITIONS, batch_dims=1)
        return {"sequence_output": vectors} | {k: outputs[k] for k in ("pooled_output",) if k in outputs}

    expected, expected_gradients = _gradients(encoder, gathered)
    outputs, gradients = _gradients(encoder, lambda: encoder.outputs_at(inputs, POSITIONS))
    assert outputs.keys() == expected.keys()
    _assert_close(outputs, expected, tolerance)
    _assert_equal_gradients(gradients, expected_gradients, tolerance)


def _gradients(encoder, compute):
    """What `compute` returns, and path -> gradient of a function of it that no normalization keeps constant."""
    with tf.GradientTape() as tape:
        outputs = compute()
        flat = [tf.cast(x, tf.float32) for x in tf.nest.flatten(outputs)]
        directions = [np.random.default_rng(i).normal(size=x.shape).astype("float32") for i, x in enumerate(flat)]
        loss = tf.add_n([tf.reduce_sum(x * direction) for x, direction in zip(flat, directions)])
    variables = encoder.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    arrays = (None if g is None else tf.convert_to_tensor(g).numpy() for g in gradients)
    return outputs, dict(zip((v.path for v in variables), arrays))


def _check_gradients(encoder, unreached):
    inputs = _inputs(encoder) | {"segment_ids": np.arange(2 * LENGTH, dtype="int32").reshape(2, LENGTH) % 2}
    _, gradients = _gradients(encoder, lambda: encoder(inputs))
    missing = {path for path, gradient in gradients.items() if gradient is None}
    assert missing == set(unreached), f"without a gradient: {sorted(missing)}"
    for path, gradient in gradients.items():
        assert gradient is None or np.isfinite(gradient).all(), path


def _check_round_trips(encoder, folder):
    again = _copy(encoder)
    assert again.get_config() == encoder.get_config()
    assert not any(v.trainable for v in _copy(encoder, trainable=False).weights)
    encoder.save(folder / "encoder.keras")
    loaded = keras.saving.load_model(folder / "encoder.keras")
    assert type(loaded) is type(encoder) and loaded.get_config() == encoder.get_config()
    assert [v.path for v in loaded.weights] == [v.path for v in encoder.weights]
    expected = encoder(_inputs(encoder))
    for model in (again, loaded):
        tf.nest.map_structure(np.testing.assert_array_equal, model(_inputs(encoder)), expected)

    _check_clone(encoder)
    if encoder.output.keys() & {"hidden_states", "attention_scores"}:
        return  # lists of tensors, which cannot be exported
    encoder.export(folder / "exported", verbose=False)
    exported = tf.saved_model.load(folder / "exported")
    names = exported.signatures["serving_default"].structured_input_signature[1]
    inputs = {name: value for name, value in _all_inputs(encoder).items() if name in names}
    _assert_close(exported.serve(inputs), encoder(inputs), 1e-5)


def _check_clone(encoder):
    try:
        clone = keras.models.clone_model(encoder)
    except ConfigError as error:
        assert "shares weights with another layer" in str(error)  # Keras copies each layer for itself
        return
    for layer in clone.layers:  # not by path: Keras names the layers of a Bidirectional again
        layer.set_weights(encoder.get_layer(layer.name).get_weights())
    inputs = _all_inputs(encoder)
    _assert_close(clone(inputs), encoder(inputs), 1e-5)


def _all_inputs(encoder):
    """Values for all inputs that the model declares, those that may be left out, too."""
    ids = _tokens(encoder, 2, LENGTH)
    zeros, mask = np.zeros(ids.shape[:2], "int32"), np.arange(LENGTH) < [[LENGTH], [REAL]]
    values = {
        "token_ids": ids,
        "segment_ids": zeros,
        "padding_mask": mask,
        "sequence_ids": 1 * mask,
        "position_ids": np.tile(np.arange(LENGTH, dtype="int32"), (2, 1)),
        "prefix_mask": zeros > 0,
    }
    return _given(encoder, values)


def _check_randomness(dropped, plain, tolerance):
    """`dropped` has the weights of `plain` and dropout."""
    inputs = _inputs(plain)
    _assert_close(dropped(inputs), plain(inputs), tolerance)

    def run(seed, remat):
        with step_randomness(seed, dropped, recomputes=remat), tf.GradientTape() as tape:
            output = dropped(inputs, training=True)["sequence_output"]
            loss = tf.reduce_sum(tf.cast(output, tf.float32) ** 2 * tf.cos(tf.range(float(output.shape[-1]))))
        variables = [v.value for v in dropped.trainable_variables]
        return output, tape.gradient(loss, variables, unconnected_gradients="zero")

    first, second = tf.constant([1, 2]), tf.constant([1, 3])
    output, gradients = run(first, False)
    np.testing.assert_array_equal(run(first, False)[0], output)
    rates = set(DROPOUT_RATES) & to_dict(dropped.config).keys()
    if rates:
        assert np.abs(run(second, False)[0] - output).max() > 1e-3, "dropout does not depend on the seed"
    remat_output, remat_gradients = run(first, True)
    _assert_close(remat_output, output, tolerance)
    paths = [v.path for v in dropped.trainable_variables]
    as_arrays = [dict(zip(paths, (tf.convert_to_tensor(x).numpy() for x in g))) for g in (remat_gradients, gradients)]
    _assert_equal_gradients(*as_arrays, tolerance)


def _check_precision(plain):
    inputs = _inputs(plain)
    outputs = plain(inputs)
    for policy in ("mixed_bfloat16", "mixed_float16"):
        mixed = _copy(plain, dtype=policy)
        assert {v.dtype for v in mixed.weights} == {"float32"}
        dtype = keras.dtype_policies.get(policy).compute_dtype
        for name, value in mixed(inputs).items():
            if name not in ("sequence_output", "pooled_output"):
                continue
            exact = np.asarray(outputs[name])
            assert keras.backend.standardize_dtype(value.dtype) == dtype, name
            value = np.asarray(keras.ops.cast(value, "float32"))
            assert np.isfinite(value).all(), name
            error = np.sqrt(((value - exact) ** 2).mean() / (exact**2).mean())
            assert error < 0.1, f"{name} in {policy} differs by {error:.3f} of its size"


def _assert_close(actual, expected, tolerance):
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=tolerance), actual, expected)


def _assert_equal_gradients(actual, expected, tolerance):
    for path, gradient in expected.items():
        if gradient is None or actual[path] is None:
            assert not np.any(gradient) and not np.any(actual[path]), path
            continue
        scale = max(1.0, np.abs(gradient).max())
        np.testing.assert_allclose(actual[path], gradient, rtol=0, atol=10 * tolerance * scale, err_msg=path)
