"""Runs of no training, and labelled files whose label one word decides, for fine-tuning in a test."""

import keras
import numpy as np

from bert_tf.models.families import build_backbone, build_config, describe
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.converting import write_run

WORDS = ["good", "fine", "bad", "poor", "film", "plot", "a", "the"]
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
SIZES = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "initializer_range": 0.2}
BERT = SIZES | {"family": "bert", "max_positions": 32, "dropout": 0.0}


def write_model(path, model, **record):
    """A run of this model, an objective or an encoder."""
    tensors = {v.path: np.ascontiguousarray(v) for v in model.weights}
    record = {"model": describe(getattr(model, "backbone", model).config), "data": {"sequence_length": 32}} | record
    write_run(path, record, TOKENIZER, tensors)


def write_encoder(path, pooler=True, **changes):
    keras.utils.set_random_seed(3)
    write_model(path, build_backbone(build_config(BERT | changes, TOKENIZER.vocabulary_size), pooler=pooler))


def write_labelled(folder, *splits):
    """Twelve rows, half of them positive, in each of the files."""
    rows = [f"the {film} {word}\t{label}" for word, label in zip(WORDS, "1100") for film in ("film", "plot", "a")]
    for split in splits:
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return {split: str(folder / f"{split}.tsv") for split in splits}
