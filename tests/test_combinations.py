"""Tokenizers, shard formats, corruptions, objectives and families: each combination runs, or is refused with its reason."""

import dataclasses
import itertools
import random
import re

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import samples
from bert_tf.config import build
from bert_tf.errors import UserError
from bert_tf.models import build_backbone, build_config
from bert_tf.models.families import FAMILIES
from bert_tf.objectives import OBJECTIVES
from bert_tf.tokenizers.kinds import trainers
from bert_tf.tokenizers.sentencepiece.families import sentinels
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining
from bert_tf.training.shards_recipe import check_fit
from tfrecords import ShardReader, ShardsConfig, write_shards

SIZES = {"num_layers": 1, "hidden_size": 12, "num_heads": 2, "intermediate_size": 16}
LONG = SIZES | {"max_positions": 128}
NARROW = {"hidden_size": 12, "embedding_size": 8}
ELMO = {"hidden_size": 16, "units": 8, "character_size": 4, "filters": [[1, 8], [2, 8]], "highways": 1}
MODELS = {
    "bert": LONG, "roberta": LONG, "albert": LONG | NARROW, "distilbert": LONG, "modernbert": LONG | {"local_attention": 4},
    "electra": LONG | NARROW, "spanbert": LONG, "xlnet": SIZES, "transformer": SIZES, "t5": SIZES | {"head_size": 6},
    "t5_encoder": SIZES | {"head_size": 6}, "t5_decoder": SIZES | {"head_size": 6}, "transformer_bilm": LONG, "gpt1": LONG,
    "gpt2": LONG, "lstm_lm": NARROW, "elmo": ELMO, "word_vectors": {"hidden_size": 12}, "bilstm": NARROW,
}  # fmt: skip
RUNNING, PAIRS = ["full_sentences", "doc_sentences", "token_blocks"], ["segment_pair", "sentence_pair"]
#: Format -> its settings; pairs with either task.
FORMATS = {
    "segment_pair": {"format": "segment_pair", "pair_task": "nsp"},
    "sentence_pair": {"format": "sentence_pair", "pair_task": "sop"},
    "electra": {"format": "electra"},
    "xlnet": {"format": "xlnet", "sequence_length": 64},
    **{name: {"format": name} for name in RUNNING},
    "text_pairs": {"format": "text_pairs"},
}
ENCODERS, DECODERS, BOTH = (
    [name for name, family in FAMILIES.items() if family.structure == kind]
    for kind in ("encoder", "decoder", "encoder_decoder")
)
MASKED = [name for name in ENCODERS if name not in ("t5_encoder", "elmo")]
WITH_POSITION_TABLE = ["bert", "roberta", "albert", "distilbert", "electra", "spanbert"]
WORDS = {"words": {"size": 700}}
ONE_SEGMENT = {"segments": 1, "bidirectional": False, "permutation_size": 16, "predict_special": True}
ANY = [*PAIRS, "electra", *RUNNING]
#: (objective, settings, the families that it trains, the formats that it reads).
OBJECTIVE_CASES = [
    *(("masked_lm", {"masking": {"strategy": s}}, MASKED, ANY) for s in ("token", "whole_word", "ngram", "span")),
    ("masked_lm", {"masking": {"strategy": "span"}, "span_boundary": True}, MASKED, ANY),
    ("masked_lm", {"masking": {"predict_special": True}}, MASKED, ANY),
    ("masked_lm", {"masking": {"random_tokens": "corpus", "rare_token_exponent": 0.7}}, MASKED, ANY),
    ("masked_lm", {"pair_task": "none"}, MASKED, ANY),
    ("masked_lm", {"pair_task": "nsp"}, MASKED, ["segment_pair"]),
    ("masked_lm", {"pair_task": "sop"}, MASKED, ["sentence_pair"]),
    ("replaced_token_detection", {"generator_size": 0.5}, WITH_POSITION_TABLE, ANY),
    ("permutation_lm", {"permutation": {"permutation_size": 16}}, ["xlnet"], [*PAIRS, "electra", "xlnet", *RUNNING]),
    ("permutation_lm", {"permutation": ONE_SEGMENT}, ["xlnet"], ANY),
    ("causal_lm", {"loss_block": 7}, DECODERS, RUNNING),
    ("causal_lm", {"documents": {"separate": True}}, DECODERS, RUNNING),
    ("causal_lm", {"sampled_softmax": 5}, DECODERS, RUNNING),
    ("bidirectional_lm", {}, ["transformer_bilm"], RUNNING),
    ("bidirectional_lm", WORDS, ["elmo"], RUNNING),
    ("bidirectional_lm", WORDS | {"sampled_softmax": 5}, ["elmo"], RUNNING),
    ("sequence_autoencoder", {}, DECODERS, RUNNING),
    ("sequence_autoencoder", {"documents": {"separate": False}}, DECODERS, RUNNING),
    *(
        ("denoising", {"denoising": {"method": method}}, DECODERS + BOTH, RUNNING)
        for method in ("span", "replace_spans", "bert", "mass", "drop", "deshuffle", "prefix_lm", "lm")
    ),
    ("text_to_text", {"label_smoothing": 0.1}, DECODERS + BOTH, ["text_pairs"]),
]  # fmt: skip


