"""Tasks that are fine-tuned, evaluated and asked, on the backend that KERAS_BACKEND names.

    KERAS_BACKEND=jax python tests/backend/fine_tuned_tasks.py

Prints `results` as JSON. The data come through tf.data on every backend.
"""

import json
from pathlib import Path

import numpy as np

from bert_tf.backend import AdamW
from bert_tf.models import T5, BertConfig, BertEncoder, T5Config
from bert_tf.tasks import build_task
from bert_tf.tokenizers import load_tokenizer

BERT = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "bert"
SIZES = dict(hidden_size=16, num_layers=2, num_heads=2, intermediate_size=24)
CONTEXT = "The treaty was signed in Paris in 1763."
ANSWER = {"text": "Paris", "answer_start": CONTEXT.index("Paris")}
QUESTION = {"question": "Where was it signed?", "context": CONTEXT}
FILMS = [{"text": "a warm and funny film", "label": "good"}, {"text": "a dull mess", "label": "bad"}]

#: Kind -> (rows, a question).
TASKS = {
    "classification": (FILMS * 6, "a quiet triumph"),
    "regression": ([{"text": "fine", "label": 4.0}, {"text": "dull and long", "label": 1.5}] * 6, "long"),
    "multi_label": ([{"text": "war and trade", "label": ["war", "trade"]}, {"text": "rain", "label": []}] * 6, "war"),
    "tagging": ([{"words": ["Anna", "met", "Paul"], "tags": ["B-PER", "O", "B-PER"]}] * 12, "Anna met Paul"),
    "question_answering": ([QUESTION | {"id": str(i), "answers": [ANSWER]} for i in range(12)], QUESTION),
    "multiple_choice": (
        [{"question": "Which is a planet?", "options": ["Mars", "the Moon"], "label": 0}] * 12,
        {"question": "Which is a star?", "options": ["the Sun", "Mars"]},
    ),
    "text_to_text": ([{"source": "a warm film", "target": "it is good"}] * 12, "a warm film"),
}
WRITES = {"target_length": 8, "text_metrics": [], "generation": {"max_new_tokens": 6, "stop_strings": ["d u"]}}


def results():
    """Kind -> [losses of two epochs, metrics of the evaluation, the answer]."""
    tokenizer, found = load_tokenizer(BERT), {}
    for kind, (rows, question) in TASKS.items():
        config, settings = BertConfig(tokenizer.vocabulary_size, **SIZES), {"kind": kind, "sequence_length": 24}
        if kind == "text_to_text":
            config, settings = T5Config(tokenizer.vocabulary_size, head_size=8, **SIZES), settings | WRITES
        task = build_task(settings, tokenizer, backbone=config)
        examples = task.read(rows)
        task = task.learn(examples)
        model = task.model((T5 if kind == "text_to_text" else BertEncoder)(config))
        rng = np.random.default_rng(0)
        for variable in sorted(model.variables, key=lambda v: v.path):
            variable.assign(rng.normal(0, 0.1, variable.shape) + variable.path.endswith("gamma"))
        model.compile(AdamW(1e-3), seed=1)
        data = task.dataset(examples, 8, training=True, seed=3)
        losses = model.fit(data, epochs=2, verbose=0).history["loss"]
        metrics = {name: value for name, value in task.evaluate(model, examples).items() if isinstance(value, float)}
        found[kind] = [losses, metrics, task.predict(model, [question])[0]]
    return found


if __name__ == "__main__":
    print(json.dumps(results()))
