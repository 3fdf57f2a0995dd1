"""Every kind of export: what its signatures answer."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.export import ServedEmbedding, ServedGeneration, ServedMaskedLM, write_saved_model
from bert_tf.export.served import SERVED
from bert_tf.objectives import OBJECTIVES
from bert_tf.tasks import TASKS
from reference_parts import library, tasks
from reference_parts.model_cases import load

TEXTS = ["The people of the union", "", "[MASK] is naïve 한국 🙂", "the war, " * 40]
#: Case of `tasks` -> further settings of its export.
OF_TASKS = {
    "classification": {}, "multi_label": {"static": True}, "regression": {}, "tagging": {}, "multiple_choice": {}, "multirc": {},
    "record": {}, "word_pair": {}, "text_to_text": {}, "question_answering": {"n_best": 2},
}  # fmt: skip
#: Case -> (class, model, arguments): what is served of a pretrained model.
OF_MODELS = {
    "masked_lm": (ServedMaskedLM, "bert", {"top_k": 4}),
    "embedding": (ServedEmbedding, "roberta", {}),
    "embedding_decoder": (ServedEmbedding, "gpt2", {"static": True}),
    "generation": (ServedGeneration, "gpt2", {"method": "sample", "top_k": 20, "seed": 3, "max_new_tokens": 5}),
    "generation_beams": (ServedGeneration, "t5", {"method": "beam_search", "beams": 3, "n_best": 2, "max_new_tokens": 5}),
}  # fmt: skip
#: Of these the SavedModel is written, and asked by a v1 session. The others are asked as the graphs that would be written:
#: `write_saved_model` itself compares the two.
WRITTEN = ("classification", "tagging", "masked_lm")
#: Those that decide between equal answers in the graph.
TIED = ("tagging", "multiple_choice", "question_answering")
LENGTH = 24


def missing():
    served = {tasks.CASES[name][2].get("kind") for name in OF_TASKS}
    yield from (f"export of {name}" for name in TASKS if name in SERVED and name not in served)
    classes = {cls for cls, *_ in OF_MODELS.values()}
    for name in OBJECTIVES:
        if name in SERVED and SERVED[name] not in classes:
            yield f"export of the objective {name}"


def cases(room):
    for name in OF_TASKS:
        yield name, lambda name=name: of_task(room, name)
    for name in TIED:
        yield f"tied/{name}", lambda name=name: of_task(room, name, tied=True)
    for name in OF_MODELS:
        yield name, lambda name=name: of_model(room, name)


def of_task(room, name, tied=False):
    task, model, *_ = tasks.made(room, name)
    if tied:
        tasks.tie(model)
    served = SERVED[task.kind]
    return answers(
        room, f"tied_{name}" if tied else name, served.of_task(task, model, sequence_length=LENGTH, **OF_TASKS[name])
    )


def of_model(room, name):
    cls, model_name, arguments = OF_MODELS[name]
    encoder, tokenizer, objective, _ = load(room, model_name, pretraining=cls is not ServedEmbedding)
    model = encoder if cls is ServedEmbedding else objective
    return answers(room, name, cls(model, tokenizer, LENGTH, **arguments))


def answers(room, name, module):
    """What the export answers to each signature, and what stands beside it in its assets."""
    asked = {signature: requests(room, name, signature, module) for signature in module.signatures()}
    if name in WRITTEN:
        found = served(write_saved_model(module, room.scratch / "exports" / name), asked)
    else:
        functions = module.traced()
        found = {
            signature: library.numpy(functions[signature](**_tensors(inputs))) for signature, inputs in asked.items()
        }
    with tempfile.TemporaryDirectory() as folder:
        module.write_files(Path(folder))
        labels = {path.name: path.read_text("utf-8") for path in Path(folder).glob("labels.json")}
    return found | {"assets": labels}


def served(path, asked):
    """The answers of a written SavedModel in a v1 session, as TF Serving loads it."""
    found = {}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        definitions = tf.compat.v1.saved_model.load(session, ["serve"], str(path)).signature_def
        for signature, inputs in asked.items():
            definition = definitions[signature]
            feeds = {definition.inputs[key].name: value for key, value in inputs.items()}
            outputs = {key: output.name for key, output in definition.outputs.items()}
            found[signature] = session.run(outputs, feeds)
    return found


def _tensors(inputs):
    return {key: tf.constant(array) for key, array in inputs.items()}


def requests(room, name, signature, module):
    """The inputs of a signature, as they were when the values were written."""

    def make():
        inputs = {key: tensor.numpy() for key, tensor in module.inputs_of(signature, TEXTS).items()}
        return {key: _as_json(array) for key, array in inputs.items()}

    content = room.json(f"requests/{name}_{signature}", make)
    return {key: _as_array(**content[key]) for key in content}


def _as_json(array):
    if array.dtype == object:
        return {"dtype": "string", "shape": array.shape, "values": [text.decode() for text in array.ravel()]}
    return {"dtype": array.dtype.name, "shape": array.shape, "values": array.ravel().tolist()}


def _as_array(dtype, shape, values):
    if dtype == "string":
        return np.array([text.encode() for text in values], object).reshape(shape)
    return np.array(values, dtype).reshape(shape)