def shards_config(format):
    return ShardsConfig(**({"sequence_length": 32} | FORMATS[format]))


def settings(family, case, format):
    """(the model section, the objective's settings for shards of the format); raises ConfigError."""
    name, given, *_ = OBJECTIVE_CASES[case]
    experiment = {"model": {"family": family} | MODELS[family], "objective": {"name": name} | given}
    config = build(PretrainConfig, experiment | {"data": {"shards": "shards"}})
    check_pretraining(config)
    shards = shards_config(format)
    return config.model, config.objective.for_shards(shards.packing, shards.sequence_length)


def test_the_lists_are_complete():
    assert set(MODELS) == set(FAMILIES)
    assert {name for name, *_ in OBJECTIVE_CASES} == set(OBJECTIVES)


@pytest.mark.parametrize("case", range(len(OBJECTIVE_CASES)), ids=lambda case: "{}_{}".format(*OBJECTIVE_CASES[case]))
def test_settings_alone_decide_what_is_trained(case):
    """Without TensorFlow, see `test_settings_are_checked_without_tensorflow`."""
    _, _, families, formats = OBJECTIVE_CASES[case]
    found = set()
    for family, format in itertools.product(MODELS, FORMATS):
        try:
            settings(family, case, format)
            found.add((family, format))
        except UserError as error:
            assert re.search(r"objective\.\w+|format=|pair_task=", str(error)), error
    assert found == set(itertools.product(families, formats))


class Shards:
    """Tokenizers, shards and batches, each made once."""

    def __init__(self, folder):
        self.folder, self.tokenizers, self.readers, self.batches = folder, {}, {}, {}
        lines = samples.STATE_OF_THE_UNION.read_text(encoding="utf-8").splitlines()[:2]
        self.corpus, self.pairs = folder / "corpus.jsonl", folder / "pairs.tsv"
        self.corpus.write_text("".join(line[:6000] + '"}\n' for line in lines), encoding="utf-8")
        texts = [line[100 * number : 100 * number + 70] for line in lines for number in range(20)]
        self.pairs.write_text("source\ttarget\n" + "".join(f"{t[:40]}\t{t[40:]}\n" for t in texts), encoding="utf-8")
        self.texts = [line[:6000] for line in lines]

    def tokenizer(self, name):
        if name not in self.tokenizers:
            trainer = trainers()[name]
            special = sentinels(20) if trainer.has_special_tokens else ()
            self.tokenizers[name] = trainer.train(self.texts, 420, special_tokens=special)
        return self.tokenizers[name]

    def reader(self, name, format):
        """A `ShardReader`, or the `UserError` of writing the shards."""
        if (name, format) not in self.readers:
            corpus, folder = self.pairs if format == "text_pairs" else self.corpus, self.folder / f"{name}-{format}"
            try:
                write_shards([corpus], folder, self.tokenizer(name), shards_config(format), progress=False)
                self.readers[name, format] = ShardReader(folder, self.tokenizer(name))
            except UserError as error:
                self.readers[name, format] = error
        if isinstance(self.readers[name, format], UserError):
            raise self.readers[name, format]
        return self.readers[name, format]

    def batch(self, name, format, case, objective):
        """Three corrupted rows, or raises a `UserError`; anything else is a defect."""
        if (name, format, case) not in self.batches:
            reader = self.reader(name, format)
            corrupt = OBJECTIVES[objective.name].make_corruption(objective, self.tokenizer(name), reader)
            batch = reader.examples(np.arange(min(3, reader.num_examples)))
            self.batches[name, format, case] = corrupt(batch, 3) if corrupt else batch
        return self.batches[name, format, case]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return Shards(tmp_path_factory.mktemp("combinations"))


