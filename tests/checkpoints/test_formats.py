"""A format from outside, opened and written like those of the library."""

import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import FORMATS, ArraysInMemory, Format, Source
from bert_tf.errors import ConfigError, DataError
from bert_tf.models import T5, BertConfig, BertEncoder, T5Config
from bert_tf.models.weights import WeightMap, by_path, part_of
from bert_tf.objectives import Denoising
from bert_tf.parsing import read_yaml
from bert_tf.tokenizers import WordPieceTokenizer

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "law", "people"]


class OnlyRead(Format):
    name, files = "only_read", "model.only_read"


class Npz(Format):
    name, files = "archive", "model.npz"

    def recognize(self, path):
        return (path / "model.npz").is_file()

    def open(self, path, family):
        with np.load(path / "model.npz") as file:
            arrays = {name: file[name] for name in file}
        config = BertConfig(**json.loads((path / "sizes.json").read_text()))
        names = {name: name.replace(".", "/") for name in arrays}
        return Source(path, self.name, "bert", config, ArraysInMemory(arrays), WeightMap(arrays=names))

    def write(self, model, tokenizer, path):
        path.mkdir()
        tokenizer.save(path)
        (path / "sizes.json").write_text(json.dumps(vars(model.config)))
        np.savez(path / "model.npz", **{name.replace("/", "."): np.asarray(v) for name, v in by_path(model).items()})


@pytest.fixture
def outside():
    FORMATS.register(Npz()), FORMATS.register(OnlyRead())
    yield
    FORMATS.remove("archive"), FORMATS.remove("only_read")


def test_a_format_from_outside(outside, tmp_path):
    model = BertEncoder(BertConfig(len(WORDS), 8, 1, 2, 16))
    bert_tf.save(model, WordPieceTokenizer(WORDS, lowercase=True), tmp_path / "a", format="archive")
    opened = bert_tf.load(tmp_path / "a")
    batch = opened.tokenizer.pack(opened.tokenizer.tokenize(["the law", "people"]))
    np.testing.assert_array_equal(opened.encoder(batch)["sequence_output"], model(batch)["sequence_output"])
    bert_tf.save(opened.encoder, opened.tokenizer, tmp_path / "b")  # as another format
    assert bert_tf.load(tmp_path / "b").source.format == "hf"


def test_a_format_that_is_only_read(outside, tmp_path):
    model = BertEncoder(BertConfig(len(WORDS), 8, 1, 2, 16))
    with pytest.raises(ConfigError, match="cannot be written in the format 'only_read'; choose one of .*hf"):
        bert_tf.save(model, None, tmp_path / "no", format="only_read")


def test_what_was_asked_for_is_kept_and_shared_and_keeps_its_weights():
    opened, other = bert_tf.load(FIXTURE), bert_tf.load(FIXTURE)
    table = opened.encoder.embedding_table
    table.assign(np.zeros(table.shape))  # trained meanwhile
    for one in (opened, other):  # of the other the objective is made first
        assert one.objective.backbone is one.backbone is one.encoder and one.model is one.objective
    assert not np.asarray(table).any()
    ours, theirs = (one.objective.masked_lm_head.dense.kernel for one in (opened, other))
    np.testing.assert_array_equal(ours, theirs)


def test_arrays_are_told_apart_by_name_shape_and_content():
    zeros = np.zeros((2, 3), "float32")
    arrays = [{"a": zeros}, {"b": zeros}, {"a": zeros.T}, {"a": zeros + 1e-30}, {"a": zeros, "b": zeros}]
    assert len({json.dumps(ArraysInMemory(each).identity({"size": 1})) for each in [*arrays, arrays[0]]}) == 5
    assert ArraysInMemory(arrays[0]).identity({"size": 1}) != ArraysInMemory(arrays[0]).identity({"size": 2})


def test_parts_of_joined_stacked_and_untied_arrays(tmp_path):
    """What may start a pretraining: every variable of the model has a part that the files hold."""
    sizes = {"num_layers": 1, "num_heads": 2, "head_size": 4, "intermediate_size": 16}
    bert_tf.save(Denoising(T5(T5Config(50, 8, **sizes, tied=False, scale_outputs=False))), None, tmp_path / "t5")
    for name in ("gpt1", "gpt2", "xlnet", "bert", tmp_path / "t5"):
        opened = bert_tf.load(FIXTURE.parent / name)
        assert {part_of(variable) for variable in by_path(opened.objective)} <= opened.source.parts, name
        assert by_path(opened.backbone).keys() <= opened.source.paths, name


def test_a_run_of_another_family_or_with_a_layer_too_many(tmp_path):
    bert_tf.load(FIXTURE).save(tmp_path / "run", format="run")
    assert bert_tf.load(tmp_path / "run", family="bert").family == "bert"
    with pytest.raises(ConfigError, match="run holds a model of the family 'bert', not 'roberta'; leave the family"):
        bert_tf.load(tmp_path / "run", family="roberta")
    settings = read_yaml(tmp_path / "run" / "config.yaml")
    settings["model"]["num_layers"] -= 1
    (tmp_path / "run" / "config.yaml").write_text(json.dumps(settings))
    with pytest.raises(DataError, match="'transformer_layer_1/.*' has no place in this model"):
        _ = bert_tf.load(tmp_path / "run").encoder


def test_a_family_that_a_format_does_not_have(tmp_path):
    with pytest.raises(ConfigError, match="no family 'elmo' is published as Hugging Face directories"):
        bert_tf.load(FIXTURE, family="elmo")
    bert_tf.save(bert_tf.load(FIXTURE).encoder, None, tmp_path / "tf1", format="tf1")
    with pytest.raises(ConfigError, match="no family 'brt' is published as TensorFlow 1 checkpoints; .* 'bert'"):
        bert_tf.load(tmp_path / "tf1", family="brt")
