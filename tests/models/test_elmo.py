"""ELMo: the vectors of bilm-tf's test fixture, one step in float64, sizes, checkpoints; the biLM of transformers."""

import json
import shutil
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import open_source
from bert_tf.errors import ConfigError, DataError
from bert_tf.layers import LSTM, CharacterEmbeddings, ScalarMix
from bert_tf.models import build_backbone
from bert_tf.models.elmo.config import ElmoConfig, TransformerBiLMConfig
from bert_tf.models.elmo.model import BidirectionalLayer, Elmo, TransformerBiLM
from bert_tf.models.gpt1.config import GPT1Config
from bert_tf.models.gpt1.model import GPT1Decoder
from bert_tf.objectives import BidirectionalLM, CausalLM
from tfrecords import WordsConfig

FIXTURE = Path(__file__).parents[1] / "fixtures" / "elmo"
TINY = dict(hidden_size=12, num_layers=2, units=10, character_size=4, filters=((1, 6), (3, 6)), highways=1, dropout=0.0)


@pytest.fixture(scope="module")
def published():
    source = open_source(FIXTURE)
    encoder = build_backbone(source.config, dtype="float32")
    source.fill(encoder)
    return encoder, source.tokenizer


def batches():
    """The sentences of the fixture in batches of three, one from each file, and the vectors that bilm-tf gave them."""
    sentences = json.loads((FIXTURE / "lm_embeddings_sentences.json").read_text())
    files = [h5py.File(FIXTURE / f"lm_embeddings_{i}.hdf5") for i in range(3)]
    for number in range(10):
        yield [texts[number] for texts in sentences], [file[str(number)][...] for file in files]


def test_vectors_of_bilm_with_carried_state(published):
    encoder, tokenizer = published
    # An LSTM run step by step is slow.
    outputs_of_layers = tf.function(encoder.outputs_of_layers, reduce_retracing=True)
    state, first = None, True
    for texts, expected in batches():
        batch = tokenizer.pack(tokenizer.tokenize(texts), sequence_length=64)
        inputs = {name: batch[name] for name in ("token_ids", "padding_mask")}
        hidden_states, state = outputs_of_layers(inputs, state)
        alone, _ = outputs_of_layers(inputs)
        for row, vectors in enumerate(expected):
            words = slice(1, 1 + vectors.shape[1])  # without <S> and </S>
            top = np.asarray(hidden_states[-1])[row, words]
            np.testing.assert_allclose(np.split(top, 2, axis=-1), vectors, rtol=0, atol=1e-6)
        # The same texts from zeros: equal in the first batch alone.
        last = np.abs(np.asarray(alone[-1])[row, words] - top).max()
        assert last == 0 if first else last > 0.1
        first = False


# -- one step, and sizes -----------------------------------------------------------------------------


def steps(x, reset, w, b, p, clip, limit):
    """The LSTM of bilm-tf over [S, F] in float64; the state is zeros where `reset` is True."""
    c, h, outputs = np.zeros(len(p)), np.zeros(p.shape[1]), []
    for row, new in zip(x, reset):
        c, h = (0 * c, 0 * h) if new else (c, h)
        i, j, f, o = np.split(np.concatenate([row, h]) @ w + b, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f + 1, o))
        c = np.clip(f * c + i * np.tanh(j), -clip, clip)
        h = np.clip((o * np.tanh(c)) @ p, -limit, limit)
        outputs.append(h)
    return np.array(outputs), c, h


