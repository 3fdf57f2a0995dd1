"""Every shipped configuration is one that its command accepts."""

import dataclasses
from pathlib import Path

import pytest

from bert_tf import config
from bert_tf.models import preset
from bert_tf.models.building import build_config
from bert_tf.models.electra import generator_config
from bert_tf.tasks import TaskConfig
from bert_tf.training.finetuning import FinetuneConfig
from bert_tf.training.pretrain_config import PretrainConfig, check_objective
from bert_tf.training.study import StudyConfig, plan

CONFIGS = Path(__file__).parent.parent / "configs"


def names(folder):
    return [str(f.relative_to(CONFIGS)) for f in sorted((CONFIGS / folder).rglob("*.yaml"))]


@pytest.mark.parametrize("name", names("pretrain"))
def test_pretraining(name):
    experiment = config.load(PretrainConfig, name)
    build_config(experiment.model, 30522)
    assert experiment.train.precision == "auto"
    assert experiment.optimizer.warmup_steps < experiment.train.steps


@pytest.mark.parametrize("name", names("finetune"))
def test_finetuning(name):
    experiment = config.load(FinetuneConfig, name)
    config.build(TaskConfig, experiment.task, "task")
    assert experiment.train.precision == "auto"
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


def test_electra_is_trained_as_published():
    # google-research/electra: configure_pretraining.py, flops_computation.py; Clark et al. 2020, appendix A.
    for size, batch, steps, rate, length in (
        ("small", 128, 1_000_000, 5e-4, 128),
        ("base", 256, 766_000, 2e-4, 512),
        ("large", 2048, 1_750_000, 2e-4, 512),
    ):
        experiment = config.load(PretrainConfig, f"pretrain/electra_{size}")
        assert (experiment.train.batch_size, experiment.train.steps) == (batch, steps)
        assert (experiment.optimizer.learning_rate, experiment.optimizer.schedule) == (rate, "multiply")
        masking = experiment.masking
        assert (masking.mask_probability, masking.random_probability) == (0.85, 0)
        assert masking.predictions(length) == int((masking.rate + 0.005) * length)
        objective = experiment.objective
        assert (objective.name, objective.discriminator_weight) == ("replaced_token_detection", 50)
        generator = generator_config(preset(f"electra_{size}"), objective.generator_size)
        assert generator.hidden_size == {"small": 64, "base": 256, "large": 256}[size]


def test_xlnet_is_trained_as_published():
    # Yang et al. 2019; zihangdai/xlnet train.py. Half as many rows, of two segments each.
    experiment = config.load(PretrainConfig, "pretrain/xlnet_large")
    assert experiment.train.batch_size * experiment.permutation.segments == 8192
    assert experiment.permutation.predictions(1024) == 2 * 85
    assert (experiment.optimizer.learning_rate, experiment.optimizer.warmup_steps) == (4e-4, 40_000)
    assert experiment.objective.memory_length == 384


def test_spanbert_is_trained_as_published():
    # facebookresearch/SpanBERT, pretraining/README.md: 32 GPUs of 4096 tokens.
    experiment = config.load(PretrainConfig, "pretrain/spanbert_base")
    assert experiment.train.batch_size * 512 == 32 * 4096 and experiment.train.steps == 2_400_000
    assert (experiment.masking.unit, experiment.masking.span_p, experiment.masking.max_span) == ("span", 0.2, 10)
    assert experiment.objective.span_boundary and experiment.objective.pair_head == "none"
    assert (experiment.optimizer.epsilon, experiment.optimizer.schedule) == (1e-8, "after")


@pytest.mark.parametrize("name", names("ablations"))
def test_ablations(name, tmp_path):
    (tmp_path / "labelled").touch()
    study = config.load(StudyConfig, name)
    labelled = {"data": {split: str(tmp_path / "labelled") for split in ("train", "dev")}}
    study = dataclasses.replace(study, finetune={task: s | labelled for task, s in study.finetune.items()})
    experiments = plan(study, tmp_path)
    assert {e.row for e in experiments} == set(study.rows)
    for experiment in experiments:
        model = build_config(experiment.pretrain.model, 8000)
        assert (model.hidden_size, model.num_heads) == (128, 2)
        check_objective(experiment.pretrain)
