"""Every corruption with every kind of tokenizer: it changes a batch, or refuses the tokenizer with a reason."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.tokenizers.kinds import trainers
from tfrecords import (
    DenoisingConfig,
    DenoisingCorruption,
    MaskedLMCorruption,
    MaskingConfig,
    PermutationConfig,
    PermutationCorruption,
    ReplacedTokenCorruption,
)

TEXT = "the mayor of the town wrote to the baker in the evening"
SIZES = {"byte_level_bpe": 290, "byte_level_bpe_gpt2": 290, "unigram_t5": 150}
ROW = {"segments": 1, "bidirectional": False, "permutation_size": 8}
#: The corruptions, the roles of tokens that they need, and whether they need sentinels or to see where words begin.
CASES = {
    "masking": (MaskedLMCorruption, MaskingConfig(), ("mask",), None),
    "whole words": (MaskedLMCorruption, MaskingConfig(strategy="whole_word"), ("mask",), "words"),
    "replaced tokens": (ReplacedTokenCorruption, MaskingConfig(), ("mask",), None),
    "permutation": (PermutationCorruption, PermutationConfig(**ROW), ("sep", "cls"), None),
    "permutation of all": (PermutationCorruption, PermutationConfig(**ROW, predict_special=True), ("sep", "cls"), None),
    "denoising": (DenoisingCorruption, DenoisingConfig(), ("sep",), "sentinels"),
    "deletion": (DenoisingCorruption, DenoisingConfig(method="drop"), ("sep",), None),
}  # fmt: skip


@functools.cache
def tokenizer_of(name):
    return trainers()[name].train([TEXT] * 9, SIZES.get(name, 60))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", sorted(trainers().keys() - {"characters"}))
def test_it_works_or_is_refused_with_its_reason(name, case):
    tokenizer, (corruption, config, roles, further) = tokenizer_of(name), CASES[case]
    lacking = [role for role in roles if getattr(tokenizer, f"{role}_id") is None]
    lacking += ["words"] if further == "words" and not tokenizer.marks_words else []
    lacking += ["sentinel"] if further == "sentinels" and not tokenizer.sentinel_ids else []
    batch = tokenizer.pack(tokenizer.tokenize([TEXT, TEXT[:30]]), sequence_length=64)
    batch |= {"example_index": tf.range(2, dtype=tf.int64), "epoch": tf.zeros([2], tf.int64)}
    if lacking:
        with pytest.raises(ConfigError, match=lacking[0]):
            corruption(tokenizer, config)(batch, seed=0)
        return
    features = {key: value.numpy() for key, value in corruption(tokenizer, config)(batch, seed=0).items()}
    changed = "permutation_order" in features or not np.array_equal(features["token_ids"], batch["token_ids"])
    assert changed and np.all((features["token_ids"] >= 0) & (features["token_ids"] < tokenizer.vocabulary_size))
