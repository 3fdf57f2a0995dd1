"""Every shipped configuration is one that its command accepts."""

import dataclasses
import math
import re
from pathlib import Path

import pytest

from bert_tf import config
from bert_tf.distillation import DistillConfig, DistillPretrainConfig, read_terms
from bert_tf.distillation.distill_config import check_distillation, check_distilled_pretraining
from bert_tf.models import preset
from bert_tf.models.electra.config import generator_config
from bert_tf.models.families import FAMILIES, build_backbone, build_config
from bert_tf.prompting import PromptingConfig, make_prompts
from bert_tf.runs.benchmark_config import BenchmarkConfig
from bert_tf.runs.study import StudyConfig, plan
from bert_tf.runs.study_plan import merge
from bert_tf.tasks import check_task
from bert_tf.training.finetuning import FinetuneConfig
from bert_tf.training.optimization import make_optimizer
from bert_tf.training.optimizer_config import AdafactorConfig
from bert_tf.training.pretrain_config import PretrainConfig, check_pretraining
from bert_tf.vectors import VectorsConfig
from tfrecords import DenoisingConfig, ShardsConfig

CONFIGS = Path(__file__).parent.parent / "configs"


def names(folder):
    return [str(f.relative_to(CONFIGS)) for f in sorted((CONFIGS / folder).rglob("*.yaml"))]


@pytest.mark.parametrize("name", names("pretrain"))
def test_pretraining(name):
    experiment = config.load(PretrainConfig, name)
    model = build_config(experiment.model, 30522)
    assert experiment.train.precision == "auto" and model.intermediate_size > 0, "the widths by which it is chosen"
    assert (experiment.optimizer.warmup_steps or 0) < experiment.train.steps


@pytest.mark.parametrize("name", names("laptop"))
def test_laptop(name):
    """Each says in its first lines how its shards are written, and they are those that its objective reads."""
    text = (CONFIGS / name).read_text()
    shards = re.search(r"--output shards (.*)$", text, re.MULTILINE)[1].split()
    packing = {key[2:].replace("-", "_"): value for key, value in zip(shards[::2], shards[1::2])}
    experiment = config.load(PretrainConfig, name, {"data": {"shards": "shards"}})
    check_pretraining(experiment)
    packing = ShardsConfig(**packing | {"sequence_length": int(packing["sequence_length"])})
    experiment.objective.for_shards(packing.packing, packing.sequence_length)
    assert build_config(experiment.model, 4096).max_positions >= packing.sequence_length


@pytest.mark.parametrize("name", names("finetune"))
def test_finetuning(name):
    experiment = config.load(FinetuneConfig, name)
    check_task(experiment.task)
    assert experiment.train.precision == "auto"
    assert experiment.optimizer.name == "adafactor" or experiment.optimizer.bias_correction


@pytest.mark.parametrize("name", names("distill"))
def test_distillation(name):
    """Each is accepted with the paths that its command adds; those with an objective are of pretraining."""
    given = {"teacher": {"path": "teacher"}}
    if "objective:" in (CONFIGS / name).read_text(encoding="utf-8"):
        given["data"] = {"shards": "shards"}
        if not config.load(DistillPretrainConfig, name).model:
            given["train"] = {"init_from": "student"}
        check_distilled_pretraining(config.load(DistillPretrainConfig, name, given))
    else:
        files = {"dev": "dev.tsv", "train": "train.tsv"}
        check_distillation(config.load(DistillConfig, name, given | {"init_from": "student", "data": files}))


