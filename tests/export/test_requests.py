"""What a served model refuses and what it answers to nothing, asked as TF Serving asks: in a v1 session."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from exports import LENGTH, VOCABULARY

EXPORTS = ("pairs", "regressor", "masked_lm")  # with two texts, static, and with another input
ROW = {"token_ids": [[2, 40, 3]], "segment_ids": [[0, 0, 0]], "padding_mask": [[True] * 3]}


@contextlib.contextmanager
def asking(export):
    """function(signature, inputs) -> the answers of the SavedModel."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        definitions = tf.compat.v1.saved_model.load(session, ["serve"], str(export.path)).signature_def

        def ask(signature, **inputs):
            definition = definitions[signature]
            feeds = {definition.inputs[name].name: value for name, value in inputs.items()}
            return session.run({name: output.name for name, output in definition.outputs.items()}, feeds)

        yield ask


def batch(static, **changes):
    """Features [1, 3], or for a static export [1, LENGTH], with some of them replaced."""
    features = {name: np.array(changes.get(name, value)) for name, value in ROW.items()}
    if static:
        features = {name: np.pad(value, [[0, 0], [0, LENGTH - value.shape[1]]]) for name, value in features.items()}
    return features


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.slow_except("pairs")
def test_nothing_is_answered_by_nothing_and_ids_out_of_range_are_refused(name, exports):
    export = exports[name]
    static = export.module.static
    with asking(export) as ask:
        texts = {"text": np.array([], object)} | ({"text_pair": np.array([], object)} if export.module.pairs else {})
        for signature in export.module.signatures():
            ids = [{key: value[:0] for key, value in batch(static).items()}]
            if not static:
                ids.append({key: value[:0, :0] for key, value in batch(static).items()})
            for inputs in ids if signature == "ids" else [texts]:
                answers = ask(signature, **inputs)
                assert answers and all(len(value) == 0 for value in answers.values()), signature
        assert all(len(value) == 1 for value in ask("ids", **batch(static)).values())
        for wrong in (-1, len(VOCABULARY)):
            # Beyond the vocabulary the model has three rows more, which are no tokens.
            refusal = rf"token_ids must be .* at most {len(VOCABULARY) - 1}.*\[{wrong}\]"
            with pytest.raises(tf.errors.InvalidArgumentError, match=refusal):
                ask("ids", **batch(static, token_ids=[[2, wrong, 3]]))
        for wrong in (-1, 2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"segment_ids must be .* at most 1.*\[{wrong}\]"):
                ask("ids", **batch(static, segment_ids=[[0, 0, wrong]]))
        refusal = "token_ids and.*padding_mask.*must have the same shape"
        with pytest.raises(tf.errors.InvalidArgumentError, match=refusal):
            ask("ids", **{key: np.repeat(v, 1 if key == "padding_mask" else 2, 0) for key, v in batch(static).items()})


def test_shapes_that_disagree_are_refused(exports):
    refused = tf.errors.InvalidArgumentError
    with asking(exports["pairs"]) as ask:
        with pytest.raises(refused, match="token_ids and.*segment_ids.*must have the same shape"):
            ask("ids", **batch(False, segment_ids=[[0, 0]], padding_mask=[[True, True, False]]))
        with pytest.raises(refused, match="at least one token a row"):
            ask("ids", **{key: value[:, :0] for key, value in batch(False).items()})
        with pytest.raises(refused, match="as many text_pair as text"):
            ask("serving_default", text=np.array(["a", "b"], object), text_pair=np.array(["c"], object))
