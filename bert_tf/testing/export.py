"""The contract of a served model, checked on a written SavedModel."""

import numpy as np
import tensorflow as tf

from bert_tf.export import write_saved_model
from bert_tf.tokenizers import load_tokenizer

TEXTS = ("a good film", "", "good", "a film in Paris, a good one")


def check_export(module, folder, texts=TEXTS, tolerance=1e-4):
    """Writes a served model and checks its answers.

    `write_saved_model` itself loads the export into a v1 session and compares all signatures with the model in
    memory. Then `check_served` asks the version, and the tokenizer in `assets/` must be the module's.

    Args:
        module: a `ServingModule`.
        folder: where the version is written.
        texts, tolerance: of `check_served`.

    Returns:
        The path of the version.

    Example:
        check_export(ServedEmbedding(encoder, tokenizer, 32), "served")
    """
    path = write_saved_model(module, folder)
    assert load_tokenizer(path / "assets" / "tokenizer").fingerprint == module.tokenizer.fingerprint
    check_served(path, texts, tolerance)
    return path


def check_served(path, texts=TEXTS, tolerance=1e-4):
    """Checks a written version by its answers.

    - Each text of a batch has the answer that it has alone, up to rounding and padding; numbers are finite.
    - A batch without texts has an answer without texts.

    An input [N, C] of strings gets the text, a longer one and an empty one for each text; an input [N, 2] of numbers
    the first two characters.

    Args:
        path: of the version; what `export_run` returns.
        texts: str.
        tolerance: absolute and relative, of numbers.

    Returns:
        The answer of `serving_default` to `texts`: dict of arrays.

    Example:
        check_served("exported/1", ["a good film", "good"])["mean"].shape  # (2, 16)
    """
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    specs = serve.structured_input_signature[1]

    def ask(some):
        inputs = {name: _input_of(spec, some) for name, spec in specs.items()}
        return {name: value.numpy() for name, value in serve(**inputs).items()}

    together = ask(list(texts))
    for index, text in enumerate(texts):
        for name, value in ask([text]).items():
            answer = together[name][(slice(index, index + 1), *map(slice, value.shape[1:]))]
            if value.dtype.kind == "f":
                assert np.isfinite(together[name]).all(), name
                np.testing.assert_allclose(answer, value, rtol=tolerance, atol=tolerance, err_msg=name)
            else:
                np.testing.assert_array_equal(answer, value, err_msg=name)
    assert all(len(value) == 0 for value in ask([]).values())
    return together


def _input_of(spec, texts):
    if spec.dtype == tf.int32:  # [N, 2]: where two words begin or end
        return tf.constant([[0, 1]] * len(texts), tf.int32, [len(texts), 2]) + int(spec.name.startswith("ends"))
    if spec.shape.rank == 1:
        return tf.constant(texts, tf.string)
    return tf.reshape(tf.constant([[text, f"{text} one", ""] for text in texts], tf.string), [len(texts), 3])