@pytest.mark.parametrize("backwards", [False, True])
def test_an_lstm_is_the_formula_for_packed_and_padded_rows(backwards):
    rng = np.random.default_rng(0)
    layer = LSTM(5, projection=3, cell_clip=0.4, projection_clip=0.3, backwards=backwards)
    layer.build((None, None, 4))
    w, b, p = rng.normal(size=(7, 20)), rng.normal(size=20), rng.normal(size=(5, 3))
    for variable, value in ((layer.input_kernel, w[:4]), (layer.bias, b), (layer.cell.recurrent_kernel, w[4:]),
                            (layer.cell.projection_kernel, p)):  # fmt: skip
        variable.assign(value)
    x = rng.normal(size=(1, 6, 4)).astype("float32")
    texts, mask = np.array([[1, 1, 2, 2, 2, 0]]), np.arange(6)[None] < 5
    y, (c, h) = layer(x, padding_mask=mask, sequence_ids=texts)
    row, reset = x[0, :5].astype("float64"), np.array([True, False, True, False, False])
    if backwards:
        row, reset = row[::-1], np.array([True, False, False, True, False])
    outputs, cell, last = steps(row, reset, w, b, p, 0.4, 0.3)
    assert np.abs(outputs).max() == 0.3 and np.abs(cell).max() == 0.4, "both clips act"
    np.testing.assert_allclose(y[0, :5], outputs[::-1] if backwards else outputs, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([c[0], h[0]]), np.concatenate([cell, last]), atol=1e-6)
    assert not np.any(y[0, 5:])


@pytest.mark.parametrize("backwards", [False, True])
def test_truncated_backpropagation_cuts_the_gradient_and_not_the_state(backwards):
    """The gradients are the sum of those of each segment alone, from the last state of the segment before as a constant."""
    rng = np.random.default_rng(3)
    options = {"projection": 3, "cell_clip": 3.0, "projection_clip": 3.0, "backwards": backwards}
    whole, cut = LSTM(5, **options), LSTM(5, unroll=3, **options)
    x, texts = tf.constant(rng.normal(size=(2, 8, 4)), tf.float32), np.array([[1] * 8, [1, 1, 1, 1, 2, 2, 2, 2]])
    factors = rng.normal(size=(2, 8, 3)).astype("float32")
    for layer in (whole, cut):
        layer.build((None, None, 4))
    for ours, theirs in zip(cut.weights, whole.weights, strict=True):
        ours.assign(theirs)

    def gradients(layer, segments):
        variables = [variable.value for variable in layer.trainable_variables]
        state, loss, outputs = None, 0.0, {}
        with tf.GradientTape() as tape:
            for segment in segments:
                y, after = layer(x[:, segment], sequence_ids=texts[:, segment], state=state)
                loss += tf.reduce_sum(y * factors[:, segment])
                state, outputs[segment.start] = tf.nest.map_structure(tf.stop_gradient, after), y
        found = tape.gradient(loss, variables)
        return found, np.concatenate([outputs[start] for start in sorted(outputs)], axis=1)

    # Segments are counted in the direction of reading. The second text of row 1 begins inside one, where the state is reset.
    segments = [slice(5, 8), slice(2, 5), slice(0, 2)] if backwards else [slice(0, 3), slice(3, 6), slice(6, 8)]
    expected, by_segment = gradients(whole, segments)
    uncut, outputs = gradients(whole, [slice(0, 8)])
    found, truncated = gradients(cut, [slice(0, 8)])
    np.testing.assert_array_equal(truncated, outputs)
    np.testing.assert_allclose(by_segment, outputs, atol=1e-6)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert max(np.abs(one - through).max() for one, through in zip(found, uncut, strict=True)) > 1e-2


def test_output_dropout_is_behind_the_skip_and_in_the_last_layer_alone():
    keras.utils.set_random_seed(0)
    layer = BidirectionalLayer(8, 16, 3.0, 3.0, skips=True, dropout=0.0, output_dropout=0.5)
    x = np.ones((4, 16, 32), "float32")
    after, before = (np.asarray(layer(x, training=training)[0]) for training in (True, False))
    kept = after != 0
    assert abs(kept.mean() - 0.5) < 3 * 0.5 / np.sqrt(after.size)
    np.testing.assert_allclose(after[kept], 2 * before[kept], rtol=1e-6)
    blocks = Elmo(ElmoConfig(**TINY | {"dropout": 0.25, "num_layers": 3}))._elmo_layers.blocks
    assert [[d.rate for d in block.dropouts[0]] for block in blocks] == [[0.25, 0], [0.25, 0], [0.25, 0.25]]


