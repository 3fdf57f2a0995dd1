"""The settings of question answering. No TensorFlow is imported."""

import dataclasses
from typing import Annotated, ClassVar, Literal

from bert_tf.config import Range
from bert_tf.errors import ConfigError
from bert_tf.tasks.config import HeadedTaskConfig
from bert_tf.tasks.rows.columns_config import TableColumns
from bert_tf.tasks.sections import DropoutSpanHeadConfig, SpanHeadConfig


@dataclasses.dataclass(frozen=True)
class QuestionColumns(TableColumns):
    """The columns of questions about contexts, of files that are neither SQuAD nor MRQA.

    Attributes:
        question: the question.
        context: the text that answers it.
        answers: JSON's list of {"text", "answer_start"}, or {"text": [...], "answer_start": [...]}; from Python also a
            list of (text, start). An empty one, or `is_impossible`, says that there is no answer.

    Example:
        task = build_task({"kind": "question_answering"}, tokenizer, {"context": "article"})
    """

    question: str | int | None = None
    context: str | int | None = None
    answers: str | None = None

    usual: ClassVar = {
        "question": ("question", "query", "text"),
        "context": ("context", "passage", "paragraph", "document", "text_pair"),
        "answers": ("answers",),
    }


@dataclasses.dataclass(frozen=True)
class QuestionAnsweringConfig(HeadedTaskConfig):
    """The settings of the task question_answering: those of `HeadedTaskConfig` and these.

    `sequence_length` is the largest number of tokens in a window: question, part of the context and special tokens.
    The defaults are those of google-research/bert `run_squad.py`.

    Attributes:
        sequence_length: of `TaskConfig`.
        head: the layers that find the start and the end of an answer.
        stride: from the start of a window of a long context to the start of the next one, in tokens. (`stride` of
            Hugging Face's tokenizers is the overlap of two windows instead.)
        max_query_length: the largest number of tokens in a question; a longer one loses its end.
        max_answer_length: the largest number of tokens in an answer.
        n_best: how many answers `predict` gives for a question, best first; and of BERT's head how many starts and ends
            of a window are combined.
        impossible_questions: whether questions may have no answer in their context, as in SQuAD 2.0. The model then
            also answers "", and the scores are those of SQuAD 2.0's scorer. None: whether the training file has such
            questions.
        null_threshold: the answer is "" where `null_odds` is above it. None: tuned on the dev file after training;
            until then 0, for ELECTRA's head -2.75.
        scorer: "squad": the official scorers of SQuAD 1.1 and 2.0, F1 of words. "triviaqa": that of TriviaQA, the same
            with punctuation as spaces, so that "well-known" is two words. "korquad": that of KorQuAD 1.0, F1 of
            characters.

    Raises:
        ConfigError: a threshold without impossible questions.

    Example:
        QuestionAnsweringConfig(sequence_length=512, max_answer_length=64)
    """

    kind: str | None = "question_answering"
    sequence_length: Annotated[int, Range(at_least=8, at_most=1 << 20)] = 384
    head: SpanHeadConfig = DropoutSpanHeadConfig()
    stride: Annotated[int, Range(at_least=1)] = 128
    max_query_length: Annotated[int, Range(at_least=1)] = 64
    max_answer_length: Annotated[int, Range(at_least=1)] = 30
    n_best: Annotated[int, Range(at_least=1, at_most=100)] = 20
    impossible_questions: bool | None = None
    null_threshold: float | None = None
    scorer: Literal["squad", "triviaqa", "korquad"] = "squad"

    columns: ClassVar = QuestionColumns

    def __post_init__(self):
        super().__post_init__()
        if self.null_threshold is not None and self.impossible_questions is False:
            raise ConfigError(
                f"task.null_threshold={self.null_threshold} applies only to impossible questions, but "
                "task.impossible_questions is false; remove one of them"
            )
