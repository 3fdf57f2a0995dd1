"""What every served model is: text in, an answer out, as graph functions with fixed names.

A subclass says what it answers for the features of the data contract; this file puts the tokenizer
in front. The tokenizer object is the one that prepared the training data.

What TF Serving's C++ loader can read decides the shape of this class: it tracks the variables
themselves and the tokenizer's resources, and nothing of Keras. The Keras model stays in a closure.
(A SavedModel that tracks a Keras 3 model reloads in Python and fails in C++, "Could not find
variable".)
"""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from bert_tf.errors import ConfigError
from bert_tf.export.grouping import by_length
from bert_tf.export.requests import check_ids, check_pairs
from bert_tf.export.storage import StoredWeights

TEXT = tf.TensorSpec([None], tf.string)

#: What a module is tried on when it is written: nothing, a word, special tokens in the text,
#: other scripts, bytes that are no UTF-8, and more than a row can hold.
TRIAL_TEXTS = (
    "",
    "One small example.",
    "The [MASK] of [MASK] is [SEP] here, naïve Ünïcödé 漢字 한국어 🙂",
    b"bytes \xff\xfe that are no UTF-8, \xed\xa0\x80 nor these \x80",
    "a very long text, " * 400,
)


@dataclasses.dataclass(frozen=True)
class Signature:
    """A graph function as it is served.

    Attributes:
        function: called with the inputs by name, returns a dict of tensors.
        inputs: dict from input name to tf.TensorSpec.
    """

    function: Callable
    inputs: dict

    def traced(self):
        """The function as one concrete graph function, called with the inputs by name."""
        names = list(self.inputs)
        function = tf.function(lambda *values: self.function(**dict(zip(names, values))), autograph=False)
        return function.get_concrete_function(
            *(tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in self.inputs.items())
        )


class ServingModule(tf.Module):
    """Base class of what is exported.

    Args:
        model: a built Keras model; its `variables` become the variables of the export.
        tokenizer: of the model's pretraining.
        sequence_length: longer texts are truncated to so many tokens, special ones included.
        pairs: whether the signature takes `text` and `text_pair`, or `text` alone.
        static: pad every row to `sequence_length` (GPU, TPU: one shape, one compilation); False
            pads to the longest row of the batch (CPU: short texts cost little).

    Raises:
        ConfigError: a sequence length beyond the encoder's positions.
    """

    #: What must be computed alike when the export is loaded again, as absolute and relative
    #: tolerance. The same graph on the same device is nearly always equal to the bit.
    tolerance = 1e-4

    def __init__(self, model, tokenizer, sequence_length, pairs=False, static=False):
        super().__init__()
        encoder = getattr(model, "backbone", None) or getattr(model, "encoder", model)
        if sequence_length > encoder.config.max_positions:
            raise ConfigError(
                f"sequence_length={sequence_length} is beyond the model's {encoder.config.max_positions} positions"
            )
        self._tracked = []
        self._resources = tokenizer.resources
        # Functions and plain objects are not tracked.
        self.call_model = lambda features: model(features, training=False)
        self._stored = lambda shares: StoredWeights(model, shares)
        self.tokenizer = tokenizer
        self.sequence_length, self.pairs, self.static = sequence_length, pairs, static
        self.num_segments = getattr(encoder.config, "num_segments", 0)
        self.precision = model.dtype_policy.name  # "mixed_bfloat16" and the like
        if model.compute_dtype != "float32":
            self.tolerance = 2e-2

    def answer(self, features):
        """The outputs for a batch of `token_ids`, `segment_ids`, `padding_mask` [N, S]."""
        raise NotImplementedError

    def signatures(self):
        """dict from signature name to `Signature`."""
        texts = {"text": TEXT, "text_pair": TEXT} if self.pairs else {"text": TEXT}
        row = [None, self.sequence_length if self.static else None]
        ids = {
            "token_ids": tf.TensorSpec(row, tf.int32),
            "segment_ids": tf.TensorSpec(row, tf.int32),
            "padding_mask": tf.TensorSpec(row, tf.bool),
        }
        return {
            "serving_default": Signature(self.answer_text, texts),
            "ids": Signature(self.answer_ids, ids),
        }

    def traced(self, shares=1):
        """dict from signature name to a concrete graph function that reads the weights as they are stored.

        Those of now, cast once and large layers' in `shares` (whole if `static`), become the variables of the
        export. No other thread may use the model meanwhile.
        """
        weights = self._stored(1 if self.static else shares)
        self._tracked = weights.variables
        with weights.read():
            return {name: signature.traced() for name, signature in self.signatures().items()}

    def call_by_length(self, features, output, row):
        """The model's output of that name, with rows of like length together where lengths may differ.

        Args: `row`, the shape of the output without the batch; begins with None if it is of each token.
        """

        def function(part):
            return tf.cast(self.call_model(part)[output], tf.float32)

        return function(features) if self.static else by_length(function, features, row)

    def answer_text(self, text, text_pair=None):
        """What `serving_default` computes."""
        return self.answer(self.features(text, text_pair))

    def answer_ids(self, **features):
        """What `ids` computes; a request that the model cannot have been meant for is refused."""
        return self.answer(check_ids(features, self.tokenizer.vocabulary_size, self.num_segments))

    def features(self, text, text_pair=None):
        """tf.string [N] (twice for pairs) -> packed features [N, S]."""
        tokenize = self.tokenizer.tokenize
        if text_pair is None:
            return self._pack(tokenize(text))
        text, text_pair = check_pairs(text, text_pair)
        return self._pack(tokenize(text), tokenize(text_pair))

    def trial_inputs(self, name):
        """Inputs of a signature that its outputs are compared on: dict of tensors."""
        trials = TRIAL_TEXTS * 5  # more than one group of `by_length`
        texts = {"text": tf.constant(trials)}
        if self.pairs:
            texts["text_pair"] = tf.constant(trials[::-1])
        return self.features(**texts) if name == "ids" else texts

    def files(self):
        """Text files that go into `assets/`, beside `export.json`: dict from name to content."""
        return {}

    def settings(self):
        """What `assets/export.json` says of the model: dict of plain values."""
        return {"sequence_length": self.sequence_length, "static": self.static, "precision": self.precision}

    def _pack(self, first, second=None):
        return self.tokenizer.pack(first, second, self.sequence_length, dynamic=not self.static)


def lines(items):
    """One item a line."""
    return "".join(f"{item}\n" for item in items)


def dense(values, lengths, filler):
    """Values [M] or [M, k] of rows one after the other -> [N, longest, ...], padded with `filler`."""
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False).to_tensor(filler)
