"""What tests ask of a model on disk, in one line."""

import bert_tf


def task_and_model(path):
    opened = bert_tf.load(path)
    return opened.task, opened.model


def objective_and_tokenizer(path):
    opened = bert_tf.load(path)
    return opened.objective, opened.tokenizer


def encoder_and_tokenizer(path, **arguments):
    opened = bert_tf.load(path, **arguments)
    return opened.encoder, opened.tokenizer
