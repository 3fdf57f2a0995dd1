"""The settings of the sequence autoencoder, and its record. No Keras is imported."""

import dataclasses
from typing import Annotated, ClassVar

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.objectives.objective import Objective, ObjectiveConfig
from bert_tf.types import Config
from tfrecords.corruption.documents_config import DocumentsConfig


@dataclasses.dataclass(frozen=True)
class SequenceAutoencoderConfig(ObjectiveConfig):
    """Sequence autoencoder: SA-LSTM.

    Attributes:
        name: "sequence_autoencoder".
        documents: what is one text. By default each document of a row is reproduced by itself; with separate=false the
            whole row is one text.
        loss_block: how many tokens have their logits in memory at a time; null for all. The numbers are the same.

    Example:
        SequenceAutoencoderConfig(loss_block=512)
    """

    reads_running_text: ClassVar[bool] = True

    name: str = "sequence_autoencoder"
    documents: DocumentsConfig = DocumentsConfig(separate=True)
    loss_block: Annotated[int | None, Range(at_least=1)] = None

    @property
    def corrupts(self) -> bool:
        return self.documents.separate

    def check_model(self, model_config: Config) -> None:
        if getattr(model_config, "prefix", False):
            raise ConfigError("sequence_autoencoder reads and writes in one direction; set model.prefix=false")


SEQUENCE_AUTOENCODER = Objective(
    name="sequence_autoencoder",
    config=SequenceAutoencoderConfig,
    model="bert_tf.objectives.sequence_autoencoder:SequenceAutoencoder",
    corruption="documents",
    corruption_section="documents",
    unigram={"sequence_autoencoder_loss": "masked_lm_loss", "sequence_autoencoder_accuracy": "masked_lm_accuracy"},
    backbone="decoder",
)
