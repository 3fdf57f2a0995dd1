import dataclasses
import re
from typing import Annotated, Literal

import pytest

from bert_tf import config
from bert_tf.cli.settings import apply_overrides
from bert_tf.errors import ConfigError, DataError
from bert_tf.tasks.rows.columns_config import TextColumns
from bert_tf.tasks.sections import LabelLossConfig


@dataclasses.dataclass(frozen=True)
class Train:
    batch_size: int = 32
    learning_rate: float = 1e-4
    precision: Literal["float32", "mixed_bfloat16"] = "float32"
    steps: int | None = None
    layers: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    train: Train = Train()
    model: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Careful:
    train: Train = Train(batch_size=8, learning_rate=0.5)


def test_half_a_section_does_not_undo_the_other_half():
    assert config.build(Careful, {"train": {"steps": 3}}).train == Train(batch_size=8, learning_rate=0.5, steps=3)


@pytest.fixture
def experiment(tmp_path):
    file = tmp_path / "experiment.yaml"
    file.write_text("name: a\ntrain:\n  learning_rate: 1e-4\n  steps: 1e6\nmodel: {preset: bert_base}\n")
    return file


def test_overrides(experiment):
    changes = {"train": {"batch_size": 64, "layers": [1, 2], "steps": None}, "model": {"hidden_size": 8}}
    typed = ["train.batch_size=64", "train.layers=[1, 2]", "model.hidden_size=8", "train.steps=null"]
    loaded = config.load(Experiment, experiment, changes)
    assert config.build(Experiment, apply_overrides(config.read_yaml(experiment), typed)) == loaded
    assert loaded.train == Train(batch_size=64, learning_rate=1e-4, steps=None, layers=[1, 2])
    assert loaded.model == {"preset": "bert_base", "hidden_size": 8}
    # A key of the user may have a dot.
    assert config.load(Experiment, experiment, {"model": {"U.S.": 1}}).model == {"preset": "bert_base", "U.S.": 1}


def test_numbers_are_saved_and_loaded_again(experiment, tmp_path):
    loaded = config.load(Experiment, experiment, {"train": {"learning_rate": 3.3e-5}})
    assert loaded.train.learning_rate == 0.000033
    assert loaded.train.steps == 1_000_000 and type(loaded.train.steps) is int
    config.save(loaded, tmp_path / "resolved.yaml")
    assert config.load(Experiment, tmp_path / "resolved.yaml") == loaded


def test_what_looks_like_a_number_and_is_none_stays_a_string_and_an_empty_section_has_its_defaults(tmp_path):
    strings = ["1e5", "1e-4", "1.", "0x1", "true", "null", "", "a: b", "a #b", "über", "1_0.0"]
    experiment = Experiment("5e3", model={"strings": strings, "1e5": 1e5})
    config.save(experiment, tmp_path / "resolved.yaml")
    assert config.load(Experiment, tmp_path / "resolved.yaml") == experiment
    (tmp_path / "empty.yaml").write_text("name: a\nmodel:\ntrain:\n")
    assert config.load(Experiment, tmp_path / "empty.yaml") == Experiment("a")


@pytest.mark.parametrize(("content", "kind"), [("- a\n- b\n", "a list"), ("a\n", "a string"), ("3\n", "a number")])
def test_a_file_that_holds_no_mapping(tmp_path, content, kind):
    (tmp_path / "bad.yaml").write_text(content)
    with pytest.raises(ConfigError, match=f"bad.yaml holds {kind}; it must hold a mapping"):
        config.load(Experiment, tmp_path / "bad.yaml", {"name": "a"})


