"""The settings of tagging. No TensorFlow is imported."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import TaskConfig


@dataclasses.dataclass(frozen=True)
class TaggingConfig(TaskConfig):
    """The settings of the task tagging: those of `TaskConfig` and these.

    Attributes:
        scheme: the scheme of the entity tags that the model learns. Files in another scheme are rewritten when they are
            read. None: that of the training file.

        context: what the model reads around a sentence. "sentence": nothing. "document": as much of its document as fits
            into `sequence_length`, the same on both sides where there is so much (the maximal document context of Devlin
            et al. 2019, section 5.3); documents begin at -DOCSTART- lines, or at "# newdoc" in CoNLL-U. "file": the same
            with the whole file as one document. Each sentence is one sequence, in training too, and its tags alone count
            (Schweter and Akbik 2020, FLERT); BERT's own code for this task was not published.

        features: which outputs of a frozen model a BiLSTM reads, the feature-based approach of Devlin et al. 2019, table 7:
            "embeddings", "second_to_last", "last", "weighted_sum_last_four", "concatenate_last_four" and
            "weighted_sum_all" of the layers; "scalar_mix" is the weighted sum of all layers and the embeddings, as ELMo is
            used. None: the model is fine-tuned, without a BiLSTM.
        lstm_layers: of the BiLSTM.
        lstm_units: of the BiLSTM in each direction. (The paper has "a two-layer 768-dimensional BiLSTM".)
        mix_at: where the features stand. "input": the BiLSTM reads them; "both": a second mix of the same kind is read by
            the output layer beside the BiLSTM's output (Peters et al. 2018, section 3.2).
        mix_norm: of a weighted sum, whether each layer is normalized first over all tokens of the batch.
        mix_l2: the weight of the sum of squares of a weighted sum's weights in the training loss; 0: none. Peters et al.
            2018 (section 3.3) add it and call the weight lambda.

    Raises:
        ConfigError: settings that contradict `features`.

    Example:
        TaggingConfig(kind="tagging", scheme="BIOES")
    """

    scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU"] | None = None
    context: Literal["sentence", "document", "file"] = "sentence"
    features: (
        Literal[
            "embeddings",
            "second_to_last",
            "last",
            "weighted_sum_last_four",
            "concatenate_last_four",
            "weighted_sum_all",
            "scalar_mix",
        ]
        | None
    ) = None
    lstm_layers: Annotated[int, Range(at_least=1)] = 2
    lstm_units: Annotated[int, Range(at_least=1)] = 768
    mix_at: Literal["input", "both"] = "input"
    mix_norm: bool = False
    mix_l2: Annotated[float, Range(at_least=0)] = 0.0

    def __post_init__(self):
        weighted = self.features in ("weighted_sum_last_four", "weighted_sum_all", "scalar_mix")
        wrong = [name for name in ("mix_norm", "mix_l2") if getattr(self, name) and not weighted]
        wrong += ["mix_at"] if self.mix_at == "both" and self.features is None else []
        if wrong:
            raise ConfigError(
                f"task.{wrong[0]} is for task.features, and there for weighted sums; set task.features=scalar_mix, or "
                f"remove task.{wrong[0]}"
            )
        if self.features is not None:
            for name in ("head", "lm_weight", "reinitialize_layers", "bilstm_layers"):
                if getattr(self, name):
                    raise ConfigError(
                        f"task.{name}={getattr(self, name)} does not apply to task.features={self.features}, whose "
                        "BiLSTM reads a frozen model; remove one of them"
                    )
