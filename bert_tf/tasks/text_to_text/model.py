"""The model of text to text: an encoder-decoder or a decoder that learns to write targets, and writes them."""

import keras
from keras import ops

from bert_tf.backend import cross_entropy, largest
from bert_tf.config import to_dict
from bert_tf.errors import ConfigError
from bert_tf.generation import SAMPLERS, DecoderSteps, EncoderDecoderSteps, GenerationConfig
from bert_tf.generation.restrictions import Restrictions
from bert_tf.tasks.heads import InferringModel


@keras.saving.register_keras_serializable("bert_tf")
class TextToTextModel(InferringModel):
    """Writes a target for each source.

    It is trained with teacher forcing: each token of the target is predicted from the source and the tokens of the
    target before it. An encoder-decoder's targets are moved to the right by a start token (Raffel et al. 2020, section
    2.1); a decoder reads source and target as one text, and the loss is on the target alone. The loss is a mean over
    the tokens of all targets of a batch.

    Args:
        backbone: an `EncoderDecoder` or a `Decoder`.
        config: a `GenerationConfig`, for what `call` writes.
        restrictions: a `Restrictions`; its `stop_ids` end a target.
        pad_id: int, of padding; also what an encoder-decoder's targets begin with, as T5's.
        ends: of `generate`.
        name: of the Keras model.

    Call arguments:
        features: `token_ids` int32 [B, S], `padding_mask` bool [B, S], the sources, padded on the left for a decoder;
            for training also `target_ids` int32 and `target_weights` float32 [B, T].

    Returns:
        dict: `generated_ids` int32 [B, n, N], `lengths` int32 [B, n], `scores` float32 [B, n], best first; and with
        targets `loss`, `correct` and `weight` float32 [B], sums over each target's tokens.

    Raises:
        ConfigError: the backbone is an encoder.

    Example:
        model = TextToTextModel(gpt, GenerationConfig(max_new_tokens=4), Restrictions(stop_ids=(3,)), pad_id=0)
        source = {"token_ids": np.array([[5, 6, 7]]), "padding_mask": np.ones((1, 3), bool)}
        model(source)["generated_ids"].shape  # [1, 1, 4]
    """

    argument_classes = {"config": GenerationConfig, "restrictions": Restrictions}

    def __init__(self, backbone, config, restrictions, pad_id, ends=None, name="text_to_text", **kwargs):
        super().__init__(backbone, name=name, **kwargs)
        if backbone.structure not in ("decoder", "encoder_decoder"):
            raise ConfigError(
                f"task.kind=text_to_text needs a model that writes: a decoder (GPT) or an encoder-decoder (T5), and "
                f"{type(backbone).__name__} is an encoder; set another task.kind or init_from"
            )
        self.config, self.restrictions, self.pad_id, self.ends = config, restrictions, pad_id, ends

    def get_config(self):
        ends = keras.saving.serialize_keras_object(self.ends) if self.ends else None
        names = ("config", "restrictions", "pad_id")
        return super().get_config() | to_dict({name: getattr(self, name) for name in names}) | {"ends": ends}

    def call(self, features, training=False):
        token_ids = ops.convert_to_tensor(features["token_ids"], dtype="int32")
        mask = ops.convert_to_tensor(features["padding_mask"], dtype="bool")
        count = self.config.max_new_tokens
        if self.backbone.structure == "decoder":
            steps = DecoderSteps(self.backbone, token_ids, mask, count)
        else:
            steps = EncoderDecoderSteps(self.backbone, token_ids, mask, count, self.pad_id)
        result = SAMPLERS[self.config.method].generate(
            steps, self.config, self.restrictions, self.pad_id, ends=self.ends
        )
        outputs = {"generated_ids": result["token_ids"], "lengths": result["lengths"], "scores": result["scores"]}
        if "target_ids" in features:
            loss, correct = self._of_tokens(features, training=False)
            weights = features["target_weights"]
            sums = {"loss": loss * weights, "correct": correct * weights, "weight": weights}
            outputs |= {key: ops.sum(value, axis=1) for key, value in sums.items()}
        return outputs

    def loss_weights(self, features):
        return {"target": ops.sum(features["target_weights"])}

    def loss_sums(self, features, training):
        loss, correct = self._of_tokens(features, training)
        weights = features["target_weights"]
        return {"target": ops.sum(loss * weights)}, {"token_accuracy": (ops.sum(correct * weights), ops.sum(weights))}

    def _of_tokens(self, features, training):
        """(cross-entropy in nats, 1 where the most probable token is right): float32 [B, T] each."""
        logits = self.backbone.output_logits(self._hidden(features, training))
        guesses = largest(logits)
        target_ids = ops.cast(features["target_ids"], "int32")
        return cross_entropy(logits, target_ids, guesses), ops.cast(ops.equal(guesses, target_ids), "float32")

    def _hidden(self, features, training):
        """The vectors that predict the tokens of the targets: [B, T, H]."""
        token_ids, mask = features["token_ids"], features["padding_mask"]
        written = features["target_ids"][:, :-1]
        if self.backbone.structure == "encoder_decoder":
            shifted = ops.pad(written, [(0, 0), (1, 0)], constant_values=self.pad_id)
            inputs = {"token_ids": token_ids, "padding_mask": mask, "decoder_token_ids": shifted}
            return self.backbone(inputs, training=training)["sequence_output"]
        # The source ends in the same column of every row, as in `DecoderSteps`.
        source, nothing = mask, ops.zeros_like(written, dtype="bool")
        mask = ops.concatenate([mask, ops.ones_like(written, dtype="bool")], axis=1)
        positions = ops.maximum(ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1, 0)
        tokens = ops.concatenate([token_ids, written], axis=1)
        inputs = {"token_ids": tokens, "padding_mask": mask, "position_ids": positions}
        if self.backbone.prefix:
            inputs["prefix_mask"] = ops.concatenate([source, nothing], axis=1)
        return self.backbone(inputs, training=training)["sequence_output"][:, ops.shape(token_ids)[1] - 1 :]
