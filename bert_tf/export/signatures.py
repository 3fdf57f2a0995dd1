"""The base class of served models: text in, an answer out, as graph functions with fixed names.

A subclass computes the answer from the features of the data contract; this file puts the tokenizer of the training
data in front.

The module tracks only variables and the tokenizer's resources; the Keras model stays in a closure. A SavedModel that
tracks a Keras 3 model loads in Python and fails in TF Serving's C++ loader ("Could not find variable").
"""

import dataclasses
import json
from collections.abc import Callable

import tensorflow as tf

from bert_tf.backend import EXPORTS
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.export.length_bucketing import apply_in_buckets
from bert_tf.export.requests import check_as_many, check_ids
from bert_tf.export.storage import cast_once, check_finite, reading
from bert_tf.models.backbone import Backbone
from bert_tf.tokenizers.ops.lazy_graph import LazyGraph

TEXT = tf.TensorSpec([None], tf.string)
#: Calls of `ServingModule.answer_here` before it makes a graph: tracing a model takes as long as some of them.
_EAGER_CALLS = 3
#: The file in which an export says what it is.
SETTINGS = "export.json"

#: The texts on which an export is compared with the model in memory: no word, special tokens in the text, other
#: scripts, bytes that are no UTF-8, and more tokens than a sequence can hold.
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
        specs = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in self.inputs.items()}
        return tf.function(lambda **inputs: self.function(**inputs), autograph=False).get_concrete_function(**specs)


