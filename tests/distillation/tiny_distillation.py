"""A fine-tuned teacher and files, small enough to be trained in a test."""

import keras

import bert_tf
from bert_tf import config as configuration
from bert_tf.cli.settings import apply_overrides
from bert_tf.distillation import DistillConfig
from bert_tf.models.families import build_backbone, build_config
from bert_tf.objectives import MaskedLM
from bert_tf.tokenizers import WordPieceTokenizer
from bert_tf.training.finetuning import FinetuneConfig, finetune

GOOD, BAD = ["good", "fine", "great", "nice"], ["bad", "poor", "awful", "dull"]
REST = ["film", "plot", "a", "the", "actor", "song"]
SIZES = {"family": "bert", "hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
MODEL = SIZES | {"num_layers": 4, "initializer_range": 0.2, "dropout": 0.0, "attention_dropout": 0.0}
STUDENT = MODEL | {"num_layers": 2}


def make_tokenizer(more=()):
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *REST, *more])


def make_encoder(seed=0):
    keras.utils.set_random_seed(seed)
    return build_backbone(build_config(STUDENT, make_tokenizer().vocabulary_size))


def write_pretrained(path, sizes=MODEL, more=()):
    """A run of no training with a masked LM head."""
    tokenizer = make_tokenizer(more)
    keras.utils.set_random_seed(3)
    objective = MaskedLM(build_backbone(build_config(sizes, tokenizer.vocabulary_size)), pair_task="nsp")
    bert_tf.save(objective, tokenizer, path, format="run")
    return tokenizer


def write_files(folder):
    """Labelled files of a few words, and unlabelled texts that hold all of them."""
    rows = [f"the {noun} {word}\t{int(word in GOOD)}" for word in GOOD[:2] + BAD[:2] for noun in REST]
    every = [f"the {noun} {word}\t{int(word in GOOD)}" for word in GOOD + BAD for noun in REST[:2]]
    (folder / "few.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    (folder / "dev.tsv").write_text("\n".join(["text\tlabel", *every]) + "\n")
    known = [f"{a} {noun} {word}\t{int(word in GOOD)}" for word in GOOD + BAD for noun in REST for a in ("a", "the")]
    (folder / "all.tsv").write_text("\n".join(["text\tlabel", *known]) + "\n")
    texts = [f"a {noun} {word}" for word in GOOD + BAD for noun in REST for _ in range(3)]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")


def write_teacher(folder):
    """A teacher that knows all words, in folder/teacher; its pretrained run in folder/pretrained."""
    write_pretrained(folder / "pretrained")
    write_files(folder)
    settings = {
        "task": {"kind": "classification", "sequence_length": 16},
        "init_from": str(folder / "pretrained"),
        "data": {"train": str(folder / "all.tsv"), "dev": str(folder / "dev.tsv")},
        "optimizer": {"learning_rate": 5e-3},
        "train": {"epochs": 6, "batch_size": 8, "strategy": "one", "dropout": 0.0},
    }
    return finetune(configuration.build(FinetuneConfig, settings), folder / "teacher")


def experiment(folder, *overrides):
    settings = {
        "data": {"train": str(folder / "few.tsv"), "dev": str(folder / "dev.tsv")},
        "teacher": {"path": str(folder / "teacher")},
        "student": {"model": STUDENT},
        "optimizer": {"learning_rate": 5e-3},
        "train": {"epochs": 2, "batch_size": 16, "strategy": "one", "seed": 1},
    }
    return configuration.build(DistillConfig, apply_overrides(settings, overrides))
