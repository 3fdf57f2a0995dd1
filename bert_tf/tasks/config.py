"""The settings of a fine-tuning task. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.models.task_heads import Features
from bert_tf.tasks.glue import GLUE_TASKS
from bert_tf.tasks.rows.columns_config import ColumnsConfig, TextColumns


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """The settings of a fine-tuning task. A task with settings of its own has a subclass, named in its record.

    Its class attribute `columns` is the class of `data.columns`: the roles of the columns that the task reads.

    Attributes:
        kind: the name of the task in the list `bert_tf.tasks.TASKS`: "classification" of a text or a pair,
            "multi_label" where several labels can be right, "regression" to one number, "tagging" of every word,
            "multiple_choice" of options, "text_to_text", or one that was added with `register_task`. None: the
            preset's, else classification.
        preset: a GLUE task (`bert_tf.tasks.glue.GLUE_TASKS`). Its labels, metric and columns are used where
            they are not set; each column is a setting of its own.
        labels: the label set in the order of the output units. None: every label of the first
            labelled file that is read (the training file), sorted, numbers as numbers.
        metric: the metric on the dev file that chooses the best epoch and the best run, and stops training
            early. None: the preset's, else the first of the task's metrics.
        sequence_length: the largest number of tokens in a sequence, special tokens included; longer texts
            are truncated.
        head: the layers before the output layer. None: those that the model's family was published with; "bert":
            BERT's, for any family; "hugging_face": those of Hugging Face's class, which differ for ELECTRA and GPT-1;
            "mean": none, and the output layer reads the mean of the vectors of all tokens, as of models whose first
                token learned little.
        dropout: the rate before the output layer. None: the head's own: 0.1 (section 3.5 of Devlin et al. 2019),
            DistilBERT 0.2, RoBERTa, ModernBERT and GPT-2 0.
        bilstm_layers: of a bidirectional LSTM between the model and its head, which starts from random weights and is
            trained with both (table 5 of Devlin et al. 2019, "+ BiLSTM"); a text is then read by what each direction
            computed last.
            0: none.
        bilstm_units: of the BiLSTM in each direction. None: half of the model's width, so that the head's stays the
            same.
        features: which outputs of a frozen model a BiLSTM reads, the feature-based approach of Devlin et al. 2019,
            table 7: "embeddings", "second_to_last", "last", "weighted_sum_last_four", "concatenate_last_four" and
            "weighted_sum_all" of the layers; "scalar_mix" is the weighted sum of all layers and the embeddings, as ELMo
            is used. A text is read by what each direction computed last. None: the model is fine-tuned.
        lstm_layers: of that BiLSTM.
        lstm_units: of that BiLSTM in each direction. (The paper has "a two-layer 768-dimensional BiLSTM".)
        mix_at: where the features stand. "input": the BiLSTM reads them; "both": a second mix of the same kind is read
            by the output layer beside the BiLSTM's output (Peters et al. 2018, section 3.2); of a text the mean of its
            tokens.
        mix_norm: of a weighted sum, whether each layer is normalized first over all tokens of the batch.
        mix_l2: the weight of the sum of squares of a weighted sum's weights in the training loss; 0: none. Peters et
            al. 2018 (section 3.3) add it and call the weight lambda.
        tokens_per_batch: the largest number of tokens in a batch, padding included; replaces
            train.batch_size. None: every batch has train.batch_size examples.
        reinitialize_layers: the number of top layers of the encoder that start from random weights, together
            with its pooler.
        layout: the special tokens around the texts. None: the tokenizer's own; for texts and pairs a tokenizer
            without any gets "t5" if it has a separator (GPT-2's <|endoftext|>), else "gpt1". "gpt1": `_start_` text
            `_classify_`, `_start_` text `_delimiter_` text `_classify_`, three tokens with new rows in the token table;
            "t5": each text ends with the separator. Only for BPE tokenizers.
        pair_order: "both": each pair is read in both orders and the two pooled vectors are added, as GPT-1 does for
            similarity (Radford et al. 2018, section 3.3); "given": in the order of the file.
        lm_weight: the weight of an auxiliary language modelling loss on the texts, for decoders; GPT-1 has 0.5
            (equation 5). The loss is a mean over each example's own tokens, then over examples. 0: none.
        linear_gain: of classification by a decoder, whether in training each token predicts the label, with weights
            that rise from the first token to the last (Dai and Le 2015): 1 to n, divided by their sum, of each text.
            (adversarial_text: i / (n - 1) from 0 to 1, divided by their sum in the batch.) false: the last token alone.
        class_weights: the weight of each label's examples in the training loss, a list in the order of the labels
            (`labels`, else sorted); "balanced": examples / (labels x examples of the label) in the training file, as
            scikit-learn's. The loss is divided by the sum of the weights. None: all weigh 1.
        label_smoothing: the part of each target that is spread evenly over all labels in the training loss (Szegedy
            et al. 2016, section 7); 0: none.

    Example:
        task = build_task(TaskConfig(kind="tagging", labels=("NOUN", "VERB")), tokenizer)
        task.metric  # 'accuracy', because the tags mark no entities
    """

    kind: str | None = None
    preset: str | None = None
    labels: tuple[str, ...] | None = None
    metric: str | None = None
    sequence_length: Annotated[int, Range(at_least=8, at_most=1 << 20)] = 128
    head: Literal["bert", "hugging_face", "mean"] | None = None
    dropout: Annotated[float | None, Range(at_least=0, below=1)] = None
    bilstm_layers: Annotated[int, Range(at_least=0)] = 0
    bilstm_units: Annotated[int | None, Range(at_least=1)] = None
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
    tokens_per_batch: Annotated[int | None, Range(at_least=1)] = None
    reinitialize_layers: Annotated[int, Range(at_least=0)] = 0
    layout: Literal["gpt1", "t5", "none"] | None = None
    pair_order: Literal["given", "both"] = "given"
    lm_weight: Annotated[float, Range(at_least=0)] = 0.0
    linear_gain: bool = False
    class_weights: tuple[float, ...] | Literal["balanced"] | None = None
    label_smoothing: Annotated[float, Range(at_least=0, below=1)] = 0.0

    columns: ClassVar[type[ColumnsConfig]] = TextColumns

    def default_columns(self) -> ColumnsConfig:
        """The columns of files where `data.columns` names no others: those of the preset, or by their usual names."""
        return self.columns() if self.preset is None else GLUE_TASKS[self.preset].columns

    @property
    def frozen_features(self):
        """The `Features` that a BiLSTM reads; None where the model is fine-tuned."""
        if self.features is None:
            return None
        return Features(self.features, self.lstm_layers, self.lstm_units, self.mix_at, self.mix_norm, self.mix_l2)


@dataclasses.dataclass(frozen=True)
class DataSetConfig(TaskConfig):
    """The settings of a task that reads the files of one data set, whose keys are known.

    Example:
        DataSetConfig(kind="multirc")
    """

    columns: ClassVar = ColumnsConfig
