"""Configurations of all sections, right and wrong: an answer or a UserError, and no TensorFlow to wait for."""

from damage import answer_or_user_error, as_json, cases, damaged, texts, values
from hypothesis import given
from hypothesis import strategies as st

from bert_tf import config, parsing
from bert_tf.cli.settings import apply_overrides
from bert_tf.prompting.prompting_config import PromptingConfig
from bert_tf.runs.benchmark_config import BenchmarkConfig
from bert_tf.runs.study_config import StudyConfig
from bert_tf.training.finetune_config import FinetuneConfig, check_finetuning
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining
from bert_tf.vectors.vectors_config import VectorsConfig
from tfrecords.config import ShardsConfig

FOLDERS = {
    "pretrain": PretrainConfig, "finetune": FinetuneConfig, "ablations": StudyConfig, "prompts": PromptingConfig,
    "benchmarks": BenchmarkConfig, "vectors": VectorsConfig,
}  # fmt: skip
CHECKS = dict.fromkeys([*FOLDERS.values(), ShardsConfig], lambda _: None)
CHECKS |= {PretrainConfig: check_pretraining, FinetuneConfig: check_finetuning}
KEYS = {cls: config.keys(cls) for cls in CHECKS}
# Those of distillation are of two classes: tests/test_shipped_configs.py.
SHIPPED = sorted(name for name in config.shipped_configs() if name.split("/")[0] in FOLDERS)


@st.composite
def overrides(draw):
    """A class and settings for it as `--set` takes them, mostly of keys that there are."""
    cls = draw(st.sampled_from(list(CHECKS)))
    key = st.one_of(st.sampled_from(KEYS[cls]), st.sampled_from(KEYS[cls]), texts)
    value = st.one_of(values.map(as_json), texts)
    return cls, [f"{draw(key)}={draw(value)}" for _ in range(draw(st.integers(1, 3)))]


@cases(25)
@given(overrides())
def test_settings_on_the_command_line(given_):
    cls, items = given_
    with answer_or_user_error():
        CHECKS[cls](config.build(cls, apply_overrides({}, items)))


@cases(8)
@given(st.data())
def test_shipped_configurations_with_damage(data):
    name = data.draw(st.sampled_from(SHIPPED))
    whole = config.read_yaml(config.find(name))
    cls = FOLDERS[name.split("/")[0]]
    with answer_or_user_error():
        text = as_json(data.draw(damaged(whole)))  # JSON is YAML
        settings = parsing.parse_yaml(text, name)
        CHECKS[cls](config.build(cls, settings))


@cases(100)
@given(st.text(st.characters(codec="utf-8"), max_size=60) | st.text("{}[]&*!|>%@`'\"#,:-? \n\ta1.", max_size=60))
def test_any_text_as_yaml(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(text.encode())
    with answer_or_user_error():
        config.load(PretrainConfig, file)