def test_students_are_distilled_as_published():
    """train.py and distiller.py of research_projects/distillation; task_distill.py of TinyBERT; Sun et al. 2019."""
    distilbert = config.load(DistillPretrainConfig, "distill/distilbert")
    terms = read_terms(distilbert.terms)
    weights = [("soft_labels", 5), ("hard_labels", 2), ("hidden_cosine", 1)]
    assert [(name, term.weight) for name, term in terms.items()] == weights
    soft = terms["soft_labels"]
    assert (soft.temperature, soft.temperature_squared, distilbert.predictions) == (2, True, "all")
    assert distilbert.objective.masking.rare_token_exponent == 0.7
    assert distilbert.optimizer == config.load(PretrainConfig, "pretrain/distilbert_base").optimizer
    tinybert = [config.load(DistillConfig, f"distill/{name}") for name in ("tinybert", "tinybert_prediction")]
    found = [(t.train.epochs, t.optimizer.learning_rate, t.train.batch_size) for t in tinybert]
    assert found == [(10, 5e-5, 32), (3, 3e-5, 32)]
    soft = read_terms(tinybert[1].terms)["soft_labels"]
    assert (soft.temperature, soft.temperature_squared, soft.mean) == (1, False, "classes")
    mobilebert = config.load(DistillPretrainConfig, "distill/mobilebert")
    term, student = read_terms(mobilebert.terms)["progressive"], build_config(mobilebert.model, 30_522)
    assert (term.feature_maps, term.attention, term.mean, term.variance) == (100, 1, 5000, 5)
    assert (term.layer_rate, term.earlier_rate) == (3.0, 0.3)
    assert term.phase_steps * student.num_layers == mobilebert.train.steps and student.intermediate_size == 768
    general = config.load(DistillPretrainConfig, "distill/tinybert_general")
    assert build_config(general.model, 30_522).hidden_size == 312
    assert list(general.terms) == ["hidden_states", "attention_scores"]
    assert general.objective.masking.mask_token_rate == general.objective.masking.random_token_rate == 0
    # BertAdam of TinyBERT's transformer/optimization.py: constant without --pred_distill, else `warmup_linear`; without
    # bias correction.
    for experiment, rates in (
        (tinybert[0], (5e-5, 5e-5, 5e-5, 5e-5)),
        (tinybert[1], (0.0, 1.5e-5, 3e-5, 1.5e-5)),
        (general, (0.0, 2.5e-5, 5e-5, 2.5e-5)),
    ):
        schedule = make_optimizer(experiment.optimizer, 1000)._learning_rate
        assert [float(schedule(step)) for step in (0, 50, 100, 550)] == pytest.approx(rates)
        assert not experiment.optimizer.bias_correction


def test_gpt1_and_t5_are_fine_tuned_as_published():
    # Radford et al. 2018, section 4.1; finetune-transformer-lm train.py and opt.py, warmup_linear.
    experiment = config.load(FinetuneConfig, "finetune/models/gpt1")
    decoder, head = experiment.task["decoder"], experiment.task["head"]
    assert (decoder["lm_weight"], head["dropout"], experiment.task["sequence_length"]) == (0.5, 0.1, 512)
    assert (experiment.train.epochs, experiment.train.batch_size, experiment.optimizer.weight_decay) == (3, 32, 0.01)
    schedule = make_optimizer(experiment.optimizer, 10_000)._learning_rate
    for step, expected in ((10, 10 / 20 * 0.999), (20, 0.998), (5000, 0.5)):
        assert float(schedule(step)) == pytest.approx(6.25e-5 * expected, rel=1e-4)
    # Raffel et al. 2020, section 3.1.3.
    experiment = config.load(FinetuneConfig, "finetune/models/t5")
    schedule = make_optimizer(experiment.optimizer, 1000)._learning_rate
    assert [float(schedule(step)) for step in (0, 999)] == pytest.approx([1e-3, 1e-3])
    assert (experiment.train.batch_size, experiment.task["sequence_length"]) == (128, 512)


def test_multiple_choice_is_fine_tuned_as_published():
    """The rate, its warm-up, epochs, the batch and the cuts: google-research/bert issue 38 and section 4.4 of the paper;
    google-research/albert run_race.py; fairseq README.race.md; openai/finetune-transformer-lm train.py."""
    published = {
        "swag": (2e-5, None, 3, 16, 128, None, "last"),
        "race": (1e-5, 1000, 4, 32, 512, 128, "last"),
        "race_roberta": (1e-5, 0, 5, 16, 512, 126, "first"),
        "rocstories_gpt1": (6.25e-5, None, 3, 32, 512, 254, "first"),  # n_batch 8 on each of n_gpu 4
    }
    for name, expected in published.items():
        experiment = config.load(FinetuneConfig, f"finetune/published/{name}")
        task, optimizer, train = check_task(experiment.task), experiment.optimizer, experiment.train
        found = (optimizer.learning_rate, optimizer.warmup_steps, train.epochs, train.batch_size)
        assert found + (task.sequence_length, task.option_length, task.option_kept) == expected, name
        assert task.order == ("option" if name == "race_roberta" else "context")
    assert task.decoder.lm_weight == 0.5 and task.decoder.layout == "gpt1" and task.context_length == 254
    race = config.load(FinetuneConfig, "finetune/published/race_roberta")
    schedule = make_optimizer(race.optimizer, 1000)._learning_rate
    assert [float(schedule(step)) for step in (0, 999)] == pytest.approx([1e-5, 1e-5])