def test_initial_kernels_have_the_deviation_of_bilm():
    """`random_normal_initializer(stddev=sqrt(1 / n_filters))` of training.py, of highways and projection."""
    keras.utils.set_random_seed(0)
    layer = CharacterEmbeddings(9, 3, [(1, 200), (2, 200)], highways=1, size=300)
    layer.build((None, None, 5))
    kernels = [v for v in layer.weights if v.path.endswith("kernel") and v.shape[0] == 400]
    assert len(kernels) == 3
    for kernel in kernels:
        assert float(np.std(kernel)) == pytest.approx(400**-0.5, rel=0.01)


def test_a_mix_normalizes_over_real_tokens():
    rng = np.random.default_rng(2)
    states = rng.normal(3, 2, size=(2, 2, 3, 4)).astype("float32")
    mask = np.array([[True, True, False], [True, True, True]])
    mix = ScalarMix(2, normalizes=True)
    mix.build()
    mix.weight.assign([0.5, -0.5])
    mix.gamma.assign(2.0)
    shares = np.exp([0.5, -0.5]) / np.exp([0.5, -0.5]).sum()
    expected = 0
    for share, state in zip(shares, states.astype("float64")):
        expected = expected + 2 * share * (state - state[mask].mean()) / state[mask].std()
    np.testing.assert_allclose(mix(list(states), padding_mask=mask), expected, atol=1e-5)


# -- files -------------------------------------------------------------------------------------------


def test_weights_are_written_back_as_they_were(published, tmp_path):
    encoder, _ = published
    bert_tf.save(encoder, None, tmp_path / "again", format="bilm")
    with h5py.File(FIXTURE / "weights.hdf5") as theirs, h5py.File(tmp_path / "again" / "weights.hdf5") as ours:
        names = []
        theirs.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in names:
            np.testing.assert_array_equal(ours[name], theirs[name])
        assert "mix" not in ours
    options = [json.loads((folder / "options.json").read_text()) for folder in (FIXTURE, tmp_path / "again")]
    assert options[0] == options[1]
    encoder = Elmo(ElmoConfig(**TINY))
    encoder.get_layer("layer_mix").gamma.assign(2.0)
    bert_tf.save(encoder, None, tmp_path / "trained", format="bilm")
    source = open_source(tmp_path / "trained")
    again = build_backbone(source.config)
    source.fill(again)
    for ours, theirs in zip(again.weights, encoder.weights, strict=True):
        if "character_embeddings" not in ours.path:  # its row of padding words is not in the file
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("section, key, value, message", [
    ("lstm", "dim", 32, "has shape"),
    ("lstm", "n_layers", 3, "nothing fills"),
    ("lstm", "layer_norm", True, "lstm/layer_norm"),
    ("char_cnn", "filters", [[1, 4], [60, 8]], "filters holds"),
    ("char_cnn", "activation", "selu", "activation is 'selu'"),
])  # fmt: skip
def test_options_that_do_not_fit(section, key, value, message, tmp_path):
    options = json.loads((FIXTURE / "options.json").read_text())
    options[section][key] = value
    (tmp_path / "options.json").write_text(json.dumps(options))
    shutil.copy(FIXTURE / "weights.hdf5", tmp_path)
    with pytest.raises((ConfigError, DataError), match=message):
        _ = bert_tf.load(tmp_path).backbone


@pytest.mark.parametrize("change, message", [
    (lambda file: file.create_dataset("nothing", data=h5py.Empty("f")), "'nothing' is an array without numbers"),
    (lambda file: file.create_group("/".join("g" * 5000)), "lies in 16 groups; no format writes so many"),
    (lambda file: file.__setitem__("other", h5py.ExternalLink("other.hdf5", "/x")), "'other' lies in another file"),
    (None, "is not an HDF5 file of weights"),
], ids=["null", "nested", "external", "no HDF5"])  # fmt: skip
def test_what_is_no_file_of_weights(tmp_path, change, message):
    for file in ("options.json", "weights.hdf5"):
        shutil.copy(FIXTURE / file, tmp_path)
    if change is None:
        (tmp_path / "weights.hdf5").write_bytes(b"not HDF5")
    else:
        with h5py.File(tmp_path / "weights.hdf5", "a") as file:
            change(file)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path)


