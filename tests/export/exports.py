"""What the tests of this room share: a vocabulary, texts, and a tiny encoder."""

import functools

import keras
import tensorflow as tf

from bert_tf.models import BertConfig, BertEncoder, GPT2Config, GPT2Decoder
from bert_tf.objectives.causal_lm import CausalLM
from bert_tf.tokenizers.bpe.training import train_byte_level_bpe
from bert_tf.tokenizers.special_tokens import GPT2_ROLES

LENGTH = 24
LABELS = ("negative", "neutral", "größer")
TAGS = ("O", "B-LOC", "I-LOC", "V", "N")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,!?'-", *"abcdefghijklmnopqrstuvwxyz"]
VOCABULARY += [f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"]
VOCABULARY += "the cat sat on mat paris is in france un ##able small ##er 漢 字 cafe".split()
TEXTS = ("The cat sat on the mat.", "", "Paris is unable; [MASK] is [MASK] in France!")
TEXTS += ("naïve Café 漢字, smaller 🙂 [SEP] cat", "the cat sat on the mat, " * 30)


@functools.cache
def load(path):
    """The SavedModel of a path; loaded once, which takes seconds."""
    return tf.saved_model.load(str(path))


def bert(pooler=True, dtype=None):
    # The vocabulary is rounded up, as for tensor cores; with such initial weights answers differ between texts.
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "max_positions": 32}
    config = BertConfig(len(VOCABULARY) + 3, **sizes, initializer_range=0.3)
    return BertEncoder(config, pooler=pooler, dtype=dtype)


def decoder(corpus):
    """A random GPT-2 and its tokenizer: (objective, tokenizer)."""
    tokenizer = train_byte_level_bpe(corpus, 290, role_tokens=GPT2_ROLES, layout="none", normalization=None)
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 24, "num_layers": 1, "num_heads": 3, "intermediate_size": 40, "max_positions": 48}
    # Wide initial weights, so that the best token is clearly the best.
    return CausalLM(GPT2Decoder(GPT2Config(tokenizer.vocabulary_size + 6, **sizes, initializer_range=0.6))), tokenizer


def ask(function, **inputs):
    """The answer to these inputs, as arrays."""
    answer = function(**{name: tf.constant(value) for name, value in inputs.items()})
    return {name: value.numpy() for name, value in answer.items()}
