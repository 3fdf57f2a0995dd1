"""Bidirectional language modelling: each word is predicted from those before it, and from those after it."""

from typing import Any

import keras
from keras import ops

from bert_tf.backend import UniformNumbers, product_with_transposed
from bert_tf.layers import OutputLayer
from bert_tf.objectives.causal_lm import next_tokens
from bert_tf.objectives.losses import cross_entropy_sums
from bert_tf.objectives.pretraining_model import PretrainingModel
from bert_tf.objectives.sampled_softmax import log_uniform_candidates, sampled_softmax_sum
from bert_tf.objectives.settings import BidirectionalLMConfig, check_directions, check_words
from bert_tf.types import Model, Options, Tensors
from tfrecords.corruption.word_characters_config import WordsConfig

_DIRECTIONS = ("forward_lm", "backward_lm")


@keras.saving.register_keras_serializable("bert_tf")
class BidirectionalLM(PretrainingModel):
    """A model that predicts the word after each position from its forward half, and the word before from its backward half.

    Peters et al. 2018, section 3.1; both directions share the embeddings and the output layer. The loss is half the sum
    of the means of both directions, as in bilm-tf. There the gradient of this loss is that of its 20 time steps: 20
    times as large before it is clipped to a norm of 10.

    Args:
        backbone: an `Elmo`, which reads the characters of words; or a `TransformerBiLM`, which reads tokens and
            predicts them by its token table.
        words: a `WordsConfig`; for a model of characters with its size, V, else without.
        sampled_softmax: in training, how many other words each right one is compared with; None for all.

    Call arguments:
        features: dict of `token_ids` int32 [B, S, C], the characters of the words, and `word_ids` int32 [B, S], or of
            `token_ids` int32 [B, S] alone; where they are not the default `padding_mask` bool and `sequence_ids` int32
            [B, S].
        training: whether dropout is active.

    Returns:
        dict: `forward_lm_logits` and `backward_lm_logits` float32 [B, S, V], of the words after and before each
            position.

    Raises:
        ConfigError: a backbone whose vectors do not have a half for each direction; characters without a size, or
            tokens with one.

    Example:
        elmo = Elmo(ElmoConfig(hidden_size=16, units=32, character_size=4, filters=((1, 8), (2, 8)), highways=1))
        model = BidirectionalLM(elmo, WordsConfig(size=100), sampled_softmax=10)
        features = {"token_ids": np.ones((1, 3, 50), "int32"), "word_ids": np.array([[5, 6, 7]])}
        model(features)["forward_lm_logits"].shape  # [1, 3, 100]
    """

    loss_coefficients = dict.fromkeys(_DIRECTIONS, 0.5)

    settings_class, kept_settings = BidirectionalLMConfig, ("words", "sampled_softmax")

    def __init__(
        self, backbone: Model, words: WordsConfig = WordsConfig(), sampled_softmax: int | None = None, **kwargs: Options
    ) -> None:
        super().__init__(backbone, **kwargs)
        check_directions(backbone.config)
        check_words(words, backbone.config.reads_characters)
        self.words, self.sampled_softmax = words, sampled_softmax
        self.word_output = None
        if words.size is not None:
            half = backbone.config.hidden_size // 2
            sizes = words.size, half
            self.word_output = OutputLayer(  # begins as allenai/bilm-tf's
                *sizes, True, initializer_range=half**-0.5, dtype=self.dtype_policy, name="word_output"
            )
        self.uniform: Any = UniformNumbers(name="candidates") if sampled_softmax else None

    def call(self, features: Tensors, training: bool = False) -> Tensors:
        return {f"{name}_logits": self._logits(x) for name, x in zip(_DIRECTIONS, self._halves(features, training))}

    @property
    def _output(self):
        """The table [V, H / 2] and the bias [V] of the output layer; None for no bias."""
        if self.word_output is None:
            return self.backbone.embedding_table, None
        return self.word_output.kernel, self.word_output.bias

    def _logits(self, x):
        table, bias = self._output
        logits = ops.cast(product_with_transposed(x, ops.cast(table, x.dtype)), "float32")
        return logits if bias is None else logits + ops.cast(bias, "float32")

    def _halves(self, features, training):
        """float [B, S, H / 2] of each direction, from the last layer."""
        inputs = self.backbone.select(features)
        hidden_states, _ = self.backbone.outputs_of_layers(inputs, training=training)
        return ops.split(hidden_states[-1], 2, axis=-1)

    def loss_weights(self, features: Tensors) -> Tensors:
        return {name: ops.sum(weights) for name, (_, weights) in zip(_DIRECTIONS, _targets(features))}

    def loss_sums(self, features: Tensors, training: bool) -> tuple[Tensors, Tensors]:
        losses, metrics, candidates = {}, {}, None
        table, bias = self._output
        if self.sampled_softmax and training:
            candidates = log_uniform_candidates(self.uniform.draw(self.sampled_softmax), table.shape[0])
        for name, x, (labels, weights) in zip(_DIRECTIONS, self._halves(features, training), _targets(features)):
            if candidates is not None:
                losses[name] = sampled_softmax_sum(x, table, bias, labels, weights, candidates)
                continue
            losses[name], correct = cross_entropy_sums(self._logits(x), labels, weights)
            metrics[f"{name}_accuracy"] = (correct, ops.sum(weights))
        return losses, metrics


def _targets(features):
    """(int32 [B, S], float32 [B, S]) of each direction: the words to be predicted, and 1 where there is one."""
    rows = {name: features[name] for name in ("padding_mask", "sequence_ids") if features.get(name) is not None}
    rows["token_ids"] = features.get("word_ids", features["token_ids"])
    flipped = {name: ops.flip(value, axis=1) for name, value in rows.items()}
    backward = (ops.flip(value, axis=1) for value in next_tokens(flipped))
    return next_tokens(rows), tuple(backward)


def reading_characters(tokenizer: Any, settings: BidirectionalLMConfig) -> Any:
    """The tokenizer of the pretrained model: a `CharacterTokenizer`, for texts of any words; that of the shards for tokens.

    It lowercases text and drops accents where the tokenizer of the shards does: the model has seen no others.

    Args:
        tokenizer: of the shards.
        settings: a `BidirectionalLMConfig`.
    """
    from bert_tf.tokenizers import CharacterTokenizer

    if settings.words.size is None:
        return tokenizer
    cleaning = {name: getattr(tokenizer, name, False) for name in ("lowercase", "strip_accents")}
    return CharacterTokenizer(settings.words.max_characters, punctuation=True, **cleaning)
