"""Every kind of task: features of a labelled file, outputs, losses, gradients, metrics, answers, and three updates."""

import json
from pathlib import Path

import tensorflow as tf

from bert_tf.tasks import TASKS, build_task
from reference_parts import library, optimizers, task_files
from reference_parts.model_cases import load

QUESTIONS = {"kind": "question_answering", "max_query_length": 8, "stride": 6, "n_best": 3, "max_answer_length": 6}
FROZEN = {"name": "scalar_mix", "lstm_layers": 1, "lstm_units": 4}
TEXT = {"kind": "text_to_text", "target_length": 8, "generation": {"max_new_tokens": 6}}
#: Case -> (model, file, settings, whether it is trained). The first case of a kind is trained, and exported by `exports`.
CASES = {
    "classification": ("bert", "pairs.tsv", {"kind": "classification"}, True),
    "multi_label": ("bert", "multi.jsonl", {"kind": "multi_label"}, True),
    "regression": ("bert", "numbers.tsv", {"kind": "regression"}, True),
    "tagging": ("bert", "tags.conll", {"kind": "tagging"}, True),
    "multiple_choice": ("bert", "choices.jsonl", {"kind": "multiple_choice", "blank": "_"}, True),
    "multirc": ("bert", "multirc.jsonl", {"kind": "multirc"}, True),
    "record": ("bert", "record.jsonl", {"kind": "record"}, True),
    "word_pair": ("bert", "words.jsonl", {"kind": "word_pair"}, True),
    "text_to_text": ("t5", "texts.tsv", TEXT, True),
    "question_answering": ("bert", "squad.json", QUESTIONS, True),
    # The heads of the families, and the models that are read in another way.
    "classification_roberta": ("roberta", "pairs.tsv", {"kind": "classification"}, False),
    "classification_albert": ("albert", "single.tsv", {"kind": "classification"}, False),
    "classification_electra": ("electra", "single.tsv", {"kind": "classification", "head": {"name": "hugging_face"}}, False),
    "classification_electra_own": ("electra", "single.tsv", {"kind": "classification"}, False),
    "classification_spanbert": ("spanbert", "single.tsv", {"kind": "classification", "head": {"name": "mean"}}, False),
    "classification_distilbert": ("distilbert", "single.tsv", {"kind": "classification"}, False),
    "classification_modernbert": ("modernbert", "pairs.tsv", {"kind": "classification"}, False),
    "classification_xlnet": ("xlnet", "pairs.tsv", {"kind": "classification"}, False),
    "classification_gpt1": ("gpt1", "single.tsv", {"kind": "classification", "decoder": {"lm_weight": 0.5, "layout": "none"}}, False),
    "classification_gpt2": ("gpt2", "single.tsv", {"kind": "classification"}, False),
    "classification_t5_encoder": ("t5_encoder", "pairs.tsv", {"kind": "classification"}, False),
    "classification_t5_decoder": ("t5_decoder_prefix", "single.tsv", {"kind": "classification"}, False),
    "classification_lstm": ("lstm_lm", "single.tsv", {"kind": "classification", "decoder": {"linear_gain": True}}, True),
    "classification_bilm": ("transformer_bilm", "single.tsv", {"kind": "classification"}, False),
    "classification_elmo": ("elmo", "single.tsv", {"kind": "classification"}, False),
    "classification_vectors": ("word_vectors", "single.tsv", {"kind": "classification"}, False),
    "classification_bilstm": ("bilstm", "single.tsv", {"kind": "classification"}, False),
    # Settings.
    "balanced": ("bert", "single.tsv", {"loss": {"class_weights": "balanced", "label_smoothing": 0.1}, "metric": "f1_macro"}, False),
    "above_bilstm": ("bert", "single.tsv", {"head": {"name": "bilstm", "units": 5}}, False),
    "features": ("bert", "single.tsv", {"frozen_layers": FROZEN | {"mix_at": "both", "mix_l2": 0.1, "mix_norm": True}}, True),
    "features_tagging": ("modernbert", "tags.conll", {"kind": "tagging", "frozen_layers": FROZEN | {"name": "concatenate_last_four"}}, False),
    "both_orders": ("gpt1", "pairs.tsv", {"decoder": {"pair_order": "both", "layout": "gpt1"}}, False),
    "tokens_per_batch": ("bert", "single.tsv", {"tokens_per_batch": 48}, False),
    "tagging_document": ("bert", "tags.conll", {"kind": "tagging", "context": "document", "scheme": "BIOES"}, False),
    "tagging_roberta": ("roberta", "tags.conll", {"kind": "tagging"}, False),
    "tagging_gpt2": ("gpt2", "tags.conll", {"kind": "tagging"}, False),
    "tagging_elmo": ("elmo", "tags.conll", {"kind": "tagging", "context": "file"}, False),
    "regression_xlnet": ("xlnet", "numbers.tsv", {"kind": "regression"}, False),
    "choices_gpt1": ("gpt1", "choices.jsonl", {"kind": "multiple_choice", "decoder": {"layout": "gpt1", "lm_weight": 0.5}}, False),
    "choices_roberta": (
        "roberta", "choices.jsonl",
        {"kind": "multiple_choice", "order": "option", "option_length": 8, "context_length": 12}, False,
    ),
    "word_pair_attention": ("albert", "words_of_text.jsonl", {"kind": "word_pair", "pooling": "attention"}, False),
    "text_to_text_gpt2": ("gpt2", "texts.tsv", TEXT | {"prefix": "turn: "}, False),
    "text_to_text_beams": (
        "t5", "texts.tsv", TEXT | {"generation": {"max_new_tokens": 5, "method": "beam_search", "beams": 2, "n_best": 2}}, False
    ),
    "questions_impossible": ("bert", "squad2.json", QUESTIONS, False),
    "questions_electra": ("electra", "squad2.json", QUESTIONS | {"head": {"name": "electra", "beam": 4}}, False),
    "questions_xlnet": ("xlnet", "squad2.json", QUESTIONS | {"head": {"name": "xlnet", "beam": 3}}, False),
    "questions_albert": ("albert", "squad.json", QUESTIONS | {"scorer": "korquad"}, False),
    "questions_modernbert": ("modernbert", "squad.json", QUESTIONS, False),
}  # fmt: skip
LENGTH = 32


