"""The contract of a served model, checked on a written SavedModel."""

import numpy as np
import tensorflow as tf

from bert_tf.export import write_saved_model
from bert_tf.tokenizers import load_tokenizer


def check_export(module, folder, texts=("a good film", "", "good", "a film in Paris, a good one"), tolerance=1e-4):
    """Writes a served model and checks its answers.

    `write_saved_model` itself loads the export into a v1 session and compares all signatures with the model in
    memory. Here, further:

    - Each text of a batch has the answer that it has alone, up to rounding and padding; numbers are finite.
    - A batch without texts has an answer without texts.
    - The tokenizer in `assets/` is the module's.

    Args:
        module: a `ServingModule`.
        folder: where the version is written.
        texts: str.
        tolerance: absolute and relative, of numbers.

    Returns:
        The path of the version.

    Example:
        check_export(ServedEmbedding(encoder, tokenizer, 32), tmp_path)
    """
    path = write_saved_model(module, folder)
    assert load_tokenizer(path / "assets" / "tokenizer").fingerprint == module.tokenizer.fingerprint
    loaded = tf.saved_model.load(str(path))
    serve = loaded.signatures["serving_default"]
    names = list(module.signatures()["serving_default"].inputs)

    def ask(some):
        return {k: v.numpy() for k, v in serve(**{name: tf.constant(some, tf.string) for name in names}).items()}

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
    return path
