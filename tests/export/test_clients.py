"""Every export gives the same answers to every kind of client."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow

CLIENTS = ("tensorflow_client.py", "c_api_client.py")


@pytest.mark.parametrize("script", CLIENTS)
def test_answers_are_those_of_the_model_in_memory(script, ask, requests, expected):
    answers = ask(script)
    assert len(answers) == len(expected)
    for (name, signature, inputs), answer, wanted in zip(requests, answers, expected):
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
    # Seven exports with two signatures, embedding and generation with three, questions with one.
    assert len(asked) == 2 * (7 * 2 + 2 * 3 + 1)
