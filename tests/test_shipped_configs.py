"""Every shipped configuration is one that its command accepts."""

from pathlib import Path

import pytest

from bert_tf import config
from bert_tf.models.building import build_config
from bert_tf.tasks import TaskConfig
from bert_tf.training.finetuning import FinetuneConfig
from bert_tf.training.pretraining import PretrainConfig

CONFIGS = Path(__file__).parent.parent / "configs"


def names(folder):
    return [str(f.relative_to(CONFIGS)) for f in sorted((CONFIGS / folder).rglob("*.yaml"))]


@pytest.mark.parametrize("name", names("pretrain"))
def test_pretraining(name):
    experiment = config.load(PretrainConfig, name)
    build_config(experiment.model, 30522)
    assert experiment.optimizer.warmup_steps < experiment.train.steps


@pytest.mark.parametrize("name", names("finetune"))
def test_finetuning(name):
    experiment = config.load(FinetuneConfig, name)
    config.build(TaskConfig, experiment.task, "task")
    assert experiment.optimizer.bias_correction


def test_bert_base_is_trained_as_published():
    # google-research/bert: README, optimization.py; Devlin et al. 2019, appendix A.2.
    first, second = (config.load(PretrainConfig, f"pretrain/bert_base{s}") for s in ("", "_512"))
    assert first.train.batch_size == second.train.batch_size == 256
    assert first.train.steps + second.train.steps == 1_000_000
    assert first.masking.max_predictions == 20
    optimizer = first.optimizer
    assert (optimizer.learning_rate, optimizer.warmup_steps, optimizer.weight_decay) == (1e-4, 10_000, 0.01)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon, optimizer.clip_norm) == (0.9, 0.999, 1e-6, 1.0)
    assert not optimizer.bias_correction and optimizer.schedule == "replace"