@pytest.mark.parametrize("name", names("vectors"))
def test_vectors(name):
    """Each says in its first line what it is, and is the algorithm of its name."""
    assert (CONFIGS / name).read_text().startswith("# ")
    assert config.load(VectorsConfig, name).algorithm.name == Path(name).stem


@pytest.mark.parametrize("name", names("prompts"))
def test_prompts(name):
    """Each says in its first line what it is, and makes prompts of rows that have its columns."""
    assert (CONFIGS / name).read_text(encoding="utf-8").startswith("# ")
    experiment = config.load(PromptingConfig, name)
    if experiment.test is None and experiment.synthetic.name is None:
        labels = list(experiment.options)
        rows = [dict.fromkeys(experiment.columns, "x") | {experiment.label: labels[i % len(labels)]} for i in range(6)]
        experiment = dataclasses.replace(experiment, test=rows)
    prompts = make_prompts(experiment)
    assert prompts and all(prompt.expected and not prompt.text.endswith(" ") for prompt in prompts)


# What was published, transcribed from the files named, not from the configurations: sequences in a batch, updates,
# peak and end of the learning rate, warm-up, how the two combine, beta_2, epsilon, weight decay, bias correction,
# clipping. BERT's AdamWeightDecayOptimizer has beta_1 0.9, as all others, and no bias correction.
BERT = "google-research/bert optimization.py, run_pretraining.py; Devlin et al. 2019, appendix A.2"
ROBERTA = "Liu et al. 2019, section 5 and table 9 (8K sequences); fairseq adam.py, polynomial_decay_schedule.py"
FAIRSEQ = "fairseq examples/roberta/config/pretraining/base.yaml, README.pretraining.md"
ALBERT = "google-research/albert README.md, optimization.py, lamb_optimizer.py; Lan et al. 2019, section 4.1"
ELECTRA = "google-research/electra configure_pretraining.py, flops_computation.py, model/optimization.py"
SPANBERT = "facebookresearch/SpanBERT pretraining/README.md, fairseq/optim/lr_scheduler/polynomial_decay_schedule.py"
XLNET = "Yang et al. 2019, section 3.1 and table 7; zihangdai/xlnet model_utils.py get_train_op, train.py"
DISTILBERT = "huggingface/transformers research_projects/distillation train.py, distiller.py (its optimizer only)"
MODERNBERT = "AnswerDotAI/ModernBERT yamls/modernbert/modernbert-base-pretrain.yaml; Warner et al. 2024, section 2.2"
NANOGPT = "karpathy/nanoGPT config/train_gpt2.py, train.py; Brown et al. 2020, table 2.1 (rates of the larger sizes)"
GPT1 = "Radford et al. 2018, section 4.1; openai/finetune-transformer-lm opt.py"


def both(name, *row):
    """The same row for base and large."""
    return {name.format(size): row for size in ("base", "large")}