@pytest.fixture(scope="module")
def possible(shards):
    """All (tokenizer, format, case, family) whose batches can be made."""
    found = []
    for name, format, case in itertools.product(trainers(), FORMATS, range(len(OBJECTIVE_CASES))):
        _, _, families, formats = OBJECTIVE_CASES[case]
        if format not in formats:
            continue
        _, objective = settings(families[0], case, format)
        try:
            shards.batch(name, format, case, objective)
        except UserError as error:
            assert len(str(error)) > 40, f"{name}, {format}, {case}: {error}"
        else:
            found += [(name, format, case, family) for family in families]
    return found


@pytest.mark.slow
def test_each_corruption_of_each_tokenizer_and_format_runs_or_is_refused(possible):
    made = {(name, case) for name, _, case, _ in possible}
    names = {name for name, _ in made}
    assert names == set(trainers()) - {"characters"}, "characters are read by ELMo, and its shards hold words"
    for case, (objective, *_) in enumerate(OBJECTIVE_CASES):
        runs = {name for name, other in made if other == case}
        if objective in ("causal_lm", "bidirectional_lm", "sequence_autoencoder", "text_to_text"):
            assert runs == names, f"{objective} hides nothing: any tokens do"
        assert runs, OBJECTIVE_CASES[case]


def pairs_of(combination):
    return set(itertools.combinations(enumerate(combination), 2))


def covering(combinations):
    """A few combinations in which every pair of values occurs that occurs in all of them."""
    combinations = list(combinations)
    random.Random(0).shuffle(combinations)
    left, chosen = set().union(*map(pairs_of, combinations)), []
    while left:
        best = max(combinations, key=lambda one: len(pairs_of(one) & left))
        chosen.append(best)
        left -= pairs_of(best)
    return chosen


@pytest.mark.slow
def test_one_batch_of_a_set_that_holds_every_pair(shards, possible):
    chosen = covering(possible)
    assert len(chosen) > 100
    for name, format, case, family in chosen:
        model, objective = settings(family, case, format)
        record = OBJECTIVES[objective.name]
        features = shards.batch(name, format, case, objective)
        tokenizer = record.model_tokenizer(shards.tokenizer(name), objective)
        config = build_config(model, tokenizer.vocabulary_size, tokenizer.pad_id)
        try:
            check_fit(PretrainConfig(), config, shards.reader(name, format), tokenizer)
        except UserError as error:
            assert "set model.num_segments=3" in str(error)
            config = dataclasses.replace(config, num_segments=3)
        trained = record.model_class.from_settings(build_backbone(config, pooler=objective.needs_pooler), objective)
        with tf.GradientTape() as tape:
            losses, _ = trained.loss_sums(features, training=False)
            total = tf.add_n(list(losses.values()))
        gradients = tape.gradient(total, trained.trainable_variables)
        where = f"{name}, {format}, {OBJECTIVE_CASES[case][:2]}, {family}"
        assert total > 0 and np.isfinite(total), where
        norms = [tf.norm(tf.convert_to_tensor(gradient)) for gradient in gradients if gradient is not None]
        assert norms and np.isfinite(norms).all() and max(norms) > 0, where
