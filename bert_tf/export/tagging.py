"""Served tagging: every word of a text, where it stands and what it is."""

import tensorflow as tf

from bert_tf.config import nearest
from bert_tf.errors import ConfigError
from bert_tf.export.signatures import ServingModule, backbone_of, dense
from bert_tf.tasks.tagging.sequences import tagged_tokens
from bert_tf.tokenizers.ops.word_spans import tokenize_words

WORDS = ("punctuation", "whitespace")


class ServedTagger(ServingModule):
    """Text to tagged words with their positions in it.

    Outputs of `serving_default`, for T words, the largest number in a text of the batch:
        tags: string [N, T], "" as padding.
        starts, ends: int32 [N, T], code points of the text, [start, end); -1 as padding. In Python
            `text[start:end]` is the word.
        probabilities: float32 [N, T], of the tag; 0 as padding.

    Outputs of `ids`, for every token: `tags` string and `probabilities` float32 [N, S] as above,
    `label_probabilities` float32 [N, S, L] of all labels, in the order of assets/labels.json; at padding they
    mean nothing. The first token of a word carries its tag, on a decoder the last one.

    Args:
        model: returns {"logits", "probabilities"}, [N, S, L] each, for the features of the data contract.
        tokenizer, sequence_length, static: as in `ServingModule`; words beyond the length get no tag.
        labels: L str, in the order of the model's outputs.
        words: what a word is. "punctuation", for running text: white space ends a word, and every punctuation mark
            is a word. "whitespace", for text that is split already, as in CoNLL files: only white space ends a word.

    Raises:
        ConfigError: another value of `words`.

    Example:
        model = Classifier(encoder, 2, head=TaskHead("tokens"))
        module = ServedTagger(model, tokenizer, ("O", "PER"), sequence_length=32)
        module.answer_text(["Anna met Paul."])["tags"]  # [1, 4]
    """

    options = ("words",)

    def __init__(self, model, tokenizer, labels, sequence_length=128, static=False, words="punctuation"):
        super().__init__(model, tokenizer, sequence_length, static=static)
        if words not in WORDS:
            raise ConfigError(f"words='{words}'{nearest(words, WORDS)}")
        self.labels, self.words = tuple(labels), words

    @classmethod
    def of_task(cls, task, model, **settings):
        return cls(model, task.tokenizer, task.labels, **settings)

    def answer(self, features):
        logits, probabilities = self._outputs(features)
        return self._best(logits, probabilities) | {"label_probabilities": probabilities}

    def answer_text(self, text):
        ids, begins, spans = tokenize_words(self.tokenizer, text, self.words == "punctuation")
        layout = self.tokenizer.layout
        room = self.sequence_length - layout.special_tokens_per_sequence
        outputs = self._outputs(self._pack(ids))
        begins = begins[:, :room]
        lengths = tf.reduce_sum(tf.cast(begins, tf.int32), axis=1)
        spans = tf.gather(spans, tf.ragged.range(lengths), batch_dims=1).values
        places = tf.stack([begins.value_rowids(), tf.ragged.range(begins.row_lengths()).values], 1)
        tagged = tagged_tokens(begins, backbone_of(self._model()).structure == "decoder")
        places = tf.boolean_mask(places, tagged) + [0, len(layout.before_first)]
        best = self._best(*(tf.gather_nd(x, places) for x in outputs))
        return {
            "tags": dense(best["tags"], lengths, ""),
            "starts": dense(spans[:, 0], lengths, -1),
            "ends": dense(spans[:, 1], lengths, -1),
            "probabilities": dense(best["probabilities"], lengths, 0.0),
        }

    def _outputs(self, features):
        """The logits and the probabilities, float32 [N, S, L] each."""
        shape = [None, len(self.labels)]
        return self.bucketed_outputs(features, logits=shape, probabilities=shape).values()

    def _best(self, logits, probabilities):
        """[..., L] -> the most probable tag and its probability, [...]."""
        return {
            "tags": tf.gather(tf.constant(self.labels), tf.argmax(logits, axis=-1)),
            "probabilities": tf.reduce_max(probabilities, axis=-1),
        }
