import keras
import pytest


@pytest.fixture(autouse=True)
def forget_variables_without_memory():
    """Counting a published model's parameters makes variables without values in a stateless scope.

    Keras keeps a list of them, and the next such scope, which any functional model opens, would
    fill them all: billions of random numbers.
    """
    yield
    keras.utils.clear_session(free_memory=False)
