"""The outputs of a frozen model, computed once: what a task learns and predicts from them."""

import numpy as np
import pytest
import tiny

from bert_tf.backend import AdamW
from bert_tf.models import LstmLM, LstmLMConfig
from bert_tf.tasks import build_task
from bert_tf.tasks.frozen_outputs import keep_frozen_outputs
from bert_tf.training.finetune_config import FinetuneConfig
from bert_tf.training.labels_recipe import LabelsRecipe, TaskData

SENTENCES = [["Anna", "met", "Bert"], ["a", "film"], ["London"] * 20, ["the", "actor", "in", "Paris"]]
TAGS = [["B-PER", "O", "B-PER"], ["O", "O"], ["B-LOC"] * 20, ["O", "O", "O", "B-LOC"]]
TEXTS = ["a good film", "bad", "the awful plot was bad , the actor was fine and the film good"]
QUESTIONS = ["Where?", "Who was in Paris?"], ["Anna met Bert in London. The actor was in Paris."] * 2
ANSWERS = [("London", 17)], [("The actor", 25)]
CHOICES = [{"context": "a film", "options": ["good", "bad"]}, {"context": "bad", "options": ["a film", "plot"]}]
PAIR = {"word": "plot", "sentence1": "a fine plot .", "start1": 7, "end1": 11}
PAIR |= {"sentence2": "the plot was bad", "start2": 4, "end2": 8}
FEATURES = {
    "frozen_layers": {"name": "weighted_sum_all", "lstm_layers": 1, "lstm_units": 4, "mix_at": "both", "mix_norm": True},
    "sequence_length": 16, "head": {"dropout": 0.0},
}  # fmt: skip


def case(kind, pairs=False, **settings):
    """(task, examples, model)"""
    task, examples = tiny.learned({
        "tagging": {"words": SENTENCES, "tags": TAGS},
        "classification": {"text": TEXTS, "label": ["1", "0", "0"]} | ({"text_pair": TEXTS[::-1]} if pairs else {}),
        "question_answering": dict(zip(("question", "context", "answers"), (*QUESTIONS, ANSWERS))),
        "word_pair": [PAIR | {"label": True}], "multiple_choice": [row | {"label": n} for n, row in enumerate(CHOICES)],
    }[kind], **{"kind": kind} | FEATURES | settings)  # fmt: skip
    return task, examples, task.model(tiny.encoder(layers=2, dropout=0.3, seed=1))


def forget_backbone(model):
    """What is kept is read: the model is not asked again."""
    for variable in model.backbone.weights:
        variable.assign(variable * np.nan)


@pytest.mark.parametrize("kind", ["classification", "question_answering", "word_pair"])
def test_the_losses_from_kept_outputs_are_the_same(kind):
    task, examples, model = case(kind)

    def losses():
        batches = task.dataset(examples, 2, training=True, epoch=0)
        sums = [model.loss_sums(features, training=True)[0] for features in batches]
        return [float(loss) for each in sums for loss in each.values()]

    expected = losses()
    assert keep_frozen_outputs(task, model, examples, 2)
    forget_backbone(model)
    assert losses() == pytest.approx(expected, rel=1e-5)


def test_a_task_learns_and_predicts_the_same_from_kept_outputs():
    """The embeddings of this model, narrower than its states, are one of the layers that are mixed."""
    task, examples, _ = case("tagging", frozen_layers=FEATURES["frozen_layers"] | {"name": "scalar_mix"})
    lstm = LstmLM(LstmLMConfig(task.tokenizer.vocabulary_size, hidden_size=12, embedding_size=8), dtype="float32")
    task = build_task(task.config, task.tokenizer, backbone=lstm).learn(examples)
    model = task.model(lstm)
    start = [variable.numpy() for variable in model.trainable_variables]

    def trained():
        for variable, value in zip(model.trainable_variables, start):
            variable.assign(value)
        model.compile(AdamW(1e-2), seed=0)
        loss = model.fit(task.dataset(examples, 2, training=True, epoch=0), verbose=0).history["loss"][0]
        metrics = task.evaluate(model, examples, 2)
        return loss, {name: value for name, value in metrics.items() if isinstance(value, float)}

    loss, metrics = trained()
    assert keep_frozen_outputs(task, model, examples, 2)
    forget_backbone(model)
    kept_loss, kept_metrics = trained()
    assert kept_loss == pytest.approx(loss, rel=1e-5)
    assert kept_metrics == pytest.approx(metrics, rel=1e-4)


def test_they_are_computed_again_for_another_model():
    task, examples, model = case("tagging")
    assert keep_frozen_outputs(task, model, examples, 2)
    (first,) = task.dataset(examples, 8)
    other = task.model(tiny.encoder(layers=2, seed=2))
    assert keep_frozen_outputs(task, other, examples, 2)
    (second,) = task.dataset(examples, 8)
    assert first["frozen_outputs"].shape == second["frozen_outputs"].shape == (5, 16, 2, 32), "20 words are two rows"
    assert not np.allclose(first["frozen_outputs"], second["frozen_outputs"])
    assert not np.any(second["frozen_outputs"][~second["padding_mask"].numpy()])


def test_where_nothing_is_kept():
    task, examples, model = case("tagging")
    size = int(task.sequences(examples).lengths.sum()) * 2 * 32 * 4
    assert not keep_frozen_outputs(task, model, examples, 2, most_bytes=size - 1)
    assert keep_frozen_outputs(task, model, examples, 2, most_bytes=size)
    assert not keep_frozen_outputs(task, model, examples, 2, most_bytes=size - 1)
    assert "frozen_outputs" not in task.dataset(examples, 2).element_spec, "nor do those of another model stay"
    task, examples, model = case("multiple_choice")
    assert not keep_frozen_outputs(task, model, examples, 2)
    task, examples, model = case("classification", pairs=True, decoder={"pair_order": "both"})
    assert not keep_frozen_outputs(task, model, examples, 2)


def test_finetuning_keeps_those_of_the_files_that_are_read_in_every_epoch():
    task, _, model = case("tagging")
    recipe = LabelsRecipe(FinetuneConfig(task={}, data=None, init_from="run"))
    for folder, kept in (("run", [True, True]), (None, [True, False])):
        examples, dev = (task.read({"words": SENTENCES[:n], "tags": TAGS[:n]}) for n in (4, 2))
        recipe.data = TaskData(task, examples, {"train": examples, "dev": dev})
        recipe.start(model, folder)
        assert ["frozen_outputs" in task.dataset(some, 2).element_spec for some in (examples, dev)] == kept