PUBLISHED = {
    **both("bert_{}", BERT, 256, 900_000, 1e-4, 1e-5, 10_000, "replace", 0.999, 1e-6, 0.01, False, 1.0),
    # Corrects the bias, because its moments start at zero where the published run continued them.
    **both("bert_{}_512", BERT, 256, 100_000, 1e-5, 0.0, 0, "replace", 0.999, 1e-6, 0.01, True, 1.0),
    "roberta_base": (ROBERTA, 8192, 500_000, 6e-4, 0.0, 24_000, "after", 0.98, 1e-6, 0.01, True, None),
    "roberta_large": (ROBERTA, 8192, 500_000, 4e-4, 0.0, 30_000, "after", 0.98, 1e-6, 0.01, True, None),
    "roberta_base_2048": (FAIRSEQ, 2048, 125_000, 5e-4, 0.0, 10_000, "after", 0.98, 1e-6, 0.01, True, None),
    **both("albert_{}", ALBERT, 4096, 125_000, 0.00176, 0.0, 3125, "replace", 0.999, 1e-6, 0.01, False, 1.0),
    "albert_xlarge": (ALBERT, 4096, 125_000, 0.00176, 0.0, 3125, "replace", 0.999, 1e-6, 0.01, False, 1.0),
    "albert_xxlarge": (ALBERT, 4096, 1_500_000, 0.00176, 0.0, 3125, "replace", 0.999, 1e-6, 0.01, False, 1.0),
    "electra_small": (ELECTRA, 128, 1_000_000, 5e-4, 0.0, 10_000, "multiply", 0.999, 1e-6, 0.01, False, 1.0),
    "electra_base": (ELECTRA, 256, 766_000, 2e-4, 0.0, 10_000, "multiply", 0.999, 1e-6, 0.01, False, 1.0),
    "electra_large": (ELECTRA, 2048, 1_750_000, 2e-4, 0.0, 10_000, "multiply", 0.999, 1e-6, 0.01, False, 1.0),
    # 32 GPUs of 4096 tokens, in sequences of 512: 256.
    **both("spanbert_{}", SPANBERT, 256, 2_400_000, 1e-4, 0.0, 10_000, "replace", 0.999, 1e-8, 0.01, True, 1.0),
    # 8192 segments; a row here is two. The rate ends at min_lr_ratio = 0.001 of the peak.
    **both("xlnet_{}", XLNET, 8192 // 2, 500_000, 4e-4, 4e-7, 40_000, "after", 0.999, 1e-6, 0.01, False, 1.0),
    # 8 GPUs, each 50 batches of 5; the warm-up is a share: 0.05.
    "distilbert_base": (DISTILBERT, 8 * 50 * 5, 12_600, 5e-4, 0.0, 630, "after", 0.98, 1e-6, 0.0, True, 5.0),
    # 1.719e12 tokens and a warm-up of 3e9 in batches of 4608 x 1024. A decay of 1e-5 for an update at the peak.
    "modernbert_base": (MODERNBERT, 4608, 364_300, 8e-4, 0.0, 636, "after", 0.98, 1e-6, 1e-5 / 8e-4, True, 1.0),
    "gpt1": (GPT1, 64, 3_000_000, 2.5e-4, 0.0, 2000, "replace", 0.999, 1e-8, 0.01, True, 1.0),
    # 5 * 8 micro-batches of 12 rows: 491,520 tokens.
    **{
        f"gpt2_{size}": (NANOGPT, 40 * 12, 600_000, rate, rate / 10, 2000, "after", 0.95, 1e-8, 0.1, True, 1.0)
        for size, rate in {"small": 6e-4, "medium": 3e-4, "large": 2.5e-4, "xl": 2e-4}.items()
    },
}
# Adafactor's learning rate is 1 / sqrt(max(step, 10,000)) in all. Inputs of 512 tokens (mT5, ByT5: 1024) in a batch, updates,
# dropout.
T5 = "Raffel et al. 2020, section 3.7; operative_config.gin of the released models (tokens_per_batch = 2^20)"
T5_1_1 = "google-research/text-to-text-transfer-transformer released_checkpoints.md"
MT5 = "Xue et al. 2021, section 3.2"
BYT5 = "google-research/byt5 README.md (1,048,576 tokens per batch, inputs of 1024, targets of 189), tasks.py"
ADAFACTOR = {
    **{f"t5_{size}": (T5, 2**20 // 512, 1_000_000, 0.1) for size in ("small", "base", "large")},
    "t5_1_1_base": (T5_1_1, 2**20 // 512, 1_000_000, 0.0),
    "mt5_base": (MT5, 1024, 1_000_000, 0.0),
    "byt5_base": (BYT5, 2**20 // 1024, 1_000_000, 0.0),
}
# H, the warm-up, updates, checkpoints that are averaged.
ATTENTION = "Vaswani et al. 2017, sections 5.1 (25,000 tokens of source and of target), 5.2, 5.3, 5.4, 6.1"
TRANSFORMER = {"transformer_base": (512, 4000, 100_000, 5), "transformer_big": (1024, 4000, 300_000, 20)}
# Tokens of a batch, updates, learning rate, what gradients are clipped to, candidates of the sampled softmax.
ADVERSARIAL_TEXT = "tensorflow/models research/adversarial_text pretrain.py"
BILM = "allenai/bilm-tf bin/train_elmo.py, training.py; 3 GPUs, 10 epochs of 768,648,884 tokens"
RECURRENT = {
    "lm_lstm": (ADVERSARIAL_TEXT, 400, 256 * 400 // 1600, 100_000, 1e-3, 1.0, 1024),
    "sa_lstm": (ADVERSARIAL_TEXT, 400, 256, 100_000, 1e-3, 1.0, None),
    # For 20 times the loss.
    "elmo": (BILM, 20, 3 * 128 * 20 // 240, 10 * 768_648_884 // (3 * 128 * 20), 0.2, 10 / 20, 8192),
}
SMALL = {"bert_tiny", "bert_laptop", "gpt_laptop", "t5_laptop"}  # sizes for a laptop, with settings of our own
# Masking: rate, fraction masked, fraction replaced by random tokens, strategy, tokens predicted in a sequence of so many.
TOKENS = (0.15, 0.8, 0.1, "token")
OF_512 = "bert_base_512 bert_large_512 roberta_base roberta_large roberta_base_2048 distilbert_base".split()
MASKING = {
    **dict.fromkeys(("bert_base", "bert_large"), (*TOKENS, 20, 128)),  # create_pretraining_data.py
    **dict.fromkeys(OF_512, (*TOKENS, 77, 512)),
    **{f"albert_{size}": (0.15, 0.8, 0.1, "ngram", 20, 512) for size in ("base", "large", "xlarge", "xxlarge")},
    # int((mask_prob + 0.005) * max_seq_length); 85 % of them replaced, none by random tokens.
    "electra_small": (0.15, 0.85, 0.0, "token", int(0.155 * 128), 128),
    "electra_base": (0.15, 0.85, 0.0, "token", int(0.155 * 512), 512),
    "electra_large": (0.25, 0.85, 0.0, "token", int(0.255 * 512), 512),
    **dict.fromkeys(("spanbert_base", "spanbert_large"), (0.15, 0.8, 0.1, "span", 77, 512)),
    "modernbert_base": (0.3, 0.8, 0.1, "token", 308, 1024),
}
# What may be predicted beside text, how the number is rounded, where random tokens are from: BERT, ALBERT and ELECTRA
# (create_pretraining_data.py, pretrain_helpers.py get_candidates_mask) leave out [CLS] and [SEP] alone, fairseq's
# mask_tokens_dataset.py nothing; SpanBERT's masking.py has math.ceil and np.random.choice(tokens).
CANDIDATES = {
    **dict.fromkeys(("bert", "albert", "electra"), ("predict_unknown", "nearest", "uniform")),
    "roberta": ("predict_special", "random", "uniform"),
    "spanbert": ("predict_unknown", "up", "corpus"),
}
OBJECTIVES = {"electra": "replaced_token_detection", "xlnet": "permutation_lm"}


def test_every_family_and_size_has_its_recipe():
    listed = PUBLISHED.keys() | ADAFACTOR.keys() | TRANSFORMER.keys() | RECURRENT.keys() | SMALL
    assert {Path(name).stem for name in names("pretrain")} == listed
    assert PUBLISHED.keys() == MASKING.keys() | {name for name in PUBLISHED if name.startswith(("xlnet", "gpt"))}
    recipes = PUBLISHED.keys() | ADAFACTOR.keys() | TRANSFORMER.keys()
    families = {name.split("_")[0] for name in recipes} - {"mt5", "byt5"}
    others = {"elmo", "lstm_lm", "word_vectors", "bilstm"}  # named otherwise, or not pretrained by `bert-tf pretrain`
    # Of configs/ablations, or of T5's.
    assert families == FAMILIES.keys() - {"t5_encoder", "t5_decoder", "transformer_bilm"} - others


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_models_are_trained_as_published(name):
    experiment = config.load(PretrainConfig, f"pretrain/{name}")
    source, unroll, batch, steps, rate, clip, candidates = RECURRENT[name]
    train, optimizer, objective = experiment.train, experiment.optimizer, experiment.objective
    assert (train.batch_size, optimizer.learning_rate, optimizer.clip_norm) == (batch, rate, clip), source
    assert train.steps == pytest.approx(steps, rel=2e-3)
    assert experiment.model["unroll"] == unroll
    assert candidates is None or objective.sampled_softmax == candidates
    schedule = make_optimizer(optimizer, train.steps)._learning_rate
    if name == "elmo":
        assert [float(schedule(step)) for step in (0, train.steps - 1)] == pytest.approx([0.2, 0.2])
        assert (optimizer.name, optimizer.initial_accumulator_value) == ("adagrad", 1 / 20**2)
    else:
        assert float(schedule(5000)) == pytest.approx(rate * 0.9999**5000, rel=0.02)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_recipe_is_the_published_one(name):
    experiment = config.load(PretrainConfig, f"pretrain/{name}")
    optimizer, train = experiment.optimizer, experiment.train
    warmup = optimizer.warmup_steps
    if warmup is None:
        warmup = int(train.steps * optimizer.warmup_fraction)
    ours = (
        train.batch_size, train.steps, optimizer.learning_rate, optimizer.end_learning_rate, warmup,
        optimizer.schedule, optimizer.beta_2, optimizer.epsilon, optimizer.weight_decay,
        optimizer.bias_correction, optimizer.clip_norm,
    )  # fmt: skip
    source, *published = PUBLISHED[name]
    assert ours == pytest.approx(tuple(published)) if None not in published else ours == tuple(published), source
    family = name.split("_")[0]
    assert (optimizer.name, optimizer.beta_1) == ("lamb" if family == "albert" else "adamw", 0.9)
    assert optimizer.decay == ("cosine" if family in ("gpt1", "gpt2") else "polynomial")
    assert optimizer.power == (0.0 if family == "modernbert" else 1.0)
    assert train.batch_size % train.accumulation_steps == 0
    size = {"albert": "_v1", "xlnet": "_cased"}.get(family, "")
    without_dropout = {"dropout": 0.0, "attention_dropout": 0.0} if family == "gpt2" else {}
    assert experiment.model == {"preset": name.removesuffix("_512").removesuffix("_2048") + size} | without_dropout
    assert experiment.objective.name == OBJECTIVES.get(family, "causal_lm" if family[:3] == "gpt" else "masked_lm")


@pytest.mark.parametrize("name", ADAFACTOR)
def test_the_recipe_of_t5_is_the_published_one(name):
    experiment = config.load(PretrainConfig, f"pretrain/{name}")
    source, batch, steps, dropout = ADAFACTOR[name]
    assert (experiment.train.batch_size, experiment.train.steps) == (batch, steps), source
    assert experiment.train.batch_size % experiment.train.accumulation_steps == 0
    model = build_config(experiment.model)
    assert model == dataclasses.replace(preset(name), dropout=dropout), source
    assert experiment.optimizer == AdafactorConfig()
    for step in (0, 9_999, 10_000, 250_000, 999_999):
        assert rate(name, step) == pytest.approx(max(step, 10_000) ** -0.5, rel=1e-5)
    objective = experiment.objective
    noise = DenoisingConfig(mean_span=20.0) if name.startswith("byt5") else DenoisingConfig()
    assert (objective.name, objective.z_loss, objective.denoising) == ("denoising", 1e-4, noise)
    # The length of shards that the recipe names, </s> included, and the published length of inputs.
    length, recipe = (1024, name) if name.startswith(("mt5", "byt5")) else (512, "t5_base")
    said = re.search(r"--sequence-length (\d+)", (CONFIGS / "pretrain" / f"{recipe}.yaml").read_text())
    assert objective.denoising.longest_text(length) + 1 == int(said[1])


@pytest.mark.parametrize("name", TRANSFORMER)
def test_the_recipe_of_the_transformer_is_the_published_one(name):
    experiment = config.load(PretrainConfig, f"pretrain/{name}")
    hidden, warmup, steps, averaged = TRANSFORMER[name]
    assert build_config(experiment.model) == preset(name), ATTENTION
    for step in (0, 1, 100, warmup - 1, warmup, 50_000, steps - 1):  # equation 3; its first update is number 1
        expected = hidden**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)
        assert rate(name, step) == pytest.approx(expected, rel=1e-6), ATTENTION
    optimizer, train = experiment.optimizer, experiment.train
    moments = (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon, optimizer.bias_correction)
    assert moments == (0.9, 0.98, 1e-9, True), ATTENTION
    assert (optimizer.weight_decay, optimizer.clip_norm) == (0.0, None), "tensor2tensor, transformer_base_v1"
    assert (train.steps, train.keep_checkpoints) == (steps, averaged), ATTENTION
    assert train.batch_size % train.accumulation_steps == 0
    assert 256 * train.batch_size == pytest.approx(25_000, rel=0.01), ATTENTION
    hours = {"transformer_base": 12, "transformer_big": 84}[name]
    assert train.checkpoint_every / steps * hours * 60 == pytest.approx(10, abs=0.2), ATTENTION
    objective = experiment.objective
    smoothing = (objective.label_smoothing, objective.label_smoothing_normalization)
    assert (objective.name, *smoothing) == ("text_to_text", 0.1, "tensor2tensor"), ATTENTION


@pytest.mark.parametrize("name", MASKING)
def test_masking_is_the_published_one(name):
    masking = config.load(PretrainConfig, f"pretrain/{name}").objective.masking
    *ours, predictions, length = MASKING[name]
    assert [masking.rate, masking.mask_token_rate, masking.random_token_rate, masking.strategy] == ours
    assert masking.predictions(length) == predictions
    if name.split("_")[0] in CANDIDATES:
        candidates, *others = CANDIDATES[name.split("_")[0]]
        assert [masking.predict_unknown, masking.predict_special].count(True) == getattr(masking, candidates) == 1
        assert [masking.rounding, masking.random_tokens] == others
    if masking.strategy == "ngram":
        assert masking.max_ngram == 3
    if masking.strategy == "span":
        assert (masking.span_p, masking.max_span) == (0.2, 10)


def rate(name, step):
    """The learning rate of the update after `step` others, as the training command has it."""
    experiment = config.load(PretrainConfig, f"pretrain/{name}")
    return float(make_optimizer(experiment.optimizer, experiment.train.steps)._learning_rate(step))


@pytest.mark.parametrize("size", ["base", "large"])
def test_berts_two_phases_are_one_decay_over_a_million_updates(size):
    first, second = f"bert_{size}", f"bert_{size}_512"
    for step in (10_000, 450_000, 899_999):
        assert rate(first, step) == pytest.approx(1e-4 * (1 - step / 1e6), rel=1e-4)
    assert rate(first, 5_000) == pytest.approx(5e-5)
    for step in (0, 1, 50_000, 99_999):
        assert rate(second, step) == pytest.approx(1e-4 * (1 - (900_000 + step) / 1e6), rel=1e-2, abs=1e-11)
    assert rate(second, 0) == pytest.approx(rate(first, 899_999), rel=1e-4)


def test_schedules_are_the_published_ones():
    assert rate("spanbert_base", 1_200_000) == pytest.approx(5e-5, rel=1e-4)  # not 5.02e-5: not less the warm-up
    assert rate("spanbert_base", 20_000) == pytest.approx(9.917e-5, rel=1e-4)
    assert rate("roberta_base", 262_000) == pytest.approx(3e-4, rel=1e-4)  # half way after the warm-up
    assert rate("xlnet_large", 500_000) == pytest.approx(4e-7, rel=1e-4)
    assert rate("electra_small", 5_000) == pytest.approx(5e-4 * 0.995 * 0.5, rel=1e-4)
    assert rate("albert_base", 3_125) == pytest.approx(1.76e-3 * (1 - 3_125 / 125_000), rel=1e-4)
    for step in (636, 200_000, 364_299):
        assert rate("modernbert_base", step) == pytest.approx(8e-4, rel=1e-4)


def test_gpts_rates_fall_by_a_cosine():
    # train.py get_lr of nanoGPT; opt.py warmup_cosine of finetune-transformer-lm.
    for step in (2000, 100_000, 599_999):
        progress = (step - 2000) / (600_000 - 2000)
        expected = 6e-5 + 0.5 * (1 + math.cos(math.pi * progress)) * (6e-4 - 6e-5)
        assert rate("gpt2_small", step) == pytest.approx(expected, rel=1e-4)
    assert rate("gpt2_small", 1000) == pytest.approx(3e-4)
    assert rate("gpt1", 1_500_000) == pytest.approx(1.25e-4, rel=1e-4)
    assert rate("gpt1", 3_000_000) == pytest.approx(0, abs=1e-10)


def test_glue_and_superglue_are_what_the_papers_say():
    glue = config.load(BenchmarkConfig, "benchmarks/glue")
    settings = config.build(FinetuneConfig, glue.finetune)
    assert (settings.train.epochs, settings.train.batch_size, settings.optimizer.learning_rate) == (3, 32, 2e-5)
    # Jiant 1.2.1.
    superglue = config.build(FinetuneConfig, config.load(BenchmarkConfig, "benchmarks/superglue").finetune)
    assert (superglue.train.epochs, superglue.train.batch_size, superglue.optimizer.learning_rate) == (10, 4, 1e-5)


def test_version_2_of_albert_differs_in_dropout_alone():
    for size in ("base", "large", "xlarge", "xxlarge"):
        first, second = (preset(f"albert_{size}_v{version}") for version in (1, 2))
        assert first.dropout == (0.0 if size == "xxlarge" else 0.1)
        assert dataclasses.replace(first, dropout=0.0, attention_dropout=0.0) == second


def test_the_objectives_are_set_as_published():
    for size in ("small", "base", "large"):
        objective = config.load(PretrainConfig, f"pretrain/electra_{size}").objective
        assert objective.discriminator_weight == 50
        generator = generator_config(preset(f"electra_{size}"), objective.generator_size)
        assert generator.hidden_size == {"small": 64, "base": 256, "large": 256}[size]
    for size in ("base", "large"):
        objective = config.load(PretrainConfig, f"pretrain/spanbert_{size}").objective
        assert objective.span_boundary and objective.pair_task == "none"
        experiment = config.load(PretrainConfig, f"pretrain/xlnet_{size}")
        permutation = experiment.objective.permutation  # train.py and data_utils.py: README.md's command
        assert (permutation.alpha, permutation.beta, permutation.max_ngram) == (6, 1, 5)
        assert (permutation.permutation_size, permutation.segments, permutation.bidirectional) == (256, 2, True)
        assert permutation.predictions(1024) == 2 * 85 and permutation.predict_special
        assert experiment.objective.memory_length == 384
    assert config.load(PretrainConfig, "pretrain/albert_large").objective.pair_task == "sop"


@pytest.mark.parametrize("name", names("ablations"))
def test_ablations(name, tmp_path):
    (tmp_path / "labelled").touch()
    study = config.load(StudyConfig, name)
    labelled = {"data": {split: str(tmp_path / "labelled") for split in ("train", "dev")}}
    study = dataclasses.replace(study, finetune={task: s | labelled for task, s in study.finetune.items()})
    study = study if study.pretrains else dataclasses.replace(study, init_from="run")
    experiments = plan(study, tmp_path)
    assert {e.folder.parts[-3] for e in experiments} == set(study.rows)
    for experiment in (e for e in experiments if e.folder.name == "pretrained"):
        model = build_config(experiment.config.model, 8000)
        if not any(varied in name for varied in ("bert_sizes", "ladder", "laptop_search")):
            width = 256 if experiment.folder.parts[-3] == "concatenated" else 128
            assert (model.hidden_size, model.num_heads) == (width, 2)


def test_models_that_differ_in_direction_have_the_same_layers():
    study = config.load(StudyConfig, "ablations/directions")
    for row in study.rows.values():
        model = merge(study.pretrain["model"], row.get("pretrain", {}).get("model", {}))
        encoder = build_backbone(build_config(model, 8000), pooler=False)
        assert sum(block.count_params() for block in encoder.blocks()) == 793_088 == 4 * (12 * 128**2 + 13 * 128)
