import pytest

from bert_tf.distillation import TERMS, Term, TermConfig, read_terms, register_term
from bert_tf.errors import ConfigError


def test_a_number_is_the_weight():
    terms = read_terms({"hard_labels": 0.5, "soft_labels": {"weight": 0.25, "temperature": 4}})
    assert list(terms) == ["hard_labels", "soft_labels"]
    hard, soft = terms.values()
    assert (hard.weight, soft.weight, soft.temperature) == (0.5, 0.25, 4.0)


def test_null_leaves_a_term_out():
    assert list(read_terms({"hard_labels": None, "soft_labels": 1})) == ["soft_labels"]


@pytest.mark.parametrize(("section", "message"), [
    ({"soft_labels": None}, "terms is empty"), ({"soft_label": 1}, "'terms' is 'soft_label'; did you mean 'soft_labels'"),
    ({"soft_labels": 0}, r"terms.soft_labels.weight.* must be above 0"),
    ({"soft_labels": {"temprature": 2}}, "unknown key 'terms.soft_labels.temprature'; did you mean 'temperature'"),
])  # fmt: skip
def test_what_is_refused(section, message):
    with pytest.raises(ConfigError, match=message):
        read_terms(section)


def test_a_term_of_ones_own():
    register_term(Term("mine", TermConfig, loss=None))
    try:
        assert read_terms({"mine": 2})["mine"].weight == 2
    finally:
        TERMS.remove("mine")
