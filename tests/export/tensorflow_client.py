"""Answers requests from SavedModels with nothing but TensorFlow and its text operators."""

import pickle
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operators


def main(requests_path, answers_path):
    with open(requests_path, "rb") as file:
        paths, _, requests = pickle.load(file)
    loaded = {name: tf.saved_model.load(path) for name, path in paths.items()}
    answers = []
    for name, signature, inputs in requests:
        outputs = loaded[name].signatures[signature](**{k: tf.constant(v) for k, v in inputs.items()})
        answers.append({k: v.numpy() for k, v in outputs.items()})
    assert not any(module.split(".")[0] in ("bert_tf", "tfrecords") for module in sys.modules)
    with open(answers_path, "wb") as file:
        pickle.dump(answers, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
