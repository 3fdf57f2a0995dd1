"""The settings of a fine-tuning task. No TensorFlow is imported, so that a wrong setting is refused at once."""

import dataclasses
from typing import Annotated, Literal

from bert_tf.config import Range
from bert_tf.models.task_heads import Features

# The usual names of columns.
TEXT_NAMES = (
    "text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review",
    "document", "content", "comment", "body", "#1 string",
)  # fmt: skip
PAIR_NAMES = ("text_pair", "sentence2", "text2", "hypothesis", "question2", "#2 string")
LABEL_NAMES = (
    "label", "labels", "gold_label", "class", "category", "target", "sentiment", "score",
    "is_duplicate", "quality",
)  # fmt: skip
ID_NAMES = ("id", "idx", "index", "guid", "uid")
WORDS_NAMES = ("words", "tokens")
TAGS_NAMES = ("tags", "ner_tags", "pos_tags", "labels")


@dataclasses.dataclass(frozen=True)
class ColumnsConfig:
    """Which columns of a data file hold the text and the labels.

    A column is a name (TSV and CSV with a header, the keys of JSON) or a number counted from 0,
    where -1 is the last (files without a header, CoNLL). A column left None is found by its usual name
    (above). In CoNLL files the words are column 0 and the tags the last column; in CoNLL-U (ten columns)
    the words are column 1 and the tags column 3, the universal parts of speech.

    Attributes:
        text: the text, the first sentence of a pair, or the words.
        text_pair: the second sentence of a pair.
        label: the label, the number, or the tags.
        header: whether a TSV or CSV file begins with the names of its columns. None: yes, unless
            columns are given by number.
        quoted: whether "..." quotes a field that holds separators. None: in CSV yes; in TSV no, as
            GLUE writes them.
        skip_malformed: skip and count rows with the wrong number of fields, without a text or without
            a label, where the default is to stop.
        format: how the file is read; None: by its ending (.tsv, .csv, .json, .jsonl, .conll, .conllu,
            .iob, .bio, .txt, .parquet), and where that says nothing by what it holds.
        tag_scheme: of tagging, the scheme of the entity tags in the file; "conlleval" takes any tags and reads the
            entities that conlleval finds. `predict` writes in this scheme. None: recognized; `predict` writes in that
            of the training file.

    Example:
        TaskConfig(kind="classification", columns=ColumnsConfig(text="review", label="stars"))
    """

    text: str | int | None = None
    text_pair: str | int | None = None
    label: str | int | None = None
    header: bool | None = None
    quoted: bool | None = None
    skip_malformed: bool = False
    format: Literal["tsv", "csv", "jsonl", "conll", "lines", "parquet"] | None = None
    tag_scheme: Literal["IOB1", "IOB2", "BIOES", "BILOU", "conlleval"] | None = None


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """The settings of a fine-tuning task. A task with settings of its own has a subclass, named in its record.

    Attributes:
        kind: the name of the task in the list `bert_tf.tasks.TASKS`: "classification" of a text or a pair,
            "multi_label" where several labels can be right, "regression" to one number, "tagging" of every word,
            "multiple_choice" of options, "text_to_text", or one that was added with `register_task`. None: the
            preset's, else classification.
        preset: a GLUE task (`bert_tf.tasks.glue.GLUE_TASKS`). Its columns, labels and metric are used where
            they are not set here; each column is a setting of its own.
        columns: which columns of the data files are read.
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
    columns: ColumnsConfig = ColumnsConfig()
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

    @property
    def frozen_features(self):
        """The `Features` that a BiLSTM reads; None where the model is fine-tuned."""
        if self.features is None:
            return None
        return Features(self.features, self.lstm_layers, self.lstm_units, self.mix_at, self.mix_norm, self.mix_l2)
