"""Answers requests in v1 sessions, which read a SavedModel as TF Serving's C++ loader does."""

import pickle
import sys

import tensorflow as tf
import tensorflow_text  # registers the operators


def main(requests_path, answers_path):
    with open(requests_path, "rb") as file:
        paths, requests = pickle.load(file)
    answers = [None] * len(requests)
    for export, path in paths.items():
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            definitions = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def
            for i, (name, signature, inputs) in enumerate(requests):
                if name == export:
                    definition = definitions[signature]
                    feeds = {definition.inputs[k].name: v for k, v in inputs.items()}
                    fetches = {k: v.name for k, v in definition.outputs.items()}
                    answers[i] = session.run(fetches, feeds)
    with open(answers_path, "wb") as file:
        pickle.dump(answers, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
