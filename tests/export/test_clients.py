"""Every export gives the same answers to every kind of client."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow

#: Client and the exports that it is asked for, None for all. What Python loads has its tests in this process, too.
CLIENTS = {"tensorflow_client.py": ("tagger", "questions"), "c_api_client.py": None}


@pytest.mark.parametrize("script", CLIENTS)
def test_answers_are_those_of_the_model_in_memory(script, ask, requests, expected):
    asked = [(r, wanted) for r, wanted in zip(requests, expected) if not CLIENTS[script] or r[0] in CLIENTS[script]]
    answers = ask(script, [request for request, _ in asked])
    for ((name, signature, inputs), wanted), answer in zip(asked, answers, strict=True):
        where = f"{name}.{signature} of {len(next(iter(inputs.values())))}"
        assert answer.keys() == wanted.keys(), where
        for key, value in wanted.items():
            assert answer[key].shape == value.shape, (where, key)
            if value.dtype.kind == "f":
                np.testing.assert_allclose(answer[key], value, rtol=1e-6, atol=1e-6, err_msg=f"{where} {key}")
            else:
                np.testing.assert_array_equal(answer[key], value, err_msg=f"{where} {key}")


def test_every_signature_is_asked_for_one_and_for_several(requests):
    asked = {(name, signature, len(next(iter(inputs.values()))) > 1) for name, signature, inputs in requests}
    # Six exports with two signatures, the two of vectors with three, questions with one.
    assert len(asked) == 2 * (6 * 2 + 2 * 3 + 1)
