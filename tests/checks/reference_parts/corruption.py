"""What each corruption makes of a batch: all its features, for two seeds and epochs."""

import typing

import numpy as np
import tensorflow as tf

from bert_tf.objectives import OBJECTIVES
from reference_parts import library, shards
from tfrecords import DenoisingConfig, MaskingConfig

SPAN = {"strategy": "span", "rounding": "up", "predict_unknown": True}
#: Case -> (objective, shards, settings of the corruption).
CASES = {
    "token": ("masked_lm", "segment_pair", {}),
    "token_wordpiece_cased": ("masked_lm", "doc_sentences", {"rate": 0.3, "rounding": "random", "predict_unknown": True}),
    "predict_special": ("masked_lm", "full_sentences", {"predict_special": True, "max_predictions": 3}),
    "whole_word": ("masked_lm", "segment_pair", {"strategy": "whole_word"}),
    "whole_word_byte_level": ("masked_lm", "full_sentences", {"strategy": "whole_word"}),
    "ngram": ("masked_lm", "segment_pair_sop", {"strategy": "ngram", "predict_unknown": True}),
    "ngram_of_2": ("masked_lm", "segment_pair", {"strategy": "ngram", "max_ngram": 2}),
    "span": ("masked_lm", "doc_sentences", SPAN),
    "span_corpus": ("masked_lm", "doc_sentences", SPAN | {"random_tokens": "corpus", "span_p": 0.3, "max_span": 4}),
    "rare_tokens": ("masked_lm", "segment_pair", {"rare_token_exponent": 0.7}),
    "static": ("masked_lm", "sentence_pair", {"static_duplicates": 2}),
    "electra": ("replaced_token_detection", "electra", {"mask_token_rate": 0.85, "random_token_rate": 0.0}),
    "permutation": ("permutation_lm", "xlnet", {"permutation_size": 16}),
    "permutation_full_sentences": (
        "permutation_lm", "full_sentences",
        {"segments": 1, "bidirectional": False, "permutation_size": 32, "predict_special": True, "max_ngram": 3},
    ),
    "causal": ("causal_lm", "token_blocks", {}),
    "documents": ("causal_lm", "token_blocks", {"separate": True}),
    "autoencoder": ("sequence_autoencoder", "documents_a_line", {"separate": True}),
    "word_characters": ("bidirectional_lm", "words", {"size": 600}),
    "denoising_span": ("denoising", "token_blocks_t5", {}),
    "denoising_span_long": ("denoising", "token_blocks_t5", {"rate": 0.4, "mean_span": 1.5, "input_length": 20, "target_length": 12}),
    "denoising_replace_spans": ("denoising", "token_blocks_t5", {"method": "replace_spans", "rate": 0.3}),
    "denoising_bert": ("denoising", "token_blocks_t5", {"method": "bert"}),
    "denoising_mass": ("denoising", "token_blocks_t5", {"method": "mass"}),
    "denoising_drop": ("denoising", "token_blocks_t5", {"method": "drop"}),
    "denoising_deshuffle": ("denoising", "token_blocks_t5", {"method": "deshuffle"}),
    "denoising_prefix_lm": ("denoising", "token_blocks_t5", {"method": "prefix_lm"}),
    "denoising_lm": ("denoising", "token_blocks_t5", {"method": "lm"}),
}  # fmt: skip
#: Objectives whose batches are used as they are.
WITHOUT = ("text_to_text",)
ROWS = 12


def missing():
    known = {objective for objective, _, _ in CASES.values()}
    yield from (f"corruption of {name}" for name in OBJECTIVES if name not in known and name not in WITHOUT)
    for cls, key, default in ((MaskingConfig, "strategy", "token"), (DenoisingConfig, "method", "span")):
        used = {config.get(key, default) for _, _, config in CASES.values()}
        values = typing.get_args(typing.get_type_hints(cls)[key])
        yield from (f"{key} {name}" for name in values if name not in used)


def cases(room):
    for name in CASES:
        yield name, lambda name=name: values(room, name)


def batch_of(room, name):
    """A batch of shards, as it was when the values were written."""

    def make():
        reader = room.shards(name)
        numbers = np.linspace(0, reader.num_examples - 1, min(ROWS, reader.num_examples)).astype(int)
        return {key: value.numpy() for key, value in reader.examples(numbers).items()}

    return {key: tf.constant(value) for key, value in room.arrays(f"batches/{name}", make).items()}


def corruption_of(room, objective, shards_name, given):
    """The corruption with these settings; None where the batch is used as it is."""
    record = OBJECTIVES[objective]
    section = {record.corruption_section: given} if record.corruption_section else {}
    config = library.settings(record.config, {"name": objective} | section)
    reader = room.shards(shards_name)
    return record.make_corruption(config, room.tokenizer(shards.CASES[shards_name][1]), reader)


def values(room, name):
    objective, shards_name, given = CASES[name]
    batch = batch_of(room, shards_name)
    corrupt = corruption_of(room, objective, shards_name, given) or (lambda features, seed: features)
    found = {}
    for seed, epoch in ((0, 0), (11, 1)):
        features = corrupt(batch | {"epoch": tf.fill([len(batch["epoch"])], tf.constant(epoch, tf.int64))}, seed)
        found[f"seed_{seed}_epoch_{epoch}"] = {key: features[key].numpy() for key in sorted(features)}
    return found