class ServingModule(tf.Module):
    """Base class of exported models.

    A subclass defines `answer`; the subclass of a task whose constructor takes more arguments also `of_task`, and one
    that answers with labels the attribute `labels`.

    Args:
        model: a built Keras model; its `variables` become the variables of the export. Under mixed precision
            the weights that its layers cast are stored cast.
        tokenizer: of the model's pretraining.
        sequence_length: longer texts are truncated to so many tokens, special tokens included.
        pairs: whether the signature takes `text` and `text_pair`, or `text` alone. None, for a published model that may
            take either: `serving_default` takes `text`, and a further signature `pairs` takes both.
        static: pad every text to `sequence_length` (GPU, TPU: one shape, one compilation); False
            pads to the longest text of the batch (CPU: short texts cost little).

    Attributes:
        storage: function from the model to a list of `bert_tf.export.storage.Stored`; the other weights are stored as
            they are.
        quantized: the name of that storage for `assets/export.json`; None for none.

    Raises:
        ConfigError: a sequence length beyond the encoder's positions.

    Example:
        class ServedLength(ServingModule):
            def answer(self, features):
                return {"tokens": tf.reduce_sum(tf.cast(features["padding_mask"], tf.int32), axis=1)}

        module = ServedLength(encoder, tokenizer, sequence_length=32)
        module.answer_text(["a good film"])["tokens"]  # [5], with [CLS] and [SEP]
    """

    #: The absolute and relative tolerance between the answers of the written export and of the model in memory.
    tolerance = 1e-4
    #: The names of further arguments that `export_run` may pass, such as "top_k".
    options = ()
    #: The value of `--kind`, where it is not the name of the task or objective.
    kind = None
    #: The names of features [N, ...] that have no column for each token.
    of_texts = ()
    #: The names of further attributes that `assets/export.json` holds.
    recorded = ()
    #: What `assets/labels.json` holds.
    labels = ()

    def __init__(self, model, tokenizer, sequence_length=128, pairs=False, static=False):
        super().__init__()
        encoder = backbone_of(model)
        if sequence_length > encoder.config.max_positions:
            raise ConfigError(
                f"sequence_length={sequence_length} is beyond the model's {encoder.config.max_positions} positions"
            )
        self._tracked = []
        self._resources = tokenizer.resources
        # A lambda hides the model from `tf.Module`, which would track it.
        self._model = lambda: model
        self._computed = self.compute
        self._here = LazyGraph(self.answer_text, TEXT, eager_calls=_EAGER_CALLS) if EXPORTS else self.answer_text
        self.tokenizer = tokenizer
        self.sequence_length, self.pairs, self.static = sequence_length, pairs, static
        self.num_segments = getattr(encoder.config, "num_segments", 0)
        self.precision = model.dtype_policy.name  # "mixed_bfloat16" and the like
        self.storage, self.quantized = cast_once, None
        if model.compute_dtype != "float32":
            self.tolerance = 2e-2

    @classmethod
    def of_task(cls, task, model, **settings):
        """The module that serves a fine-tuned task.

        Args:
            task: a `Task` whose labels are known.
            model: from `task.model`.
            settings: `sequence_length`, `static`, and further arguments of the class.
        """
        return cls(model, task.tokenizer, pairs=task.pairs, **settings)

    @classmethod
    def default_length(cls, model, tokenizer, trained, settings):
        """The default `sequence_length`, for a pretraining model trained on sequences of `trained` tokens."""
        return trained

    def answer(self, features):
        """The outputs for a batch of `token_ids`, `segment_ids`, `padding_mask` [N, S]: dict of tensors."""
        raise NotImplementedError(f"{type(self).__name__} must define answer(features)")

    def call_model(self, features):
        """What `compute` returns; while signatures are traced, by one graph function that all of them call."""
        return self._computed(features)

    def compute(self, features):
        """What the model returns for `features`: dict of tensors."""
        return self._model()(features, training=False)

    def signatures(self):
        """dict from signature name to `Signature`."""
        pair = {"text": TEXT, "text_pair": TEXT}
        texts = pair if self.pairs else {"text": TEXT}
        ids = Signature(self.answer_ids, self.ids_specs(None))
        further = {"pairs": Signature(self.answer_text, pair)} if self.pairs is None else {}
        return {"serving_default": Signature(self.answer_text, texts), "ids": ids} | further

    def ids_specs(self, *shape):
        """The inputs of `ids` for a batch of rows of this shape: dict from name to tf.TensorSpec."""
        shape = [*shape, self.sequence_length if self.static else None]
        tokens = tf.TensorSpec([*shape, *self.tokenizer.token_shape], tf.int32)
        others = {"segment_ids": tf.TensorSpec(shape, tf.int32), "padding_mask": tf.TensorSpec(shape, tf.bool)}
        return {"token_ids": tokens} | others

    def traced(self):
        """dict from signature name to a concrete graph function that reads the weights as they are stored.

        The current weights, as `storage` stores them, become the variables of the export.

        Raises:
            DataError: a weight that is not finite.
        """
        model = self._model()
        check_finite(model)
        stored = self.storage(model)
        elsewhere = {id(part.weight) for part in stored}
        self._tracked = [saved for part in stored for saved in part.saved]
        self._tracked += [v.value for v in model.variables if id(v) not in elsewhere]
        once = tf.function(self.compute, autograph=False)
        self._computed = lambda features: once(features)  # as for the model, above
        try:
            with reading(stored):
                return {name: signature.traced() for name, signature in self.signatures().items()}
        finally:
            self._computed = self.compute

    def bucketed_outputs(self, features, **shapes):
        """The model's outputs of these names as float32 [N, *shape], computed in length buckets unless `static`.

        Args:
            features: `token_ids`, `segment_ids`, `padding_mask` [N, S].
            shapes: by the name of an output its shape for one text; begins with None if there is a value for each token.
        """

        def function(part):
            outputs = self.call_model(part)
            return {name: tf.cast(outputs[name], tf.float32) for name in shapes}

        return function(features) if self.static else apply_in_buckets(function, features, shapes, self.of_texts)

    def answer_text(self, text, text_pair=None):
        """What `serving_default` computes."""
        return self.answer(self.features(text, text_pair))

    def answer_here(self, texts):
        """What `answer_text` returns for a list of str, in this process: dict of arrays.

        The first calls are computed operation by operation, which begins sooner, the others as a graph, with the same
        numbers but for rounding.
        """
        encoded = tf.constant([text.encode("utf-8", "surrogatepass") for text in texts], tf.string)
        return {name: value.numpy() for name, value in self._here(encoded).items()}

    def answer_ids(self, **features):
        """What `ids` computes; refuses requests that are not a batch for this model."""
        return self.answer(check_ids(features, self.tokenizer.vocabulary_size, self.num_segments))

    def features(self, text, text_pair=None):
        """tf.string [N] (twice for pairs) -> packed features [N, S]."""
        tokenize = self.tokenizer.tokenize
        if text_pair is None:
            return self._pack(tokenize(text))
        text, text_pair = check_as_many(text=text, text_pair=text_pair)
        return self._pack(tokenize(text), tokenize(text_pair))

    def inputs_of(self, name, texts):
        """The inputs of a signature for some texts: dict of tensors."""
        inputs = {"text": tf.constant(texts, tf.string)}
        if self.pairs or name == "pairs":
            inputs["text_pair"] = tf.constant(texts[::-1], tf.string)
        return self.features(**inputs) if name == "ids" else inputs

    def trial_inputs(self, name):
        """The inputs of a signature on which an export is compared: dict of tensors."""
        return self.inputs_of(name, TRIAL_TEXTS * 2)  # two length buckets

    def write_files(self, folder):
        """Writes what stands beside the model, in a SavedModel in `assets/`: the tokenizer, the settings, the labels.

        Labels are a JSON list, since a label may hold any character, line ends too.
        """
        self.tokenizer.save(folder / "tokenizer")
        for name, content in {SETTINGS: self.settings(), "labels.json": list(self.labels)}.items():
            if content:
                text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
                (folder / name).write_text(text, encoding="utf-8")

    def settings(self):
        """The content of `assets/export.json`: dict of plain values."""
        names = ("sequence_length", "static", "precision", "quantized", *self.recorded)
        return {name: to_dict(getattr(self, name)) for name in names}

    def _pack(self, first, second=None):
        return self.tokenizer.pack(first, second, self.sequence_length, dynamic=not self.static)


def dense(values, lengths, filler):
    """Values [M] or [M, k] of all texts, one text after the other -> [N, longest, ...], padded with `filler`."""
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False).to_tensor(filler)


def backbone_of(model):
    """The encoder or decoder inside a model: a `TrainableModel` names it, in another Keras model it is looked for.

    Raises:
        ConfigError: there is none, or several.
    """
    if hasattr(model, "backbones"):
        return model.backbones()[""]
    inside = [layer for layer in model._flatten_layers() if isinstance(layer, Backbone)]
    if len(inside) != 1:
        raise ConfigError(
            f"the model '{model.name}' holds {len(inside)} encoders of this library, and an export serves one; give a model "
            "around one, or define `backbones`"
        )
    return inside[0]