@pytest.mark.parametrize(("override", "message"), [
    ("train.batchsize=3", "unknown key 'train.batchsize'; did you mean 'batch_size'?"),
    ("batch_size=3", "unknown key 'batch_size'; did you mean 'train.batch_size'?"),
    ("trian.batch_size=3", "unknown key 'trian'; did you mean 'train'?"),
    ("train.batch_size=many", "'train.batch_size' must be int, got 'many'"),
    ("train.precision=bfloat16", "'train.precision' is 'bfloat16'; did you mean 'mixed_bfloat16'?"),
    ("train.layers=3", "'train.layers' must be a list, got 3"),
    ("train.batch_size", "'train.batch_size' is not of the form key=value"),
    ("train=3", "train must be a mapping, got 3"),
    ("train=5 train.steps=2", "'train.steps=2': 'train' is 5 and has no settings below it"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(experiment, override, message):
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        config.build(Experiment, apply_overrides(config.read_yaml(experiment), override.split()))


@pytest.mark.parametrize(("settings", "message"), [
    ({"train": {"batchsize": 3}}, "unknown key 'train.batchsize'; did you mean 'batch_size'?"),
    ({"train.steps": 3}, "'train.steps' has a dot; give nested dicts, {'train': {'steps': ...}}"),
    (["train.steps=3"], "the settings are ['train.steps=3']; give nested dicts"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_in_python(experiment, settings, message):
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        config.load(Experiment, experiment, settings)


def test_of_several_types_the_message_is_about_the_list_or_number():
    for cls, mapping, message in (
        (Layers, {"layers": [0, -1]}, r"'layers\[1\]' is -1; it must be at least 0"),
        (Frozen, {"freeze": -1}, "'freeze' is -1; it must be at least 0"),
        (Frozen, {"freeze": "encoder"}, "'freeze' is 'encoder'; known: backbone; or a whole number$"),
        (LabelLossConfig, {"class_weights": {"a": 1}}, "is {'a': 1}; known: balanced; or a list of numbers$"),
        (TextColumns, {"text": ["a"]}, r"'text' must be int, got \['a'\]; or a text$"),
    ):
        with pytest.raises(ConfigError, match=message):
            config.build(cls, mapping)


def test_long_lists_of_names_are_cut():
    assert config.nearest("zzz", ["a", "b"]) == "; known: a, b"
    assert config.nearest("zzz", range(1000)).endswith("188, ...")


def test_a_missing_key_and_a_missing_file(tmp_path):
    (tmp_path / "bad.yaml").write_text("a: [1\n")
    with pytest.raises(ConfigError, match="bad.yaml is not valid YAML"):
        config.load(Experiment, tmp_path / "bad.yaml")
    with pytest.raises(ConfigError, match="missing key 'name'"):
        config.build(Experiment, {})
    with pytest.raises(ConfigError, match="no configuration file 'pretrain/bert_bas'; did you mean 'pretrain/bert_b"):
        config.find("pretrain/bert_bas")


@dataclasses.dataclass(frozen=True)
class Frozen:
    freeze: Annotated[int, config.Range(at_least=0)] | Literal["backbone"] | None = None


@dataclasses.dataclass(frozen=True)
class Layers:
    layers: list[Annotated[int, config.Range(at_least=0)]] | Literal["spread"] = "spread"


@dataclasses.dataclass(frozen=True)
class Ranged:
    rate: Annotated[float, config.Range(above=0, below=1)] = 0.5
    steps: Annotated[int | None, config.Range(at_least=1)] = None
    epsilon: float = 1e-6
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Outer:
    ranged: Ranged = Ranged()
    counts: dict[str, int] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(("key", "value", "message"), [
    ("rate", 1.0, "'ranged.rate' is 1.0; it must be above 0 and below 1"),
    ("rate", -3.0, "'ranged.rate' is -3.0; it must be above 0 and below 1"),
    ("steps", 0, "'ranged.steps' is 0; it must be at least 1"),
    ("epsilon", float("nan"), "'ranged.epsilon' is nan; it must be a finite number"),
    ("epsilon", float("inf"), "'ranged.epsilon' is inf; it must be a finite number"),
    ("seed", 2**63, "'ranged.seed' is 9223372036854775808; it must be a finite number of 64 bits"),
    ("seed", 10**4000, "; it must be a finite number of 64 bits"),
    ("epsilon", 10**400, "; it must be a finite number of 64 bits"),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(key, value, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        config.build(Outer, {"ranged": {key: value}})
    with pytest.raises(ConfigError, match=re.escape(message)):
        config.check(Outer(Ranged(**{key: value})))


def test_records_are_read_strictly(tmp_path):
    file = tmp_path / "a.json"
    for text, message in (
        ('{"counts": {"a": "b"}}', "a.json: 'counts.a' must be int, got 'b'"),
        ('{"count": 1}', "a.json: unknown key 'count'"),
        ("[]", "a.json must hold a JSON object, but holds a list"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=re.escape(message)):
            config.read_record(Outer, file)
    file.write_text('{"counts": {"a": 1}}')
    assert config.read_record(Outer, file) == Outer(counts={"a": 1})


@dataclasses.dataclass(frozen=True)
class Shape:
    CHOSEN_BY = "name"

    @classmethod
    def choices(cls):
        return {"round": Round, "square": Square}


@dataclasses.dataclass(frozen=True)
class Round(Shape):
    name: str = "round"
    radius: float = 1.0


@dataclasses.dataclass(frozen=True)
class Square(Shape):
    name: str = "square"
    side: int = 2
    line: Literal["solid", "dashed"] = "solid"


@dataclasses.dataclass(frozen=True)
class Drawing:
    shape: Shape = dataclasses.field(default_factory=Round)
    steps: int = 1


def test_a_section_is_chosen_by_its_name():
    assert config.build(Drawing, {}).shape == Round()
    assert config.build(Drawing, {"shape": {"name": "square", "side": 3}}).shape == Square(side=3)
    assert config.build(Drawing, {"shape": {"radius": 2}}).shape == Round(radius=2.0)
    assert config.keys(Drawing) == ["shape.name", "shape.radius", "shape.side", "shape.line", "steps"]


@pytest.mark.parametrize("mapping, message", [
    ({"shape": {"name": "sqare"}}, "'shape.name' is 'sqare'; did you mean 'square'?"),
    ({"shape": {"side": 3}}, "'shape.side' applies only to square, but shape.name is 'round'; remove 'shape.side'"),
    ({"shape": {"steps": 3}}, "unknown key 'shape.steps'; did you mean 'steps'?"),
    ({"side": 3, "shape": {"name": "square"}}, "unknown key 'side'; did you mean 'shape.side'?"),
    ({"side": 3, "shape": {"name": ["square"]}}, "unknown key 'side'; known: shape, steps"),
    ({"radius": 3, "shape": {"name": "square"}}, "unknown key 'radius'; known: shape, steps"),
    ({"shape": "square"}, "shape must be a mapping, got 'square'; write {name: square}"),
])  # fmt: skip
def test_keys_of_other_choices_are_explained(mapping, message):
    with pytest.raises(ConfigError) as caught:
        config.build(Drawing, mapping)
    assert str(caught.value) == message
