"""Each row of the table that joins objectives, data and encoders, through `pretrain` as a user calls it."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from opened import encoder_and_tokenizer
from sample_corpus import DETECTION, addresses, write_corpus, write_sample

from bert_tf import config, load, save
from bert_tf.cli.settings import apply_overrides
from bert_tf.errors import ConfigError
from bert_tf.tokenizers import train_unigram
from bert_tf.training.pretraining import PretrainConfig, pretrain
from tfrecords.shards.writer import ShardsConfig, write_shards

SIZES = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64, "initializer_range": 0.1}
POSITIONS = SIZES | {"max_positions": 64}
SHARDS = {"sop": {"pair_task": "sop"}} | {name: {"format": name} for name in ("doc_sentences", "full_sentences")}
# Other settings than the family's own, which tests/training/test_replicas.py trains.
PERMUTATION = {"name": "permutation_lm", "memory_length": 7}
PERMUTATION |= {"permutation": {"permutation_size": 8, "segments": 1, "bidirectional": False}}

# shards, model, objective -> what is measured
ROWS = {
    # With another pair task than the family's own, which tests/training/test_pretraining.py trains.
    "bert": ("sop", POSITIONS, {}, {"masked_lm_accuracy", "pair_accuracy"}),
    "electra": ("doc_sentences", POSITIONS | {"embedding_size": 16}, DETECTION,
                {"masked_lm_accuracy", "discriminator_accuracy", "discriminator_recall"}),
    "xlnet": ("doc_sentences", SIZES, PERMUTATION, {"permutation_lm_accuracy"}),
    "gpt2": ("full_sentences", POSITIONS, {"name": "causal_lm", "documents": {"separate": True}}, {"causal_lm_accuracy"}),
}  # fmt: skip


#: What the objectives of these rows have, opened again.
KEPT = {"bert": {"pair_task": "sop"}, "electra": {"discriminator_weight": 50}}
KEPT |= {"xlnet": {"memory_length": 7, "segments": 1}, "gpt2": {}}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objectives")
    write_sample(folder, shards=SHARDS)
    return folder


def experiment(shards, name, *overrides):
    kind, model, objective, _ = ROWS[name]
    settings = {"model": {"family": name} | model, "data": {"shards": str(shards / kind)}, "objective": objective}
    settings["optimizer"] = {"learning_rate": 3e-3, "warmup_steps": 2}
    settings["train"] = {"steps": 20, "batch_size": 16, "log_every": 10, "checkpoint_every": 20, "strategy": "one"}
    return config.build(PretrainConfig, apply_overrides(settings, overrides))


@pytest.fixture(scope="module")
def trained(shards, tmp_path_factory):
    """Function from the name of a row to its run and metrics; each is trained once."""
    return functools.cache(lambda name: pretrain(experiment(shards, name), tmp_path_factory.mktemp("row") / "run"))


@pytest.mark.parametrize("name", ROWS)
def test_every_row_learns_and_its_run_is_opened_again(trained, name):
    run, metrics = trained(name)
    first, last = run.metrics()
    assert ROWS[name][3] <= set(metrics)
    assert last["loss"] < first["loss"] and np.isfinite(last["loss"])
    # The unigram baselines stand beside the metrics whose names they carry.
    baselines = {key.removeprefix("unigram_") for key in metrics if key.startswith("unigram_")}
    assert baselines and baselines <= last.keys()
    encoder, tokenizer = encoder_and_tokenizer(run.path)
    opened = load(run.path)
    if name == "electra":
        assert opened.objective.generator.config.hidden_size == SIZES["hidden_size"] * DETECTION["generator_size"]
    assert opened.report.unused == opened.report.fresh == ()
    for setting, value in KEPT[name].items():  # another question than the family's own is kept
        assert getattr(opened.objective, setting) == value
    assert tokenizer.fingerprint == opened.tokenizer.fingerprint
    batch = tokenizer.pack(tf.ragged.constant([[7, 5, 11, 6]], tf.int32), sequence_length=16)  # without its slow graph
    batch = {k: np.asarray(v) for k, v in batch.items()}
    vectors = [np.asarray(model(batch)["sequence_output"]) for model in (encoder, opened.encoder)]
    np.testing.assert_array_equal(*vectors)


@pytest.mark.parametrize("name", ["electra", "xlnet"])
def test_pretraining_starts_from_published_formats(shards, trained, tmp_path, name):
    run, _ = trained(name)
    path = tmp_path / "published"
    model = load(run.path)
    save(model.objective, model.tokenizer, path, format="hf")
    still = ["optimizer.learning_rate=0.0", "train.steps=2", "train.log_every=2", f"train.init_from={path}"]
    begun, _ = pretrain(experiment(shards, name, *still), tmp_path / "begun")
    first, last = (line["loss"] for line in run.metrics())
    loss = begun.metrics()[-1]["loss"]
    assert loss < first - 0.2
    assert loss == pytest.approx(last, rel=0.1)


def test_shards_with_more_segments_than_the_model_are_refused(tmp_path):
    texts = addresses(2, 5_000)
    corpus, tokenizer = write_corpus(tmp_path / "corpus.jsonl", texts), train_unigram(texts, 300, family="xlnet")
    packing = ShardsConfig(sequence_length=32, format="full_sentences")
    write_shards([corpus], tmp_path / "shards", tokenizer, packing, progress=False)
    given = {"model": {"family": "bert"} | POSITIONS, "data": {"shards": str(tmp_path / "shards")}}
    message = "the layout 'xlnet' of the tokenizer has 3 segments, model.num_segments is 2; set model.num_segments=3"
    with pytest.raises(ConfigError, match=message):  # <cls> has the segment 2
        pretrain(config.build(PretrainConfig, given), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "override", "message"), [
    ("bert", "pair_task=nsp", "shards were packed with pair_task: sop"),
    ("bert", "span_boundary=true", "set objective.masking.strategy=span"),
    ("bert", "name=permutation_lm", "permutation_lm needs XLNet's second attention stream"),
    ("bert", "generator_size=0.5", "'objective.generator_size' applies only to replaced_token_detection"),
    ("xlnet", "masking.rate=0.2", "'objective.masking' applies only to masked_lm and replaced_token_detection, but "
     "objective.name is 'permutation_lm'; remove 'objective.masking'"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_and_nothing_is_written(shards, tmp_path, name, override, message):
    with pytest.raises(ConfigError, match=message):
        pretrain(experiment(shards, name, f"objective.{override}"), tmp_path / "run")
    assert not [p for p in tmp_path.glob("run/*") if not p.name.startswith(".")]


def test_rows_of_the_format_xlnet_decide_what_is_remembered():
    rows = ShardsConfig(sequence_length=1024, format="xlnet").packing

    def fitted(packing=rows, **settings):
        experiment = config.build(PretrainConfig, {"objective": {"name": "permutation_lm"} | settings})
        return experiment.objective.for_shards(packing, 1024)

    assert fitted().reuse_length == 256
    assert fitted(reuse_length=256).reuse_length == 256
    plain = ShardsConfig(sequence_length=1024, format="full_sentences").packing
    assert fitted(plain).reuse_length is None and fitted(plain, name="masked_lm").name == "masked_lm"
    for settings, message in (
        ({"name": "masked_lm"}, "objective.name=masked_lm, but shards of the format xlnet are only for permutation_lm"),
        ({"reuse_length": 512}, "reuse_length=512, but the shards need 256"),
        ({"permutation": {"segments": 4}}, "permutation.segments=4, but the shards were packed with 2 segments a row"),
    ):
        with pytest.raises(ConfigError, match=message):
            fitted(**settings)