def missing():
    known = {settings.get("kind", "classification") for _, _, settings, _ in CASES.values()}
    yield from (f"task {name}" for name in TASKS if name not in known)


def cases(room):
    for name in CASES:
        yield name, lambda name=name: values(room, name)


def file_of(room, name):
    return room.text(f"tasks/{name}", task_files.FILES[name])


def made(room, name):
    """(task, its model with all weights set, the examples of its file, source of the encoder) of a case."""
    model_name, file, settings, _ = CASES[name]
    settings = {"sequence_length": LENGTH} | settings
    head = settings.get("head", {})
    if hasattr(TASKS[settings.get("kind", "classification")].config, "head") and head.get("name") != "electra":
        settings["head"] = {"dropout": 0.0} | head
    encoder, tokenizer, _, source = load(room, model_name, pooler=False)
    task = build_task(settings, tokenizer, backbone=encoder)
    if encoder.structure != "encoder_decoder" and task.needs_pooler(encoder.config):
        encoder, _, _, source = load(room, model_name, pooler=True)
    examples = task.read(file_of(room, file))
    task = task.learn(examples)
    known = {path: v.shape for path, v in library.by_path(encoder).items()}
    model = task.model(encoder)
    # The head, and the token table where the task adds tokens.
    new = {path: v for path, v in library.by_path(model).items() if known.get(path) != v.shape}
    room.assign(f"task_{name}", new)
    return task, model, examples, source


def values(room, name):
    task, model, examples, source = made(room, name)
    found = {"examples": fields_of(examples), "labels": list(task.labels or ()), "metric": task.metric}
    batches = list(task.dataset(examples, 3).as_numpy_iterator())
    found["features"] = {str(number): batch for number, batch in enumerate(batches)}
    for epoch in (0, 1):
        order = task.dataset(examples, 3, training=True, seed=5, epoch=epoch)
        found[f"order_of_epoch_{epoch}"] = [batch["token_ids"].tolist() for batch in order.as_numpy_iterator()]
    if task.config.frozen_features:
        from bert_tf.tasks.frozen_outputs import keep_frozen_outputs

        keep_frozen_outputs(task, model, examples, 3)
        batches = list(task.dataset(examples, 3).as_numpy_iterator())
    features = {key: tf.constant(array) for key, array in batches[0].items()}
    found["outputs"] = library.numpy(model(features))
    losses, gradients = library.loss_and_gradients(model, features)
    found["losses"] = library.numpy(losses)
    found |= {"measured": measured(task, model, examples)}
    found["baselines"] = task.baselines(examples, examples)
    unlabelled = task.read(file_of(room, CASES[name][1]), labelled=False)
    found["answers"] = task.predict(model, unlabelled, batch_size=3)
    found["gradients"] = library.published(source, gradients)
    if CASES[name][3]:
        found["trained"] = trained(task, model, examples)
        tie(model)
        found["tied"] = {
            "measured": measured(task, model, examples),
            "answers": task.predict(model, unlabelled, batch_size=3),
        }
    return found


def tie(model):
    """Sets the head to 0, and where there is none the whole model: then all answers are equally good.

    What decides between equals is part of every answer: the first label, the lower id, the earlier span.
    """
    inner = library.by_path(model.backbone)
    head = [variable for path, variable in library.by_path(model).items() if path not in inner]
    for variable in head or inner.values():
        variable.assign(0 * variable)


def measured(task, model, examples):
    reports = task.kind in ("classification", "tagging", "multirc", "word_pair", "multi_label")
    scores = task.evaluate(model, examples, batch_size=3, report=reports, findings=True)
    findings = scores.pop("findings")
    return {key: value for key, value in scores.items() if value is not None} | {"findings": findings}


def trained(task, model, examples):
    """Three updates on one batch of fixed size: the losses, and the metrics after them."""
    data = task.dataset(examples, 64, training=True, seed=1).repeat(3)
    optimizer = optimizers.optimizer_of({"name": "adamw", "learning_rate": 1e-2}, 10)
    losses = optimizers.fit(model, data=data, optimizer=optimizer)
    scores = task.evaluate(model, examples)
    return {"losses": losses, "metrics": {key: value for key, value in scores.items() if value is not None}}


def fields_of(examples):
    """What was read of a file."""
    found = {}
    for name in ("texts", "text_pairs", "words", "labels", "lines", "ids", "documents", "details"):
        value = getattr(examples, name)
        if value is not None:
            text = json.dumps(value, default=lambda x: getattr(x, "__dict__", str(x)))
            found[name] = json.loads(text.replace(str(Path(examples.path).parent), "FOLDER"))
    return found | {"lacking": examples.unusable_rows, "skipped": examples.skipped}