def test_it_becomes_a_run_and_a_run_again(published, tmp_path):
    """Its mix has a scalar, which a file must keep as one."""
    bert_tf.load(FIXTURE).save(tmp_path / "run", format="run")
    bert_tf.load(tmp_path / "run").save(tmp_path / "again", format="run")
    for variable, other in zip(published[0].weights, bert_tf.load(tmp_path / "again").encoder.weights, strict=True):
        np.testing.assert_array_equal(variable, other)
    with pytest.raises(ConfigError, match="ELMo has no pooler"):
        Elmo(ElmoConfig(**TINY), pooler=True)


BILM = {"vocabulary_size": 30, "num_layers": 2, "num_heads": 2, "intermediate_size": 20, "max_positions": 12}
BILM |= {"initializer_range": 0.3, "dropout": 0.0, "attention_dropout": 0.0}


def bilm_and_gpts():
    """A biLM with the weights of two GPT-1s, and these: forward and backward."""
    keras.utils.set_random_seed(0)
    both = TransformerBiLM(TransformerBiLMConfig(hidden_size=16, **BILM), dtype="float32")
    known, pair = {v.path: v for v in both.weights}, []
    for direction in ("forward", "backward"):
        gpt = GPT1Decoder(GPT1Config(hidden_size=8, **BILM), dtype="float32")
        for variable in gpt.weights:
            variable.assign(known[variable.path.replace("transformer_layer", f"{direction}_layer")])
        pair.append(gpt)
    return both, *pair


def test_each_half_of_a_bilm_is_a_one_directional_model():
    both, forward, backward = bilm_and_gpts()
    ids = np.random.default_rng(0).integers(1, 30, (2, 7)).astype("int32")
    mask, texts = np.arange(7) < [[7], [5]], np.array([[1, 1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 0, 0]])
    places = np.array([[0, 1, 2, 3, 0, 1, 2], [0, 1, 2, 3, 4, 0, 0]])
    inputs = {"token_ids": ids, "padding_mask": mask, "sequence_ids": texts, "position_ids": places}
    found = np.asarray(both(inputs)["sequence_output"])
    flipped = {name: value[:, ::-1].copy() for name, value in inputs.items()}
    expected = np.concatenate(
        [forward(inputs)["sequence_output"], backward(flipped)["sequence_output"][:, ::-1]], axis=-1
    )
    np.testing.assert_allclose(found[mask], expected[mask], atol=1e-5)
    outputs = both({"token_ids": ids, "padding_mask": mask})
    x, pooled = np.asarray(outputs["sequence_output"]), outputs["pooled_output"]
    np.testing.assert_array_equal(pooled, [np.r_[x[0, 6, :8], x[0, 0, 8:]], np.r_[x[1, 4, :8], x[1, 0, 8:]]])
    # One table of embeddings, and the layers of both.
    table = (30 + 12) * 8
    assert both.count_params() - table == 2 * (forward.count_params() - table)


def test_both_directions_of_a_bilm_are_trained_as_causal_models_of_tokens():
    both, forward, backward = bilm_and_gpts()
    objective = BidirectionalLM(both)
    ids = np.random.default_rng(1).integers(1, 30, (2, 6)).astype("int32")
    features = {"token_ids": ids, "padding_mask": np.arange(6) < [[6], [4]]}
    losses, _ = objective.loss_sums(features, training=False)
    flipped = {name: value[:, ::-1].copy() for name, value in features.items()}
    flipped["position_ids"] = np.broadcast_to(np.arange(6)[::-1], (2, 6))
    for name, gpt, given in (("forward_lm", forward, features), ("backward_lm", backward, flipped)):
        expected = CausalLM(gpt).loss_sums(given, training=False)[0]["causal_lm"]
        assert float(losses[name]) == pytest.approx(float(expected), rel=1e-5)
    assert objective.word_output is None and objective.settings.words == WordsConfig()


def test_settings_of_a_bilm_that_do_not_fit():
    with pytest.raises(ConfigError, match="it must be a multiple of 2 \\* num_heads, 4"):
        TransformerBiLMConfig(hidden_size=6, **BILM)
    with pytest.raises(ConfigError, match="this one reads tokens; remove it"):
        BidirectionalLM(bilm_and_gpts()[0], WordsConfig(size=30))
