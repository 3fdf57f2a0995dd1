"""Served generation: a prompt or a source to the texts that the model writes."""

import dataclasses
import itertools

import tensorflow as tf

from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.export.requests import check_as_many, check_at_most, check_between, refuse_texts
from bert_tf.export.signatures import TEXT, TRIAL_TEXTS, ServingModule, Signature
from bert_tf.generation import SAMPLERS, GenerationConfig, PromptTokenizer, TextGenerator, TextScorer
from bert_tf.tasks.text_to_text.sequences import repeated
from bert_tf.tokenizers.ops.model_rows import pad_rows
from bert_tf.tokenizers.ops.strings import valid_utf8


class ServedGeneration(ServingModule):
    """Text to the texts that a model continues it with, or that it answers it with as a source.

    Outputs of `serving_default` and `generate`, for n texts a prompt (`n_best` of beam search, else 1), best first:
        texts: string [N, n], without the prompt, stop tokens and stop strings; see `Generated.text`.
        scores: float32 [N, n]; see `generate_tokens` and `beam_search`. Where fewer than n texts were found, -1e9.
        lengths: int32 [N, n], new tokens, a stop token included.

    `generate` also takes, one for each text, `max_new_tokens` and `min_new_tokens` int32; with method "sample" `seed`
    and `top_k` int32, `temperature` and `top_p` float32. A text with a seed of its own is a function of this seed and
    its prompt, wherever it is in the batch.

    Outputs of `score`, which takes `text` and `continuation`; see `TextScorer.continuations`. A model that continues
    prompts, and whose tokenizer has no special token to begin a text with (GPT-1's), has no such signature.
        log_likelihood: float32 [N], of the continuation after the text, or of the target for a source.
        tokens: int32 [N], those of the continuation.

    A prompt of more than `sequence_length` tokens loses those at its begin; a source those at its end. An empty prompt
    begins with the special token that begins texts; without one it is refused.

    Of a task (text_to_text) the texts are those of `predict`, for sources as str: the task's prefix is put before each.
    A source of one of T5's formats is given whole, as in "rte sentence1: A man. sentence2: Someone.".

    Args:
        model: an objective around a `Decoder` or `EncoderDecoder`, or the model of a task that has a `frame`.
        tokenizer, sequence_length, static: as in `ServingModule`, of the prompts.
        stop_tokens, allowed_tokens: of `TextGenerator`.
        frame: the `Frame` in which prompts are read; None for that of the objective.
        base: the `GenerationConfig` that `settings` change.
        target_length: the most tokens of a target that `score` takes, if it is above `max_new_tokens`.
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
        self,
        model,
        tokenizer,
        sequence_length=128,
        static=False,
        stop_tokens=(),
        allowed_tokens=None,
        frame=None,
        base=GenerationConfig(),
        target_length=0,
        **settings,
    ):
        super().__init__(model, tokenizer, sequence_length, static=static)
        self.config = base.replace(settings)
        self._generator, backbone = TextGenerator(model, tokenizer, stop_tokens, allowed_tokens, frame), model.backbone
        self.stop_tokens, self.allowed_tokens = tuple(stop_tokens), allowed_tokens and tuple(allowed_tokens)
        self._prompts, self._stop_strings = self._generator.prompts, self._generator.stop_strings(self.config)
        self._frame, self._has_encoder = self._prompts.frame, self._prompts.has_encoder
        new, longest = self.config.max_new_tokens, backbone.config.max_positions
        prompt_length = 0 if self._has_encoder else sequence_length
        special = len(self._frame.before) + len(self._frame.after)
        if sequence_length <= special or prompt_length + new > longest:
            raise ConfigError(
                f"sequence_length={sequence_length} and max_new_tokens={new}: the model has {longest} positions, and a "
                f"prompt {special} special tokens; lower one of them"
            )
        self._room = max(new, min(target_length, longest - prompt_length))  # for a target, its end included
        self._scorer = TextScorer(backbone, tokenizer, frame=self._frame)
        ends = self._frame.is_source and self._frame.end is not None  # a target ends with a token of its own
        self._has_score = self._room > ends and (self._frame.is_source or self._scorer.start_id is not None)
        self._trial = self._continuation(self._room - ends) if self._has_score else ""

    @classmethod
    def of_task(cls, task, model, **settings):
        from_task = {"frame": task.frame, "base": task.config.generation, "target_length": task.config.target_length}
        return cls(model, task.tokenizer, **from_task, **settings)

    @classmethod
    def default_length(cls, model, tokenizer, trained, settings):
        backbone, new = model.backbone, settings.get("max_new_tokens", GenerationConfig.max_new_tokens)
        new = new if isinstance(new, int) else GenerationConfig.max_new_tokens  # another type is refused later
        prompts = PromptTokenizer(model, tokenizer)
        room = backbone.config.max_positions - new
        if prompts.has_encoder:
            return trained
        return max(1, min(trained if prompts.frame.is_source else max(trained - new, trained // 2), room))

    def signatures(self):
        text, limits = {"text": TEXT}, self._limits()
        each = {name: tf.TensorSpec([None], tf.constant(low).dtype) for name, (low, *_) in limits.items()}
        signatures = {
            "serving_default": Signature(self.answer_text, text),
            "generate": Signature(self.answer_with, text | each),
        }
        if self._has_score:
            signatures["score"] = Signature(self.answer_score, text | {"continuation": TEXT})
        return signatures

    def answer_text(self, text):
        return self._generate(text, {})

    def answer_with(self, text, **each):
        """What `generate` computes; refuses settings out of range."""
        text, *values = check_as_many(text=text, **each)
        each = {name: check_between(name, x, *self._limits()[name]) for name, x in zip(each, values)}
        lowest, most = "min_new_tokens", each["max_new_tokens"]
        return self._generate(text, each | {lowest: check_at_most(lowest, each[lowest], "max_new_tokens", most)})

    def answer_score(self, text, continuation):
        """What `score` computes; refuses continuations without a token, and ones that are too long."""
        text, continuation = map(valid_utf8, check_as_many(text=text, continuation=continuation))
        ids, begins, inputs = (self._target if self._frame.is_source else self._continued)(text, continuation)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        width = (1 if self._has_encoder else self.sequence_length) + self._room
        width = width if self.static else tf.maximum(tf.reduce_max(lengths), 2)
        log_p, _ = self._scorer.token_scores(*pad_rows(ids, self.tokenizer.pad_id, width), *inputs)
        column = tf.range(1, width)[None]  # the first token is not scored
        scored = (column > begins[:, None]) & (column < lengths[:, None])
        return {"log_likelihood": tf.reduce_sum(tf.where(scored, log_p, 0.0), axis=1), "tokens": lengths - 1 - begins}

    def inputs_of(self, name, texts):
        count = len(texts)
        inputs = {"text": tf.constant(texts, tf.string), "continuation": tf.fill([count], self._trial)}
        for key, (low, high, *above) in self._limits().items():
            values = [min(low + len(above) + i, high) for i in range(count)]
            inputs[key] = tf.constant(values, tf.constant(low).dtype)
        return {key: inputs[key] for key in self.signatures()[name].inputs}

    def _continuation(self, room):
        """A text of at least one token and at most `room`, for the trial of `score`."""
        texts = itertools.chain([" small"], (self.tokenizer.decode([i]) for i in range(self.tokenizer.vocabulary_size)))
        return next(text for text in texts if 0 < len(self.tokenizer.encode(text)) <= room)

    def trial_inputs(self, name):
        # A prompt without a token is refused where no special token stands in its row.
        return self.inputs_of(name, TRIAL_TEXTS[0 if self._has_tokens or self._frame.start is not None else 1 :])

    def settings(self):
        generation = to_dict(self.config) | {"stop_tokens": self.stop_tokens, "allowed_tokens": self.allowed_tokens}
        return super().settings() | {"text_before": self._frame.text_before, "generation": generation}

    @property
    def _has_tokens(self):
        """Whether every prompt has special tokens."""
        return bool(self._frame.before or self._frame.after)

    def _limits(self):
        """The arguments of `check_between` for each setting of a request; its type is that of the first."""
        limits = {"max_new_tokens": (1, self.config.max_new_tokens), "min_new_tokens": (0, self.config.max_new_tokens)}
        if self.config.method == "sample":
            limits |= {"seed": (0, tf.int32.max), "top_k": (1, self.config.top_k or self.tokenizer.vocabulary_size)}
            limits |= {"temperature": (0.0, tf.float32.max, True), "top_p": (0.0, 1.0, True)}
        return limits

    def _generate(self, text, each):
        token_ids, mask = self._padded(self._prompt_ids(text))
        limit = self.config.max_new_tokens
        if "max_new_tokens" in each and not self.static:
            limit = tf.maximum(tf.reduce_max(each["max_new_tokens"]), 1)  # there may be no text
        steps, restrictions = self._prompts.steps(token_ids, mask, limit), self._generator.restrictions(self.config)
        sampler, pad_id = SAMPLERS[self.config.method], self.tokenizer.pad_id
        generated = sampler.generate(steps, self.config, restrictions, pad_id, each, self._stop_strings)
        size = tf.shape(generated["token_ids"])
        rows = tf.reshape(generated["token_ids"], [-1, size[2]])
        texts = self._stop_strings.texts(rows, tf.reshape(generated["lengths"], [-1]))
        return {"texts": tf.reshape(texts, size[:2]), "scores": generated["scores"], "lengths": generated["lengths"]}

    def _padded(self, ids):
        """Prompts as int32 [N, S], and bool [N, S], True at real tokens."""
        width = self.sequence_length if self.static else tf.maximum(tf.reduce_max(ids.row_lengths()), 1)
        on_the_left = not self._has_encoder
        return pad_rows(ids, self.tokenizer.pad_id, tf.cast(width, tf.int32), on_the_left=on_the_left)

    def _prompt_ids(self, text):
        """The prompts as a RaggedTensor int32 [N, None], each with the special tokens of its frame."""
        frame = self._frame
        ids = self.tokenizer.tokenize(tf.strings.join([frame.text_before, text]) if frame.text_before else text)
        room = self.sequence_length - len(frame.before) - len(frame.after)
        ids = ids[:, :room] if frame.is_source else ids[:, -room:]
        empty = ids.row_lengths() == 0
        if not self._has_tokens and frame.start is None:
            return refuse_texts(empty, text, "has no token; give at least one word", ids)
        return tf.concat([self._first(empty), ids, repeated(frame.after, ids.nrows())], axis=1)

    def _first(self, empty):
        """What rows begin with, RaggedTensor int32 [N, None]: `before`; without one, the empty rows with `start`."""
        if self._has_tokens:
            return tf.RaggedTensor.from_tensor(repeated(self._frame.before, tf.size(empty)))
        starts = tf.fill([tf.reduce_sum(tf.cast(empty, tf.int32))], self._frame.start)
        return tf.RaggedTensor.from_row_lengths(starts, tf.cast(empty, tf.int64), validate=False)

    def _continued(self, text, continuation):
        """What is scored of a continuation: (ids, begin of the continuation in them, further inputs of the scorer)."""
        ids, _, ends = self.tokenizer.tokenize_with_offsets(tf.strings.join([text, continuation]))
        length = tf.strings.length(text, unit="UTF8_CHAR")
        # A token across the border counts as the continuation's, as in `TextScorer`.
        begins = tf.reduce_sum(tf.cast(ends <= length[:, None], tf.int32), axis=1)
        count = tf.cast(ids.row_lengths(), tf.int32) - begins
        room = self.sequence_length - max(len(self._frame.before), 1) + self._room
        ids = self._checked(ids, count, continuation, room)
        begins -= tf.maximum(begins + count - room, 0)  # the tokens that are dropped
        first = self._first(begins == 0)
        begins += tf.cast(first.row_lengths(), tf.int32) - 1
        return tf.concat([first, ids[:, -room:]], axis=1), begins, ()

    def _target(self, text, continuation):
        """The same of a target after its source."""
        ids, end = self.tokenizer.tokenize(continuation), () if self._frame.end is None else (self._frame.end,)
        count = tf.cast(ids.row_lengths(), tf.int32)
        ids = self._checked(ids, tf.where(count > 0, count + len(end), 0), continuation, self._room)
        ids = tf.concat([ids, repeated(end, ids.nrows())], axis=1)
        if self._has_encoder:
            ids = tf.concat([repeated((self._scorer.start_id,), ids.nrows()), ids], axis=1)
            return ids, tf.zeros_like(count), self._padded(self._prompt_ids(text))
        sources = self._prompt_ids(text)
        inputs = self._padded(sources) if self._scorer.has_prefix else ()
        return tf.concat([sources, ids], axis=1), tf.cast(sources.row_lengths(), tf.int32) - 1, inputs

    def _checked(self, ids, count, continuation, room):
        ids = refuse_texts(count == 0, continuation, "has no token to be scored; give at least one word", ids)
        long = f"has more than {room} tokens; shorten it, or export with a larger max_new_tokens"
        return refuse_texts(count > room, continuation, long, ids)
