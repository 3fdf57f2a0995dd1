"""Served generation: a prompt, or the source of an encoder-decoder, to the texts that the model writes."""

import dataclasses

import tensorflow as tf

from bert_tf.config import build, to_dict
from bert_tf.errors import ConfigError
from bert_tf.export.requests import check_as_many, check_between, refuse_texts
from bert_tf.export.signatures import TEXT, TRIAL_TEXTS, ServingModule, Signature
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer, beam_search, generate_tokens
from bert_tf.generation.scoring import start_of
from bert_tf.tokenizers.ops.model_rows import padded
from bert_tf.tokenizers.ops.strings import escape, valid_utf8

_NUMBERS, _FRACTIONS = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)


class ServedGeneration(ServingModule):
    """Text to the texts that a decoder continues it with, or that an encoder-decoder writes for it.

    Outputs of `serving_default` and `generate`, for n texts a prompt (`n_best` of beam search, else 1), best first:
        texts: string [N, n], without the prompt, stop tokens and stop strings.
        scores: float32 [N, n]; see `generate_tokens` and `beam_search`. Where fewer than n texts were found, -1e9.
        lengths: int32 [N, n], new tokens, a stop token included.

    `generate` also takes, one for each text, `max_new_tokens` and `min_new_tokens` int32; with method "sample" `seed`
    and `top_k` int32, `temperature` and `top_p` float32. A text with a seed of its own is a function of this seed and
    its prompt, wherever it is in the batch.

    Outputs of `score`, which takes `text` and `continuation`; see `TextScorer.continuations`. A decoder whose tokenizer
    has no special token to begin a text with (GPT-1's) has no such signature.
        log_likelihood: float32 [N], of the continuation after the text, or of the target for a source.
        tokens: int32 [N], those of the continuation.

    A prompt of more than `sequence_length` tokens loses those at its begin; a source those at its end. An empty prompt
    of a decoder begins with the special token that begins its texts; without one it is refused.

    Args:
        model: an objective around a `Decoder` or `EncoderDecoder`.
        tokenizer, sequence_length, static: as in `ServingModule`, of the prompts.
        stop_tokens, allowed_tokens: of `TextGenerator`.
        settings: those of `GenerationConfig`. `max_new_tokens` and `top_k` are also the most that a request can set.

    Raises:
        ConfigError: an encoder, settings that do not fit, or more tokens than the model has positions.

    Example:
        module = ServedGeneration(CausalLM(gpt), tokenizer, sequence_length=16, max_new_tokens=8)
        module.answer_text(["a good film"])["texts"]  # [1, 1]
    """

    kind = "generation"
    options = (*(field.name for field in dataclasses.fields(GenerationConfig)), "stop_tokens", "allowed_tokens")

    def __init__(
        self, model, tokenizer, sequence_length=128, static=False, stop_tokens=(), allowed_tokens=None, **settings
    ):
        super().__init__(model, tokenizer, sequence_length, static=static)
        self.config = build(GenerationConfig, settings, base=GenerationConfig())
        self.stop_tokens, self.allowed_tokens = tuple(stop_tokens), allowed_tokens and tuple(allowed_tokens)
        backbone = model.backbone
        if backbone.kind == "decoder" and backbone.prefix:
            raise ConfigError(
                f"{backbone.name} reads its prompt as a prefix, which an export cannot do yet; use `bert-tf generate`, or export "
                "the vectors with --kind embedding"
            )
        self._generator = TextGenerator(backbone, tokenizer, stop_tokens, allowed_tokens)
        self._prompts = self._generator.prompts
        self._has_source = self._prompts.has_source
        new, before = self.config.max_new_tokens, self._before
        used = new if self._has_source else sequence_length + new
        if sequence_length <= len(before) or used > backbone.config.max_positions:
            raise ConfigError(
                f"sequence_length={sequence_length} and max_new_tokens={new}: the model has "
                f"{backbone.config.max_positions} positions, and a prompt {len(before)} special tokens; lower one of them"
            )
        self._start_id = self._prompts.start_id if self._has_source else start_of(tokenizer)
        self._scorer = None if self._start_id is None else TextScorer(backbone, tokenizer)

    @classmethod
    def of_task(cls, task, model, **settings):
        return cls(model, task.tokenizer, **settings)

    @classmethod
    def default_length(cls, backbone, trained, settings):
        if backbone.kind == "encoder_decoder":
            return trained
        new = settings.get("max_new_tokens", GenerationConfig.max_new_tokens)
        return max(1, min(max(trained - new, trained // 2), backbone.config.max_positions - new))

    def signatures(self):
        text = {"text": TEXT}
        limits = dict.fromkeys(("max_new_tokens", "min_new_tokens"), _NUMBERS)
        if self.config.method == "sample":
            limits |= {"seed": _NUMBERS, "top_k": _NUMBERS, "temperature": _FRACTIONS, "top_p": _FRACTIONS}
        signatures = {
            "serving_default": Signature(self.answer_text, text),
            "generate": Signature(self.answer_with, text | limits),
        }
        if self._scorer is not None:
            signatures["score"] = Signature(self.answer_score, text | {"continuation": TEXT})
        return signatures

    def answer_text(self, text):
        return self._generate(text, {})

    def answer_with(self, text, **each):
        """What `generate` computes; refuses settings out of range."""
        text, *values = check_as_many(text=text, **each)
        limits = self._limits()
        return self._generate(text, {name: check_between(name, x, *limits[name]) for name, x in zip(each, values)})

    def answer_score(self, text, continuation):
        """What `score` computes; refuses continuations without a token, and ones that are too long."""
        text, continuation = map(valid_utf8, check_as_many(text=text, continuation=continuation))
        ids, begins, inputs = (self._target if self._has_source else self._continued)(text, continuation)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        width = self._room + 1 if self.static else tf.maximum(tf.reduce_max(lengths), 2)
        log_p, _ = self._scorer.token_scores(*padded(ids, self.tokenizer.pad_id, width), *inputs)
        column = tf.range(1, width)[None]  # the first token is not scored
        scored = (column > begins[:, None]) & (column < lengths[:, None])
        return {
            "log_likelihood": tf.reduce_sum(tf.where(scored, log_p, 0.0), axis=1),
            "tokens": lengths - 1 - begins,
        }

    def inputs_of(self, name, texts):
        numbers = tf.range(len(texts))
        inputs = {
            "text": tf.constant(texts, tf.string),
            "continuation": tf.fill([len(texts)], " small"),
            "max_new_tokens": self.config.max_new_tokens - numbers % self.config.max_new_tokens,
            "min_new_tokens": numbers,
            "seed": numbers,
            "top_k": tf.fill([len(texts)], self.config.top_k or self.tokenizer.vocabulary_size),
            "temperature": 1.0 + tf.cast(numbers, tf.float32),
            "top_p": tf.fill([len(texts)], 0.9),
        }
        return {key: inputs[key] for key in self.signatures()[name].inputs}

    def trial_inputs(self, name):
        # Where no special token can begin it, a prompt without a token is refused.
        return self.inputs_of(name, TRIAL_TEXTS[self._start_id is None :])

    def settings(self):
        generation = to_dict(self.config) | {"stop_tokens": self.stop_tokens, "allowed_tokens": self.allowed_tokens}
        return super().settings() | {"generation": generation}

    @property
    def _before(self):
        """The special tokens that every prompt begins with."""
        return () if self._has_source else self.tokenizer.layout.before_first

    @property
    def _room(self):
        """How many tokens can be scored, for a decoder those of the text included."""
        return self.config.max_new_tokens + (0 if self._has_source else self.sequence_length - 1)

    def _limits(self):
        """The arguments of `check_between` for each setting of a request."""
        return {
            "max_new_tokens": (1, self.config.max_new_tokens),
            "min_new_tokens": (0, self.config.max_new_tokens),
            "seed": (0, tf.int32.max),
            "top_k": (1, self.config.top_k or self.tokenizer.vocabulary_size),
            "temperature": (0.0, tf.float32.max, True),
            "top_p": (0.0, 1.0, True),
        }

    def _generate(self, text, each):
        token_ids, mask = self._read(text)
        limit = self.config.max_new_tokens
        if "max_new_tokens" in each and not self.static:
            limit = tf.maximum(tf.reduce_max(each["max_new_tokens"]), 1)  # there may be no text
        search = beam_search if self.config.method == "beam_search" else generate_tokens
        steps, restrictions = self._prompts.steps(token_ids, mask, limit), self._generator.restrictions(self.config)
        found = search(steps, self.config, restrictions, filler=self.tokenizer.pad_id, each=each)
        if self.config.method != "beam_search":
            found = {name: value[:, None] for name, value in found.items()}
        texts = self._texts(found["token_ids"], found["lengths"])
        return {"texts": texts, "scores": found["scores"], "lengths": found["lengths"]}

    def _read(self, text):
        """The prompts as int32 [N, S], and bool [N, S], True at real tokens."""
        if self._has_source:
            return self._sources(text)
        ids, before = self.tokenizer.tokenize(text), self._before
        begins = tf.fill([tf.size(text)], True)
        if not before:
            before, begins = (self._start_id,), ids.row_lengths() == 0
        if None in before:
            ids = refuse_texts(begins, text, "has no token; give at least one word", ids)
        else:
            counts = len(before) * tf.cast(begins, tf.int32)
            first = tf.tile(tf.constant(before, tf.int32), [tf.reduce_sum(tf.cast(begins, tf.int32))])
            first = tf.RaggedTensor.from_row_lengths(first, counts, validate=False).with_row_splits_dtype(tf.int64)
            ids = tf.concat([first, ids[:, len(self._before) - self.sequence_length :]], axis=1)
        width = self.sequence_length if self.static else tf.maximum(tf.reduce_max(ids.row_lengths()), 1)
        return padded(ids, self.tokenizer.pad_id, tf.cast(width, tf.int32), on_the_left=True)

    def _sources(self, text):
        features = self.features(text)
        missing = tf.maximum(1 - tf.shape(features["token_ids"])[1], 0)  # a batch of no texts has no column
        return tuple(tf.pad(features[name], [[0, 0], [0, missing]]) for name in ("token_ids", "padding_mask"))

    def _continued(self, text, continuation):
        """What a decoder scores: (ids, begin of the continuation in them, further inputs of the scorer)."""
        ids, _, ends = self.tokenizer.tokenize_with_offsets(tf.strings.join([text, continuation]))
        length = tf.strings.length(text, unit="UTF8_CHAR")
        # A token across the border counts as the continuation's, as in `TextScorer`.
        begins = tf.reduce_sum(tf.cast(ends <= length[:, None], tf.int32), axis=1)
        count = tf.cast(ids.row_lengths(), tf.int32) - begins
        ids = self._checked(ids, count, continuation)
        dropped = tf.maximum(begins + count - self._room, 0)
        return self._started(ids[:, -self._room :]), begins - dropped, ()

    def _target(self, text, continuation):
        """The same of an encoder-decoder, whose target ends with the token that ends texts."""
        ids = self.tokenizer.tokenize(continuation)
        end = self._prompts.end_ids
        count = tf.cast(ids.row_lengths(), tf.int32)
        ids = self._checked(ids, tf.where(count > 0, count + len(end), 0), continuation)
        ids = tf.concat([ids, tf.tile(tf.constant([end], tf.int32), [tf.size(text), 1])], axis=1)
        return self._started(ids), tf.zeros_like(count), self._sources(text)

    def _checked(self, ids, count, continuation):
        ids = refuse_texts(count == 0, continuation, "has no token to be scored; give at least one word", ids)
        long = f"has more than {self._room} tokens; shorten it, or export with a larger max_new_tokens"
        return refuse_texts(count > self._room, continuation, long, ids)

    def _started(self, ids):
        return tf.concat([tf.fill([ids.nrows(), 1], self._start_id), ids], axis=1)

    def _texts(self, token_ids, lengths):
        """string [N, n] of int32 [N, n, M] and [N, n]."""
        size = tf.shape(token_ids)
        hidden = sorted({*self._generator.stop_ids, *self._prompts.stop_ids, self.tokenizer.pad_id})
        is_hidden = tf.reduce_any(token_ids[..., None] == tf.constant(hidden), axis=-1)
        shown, flat = tf.sequence_mask(lengths, size[2]) & ~is_hidden, [-1, size[2]]
        texts = self.tokenizer.detokenize(tf.reshape(token_ids, flat), tf.reshape(shown, flat))
        for stop in self.config.stop_strings:
            texts = tf.strings.regex_replace(texts, f"(?s){escape(stop)}.*", "", replace_global=False)
        return tf.reshape(texts, size[:2])
