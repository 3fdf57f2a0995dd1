"""How a question with one of its options becomes a row of tokens; the same in training and in served models."""

import dataclasses

import tensorflow as tf

from bert_tf.errors import Advice, ConfigError


@dataclasses.dataclass(frozen=True)
class OptionRows:
    """The texts and the cuts of a row.

    | data set | first text | second text | cut |
    |---|---|---|---|
    | SWAG (google-research/bert issue 38) | context | beginning of the ending, then the option | the longer of both |
    | RACE of ALBERT `race_utils.py`, XLNet `run_race.py` | article | question with the option in it | the last 128 tokens of the second, then the end of the article |
    | RACE of fairseq `preprocess_RACE.py`, `sentence_ranking.py` | question with the option in it | article | the first tokens of the question and option, then the end of the article |
    | ARC, without a context | question | option | the longer of both |
    | COPA of jiant; GPT-1 (Radford et al. 2018, section 3.3) | context and question | option | |

    XLNet's `run_race.py` appends each option to the list of the article's tokens, so that later options hold the
    earlier ones unless the article is cut. That is a mistake and is not repeated. fairseq cuts special tokens off, too;
    here each text keeps those of the layout.

    Attributes:
        question_joins, blank, order, context_length, option_length, option_kept: of `MultipleChoiceConfig`, all of them
            known; `blank` is "" for none.

    Example:
        from bert_tf.tasks.choices.option_rows import OptionRows

        rows = OptionRows(blank="_")
        rows.second_texts(["It rained."], ["It was _ ."], ["wet"])  # ["It was wet ."]
    """

    question_joins: str = "option"
    blank: str = ""
    order: str = "context"
    context_length: int | None = None
    option_length: int | None = None
    option_kept: str = "last"

    def first_texts(self, context, question):
        """The texts beside the options: tf.string [N] of contexts and of questions -> [N], white space made one space."""
        context, question = _one_space(context), _one_space(question)
        if self.question_joins == "context":
            return _one_space(tf.strings.join([context, question], " "))
        return tf.where(context == "", question, context)  # without a context the options belong to the question

    def second_texts(self, context, question, option):
        """The texts of the options: tf.string [M] each, with the context and the question of each option -> [M]."""
        context, question, option = map(_one_space, (context, question, option))
        if self.question_joins == "context":
            return option
        joined = _one_space(tf.strings.join([question, option], " "))
        if self.blank:
            joined = fill_blank(question, self.blank, option, joined)
        return tf.where(context == "", option, joined)

    def lengths(self, context, option, layout, sequence_length):
        """The number of tokens of a row, special tokens included; int arrays of those of its two texts."""
        if self.option_length is not None:
            limit = self.context_length or sequence_length
            context, option = context.clip(max=limit), option.clip(max=self.option_length)
        return (context + option + layout.special_tokens_per_pair).clip(max=sequence_length)

    def pack(self, tokenizer, context, option, sequence_length, dynamic=True):
        """The features of rows; see `model_rows.pack`.

        Args:
            tokenizer: with its layout.
            context, option: int32 `tf.RaggedTensor` [M, None], the ids of the two texts.
            sequence_length: the longest row.
            dynamic: pad to the longest row of the batch.
        """
        if self.option_length is not None:
            part = slice(-self.option_length, None) if self.option_kept == "last" else slice(self.option_length)
            option = option[:, part]
            room = sequence_length - tokenizer.layout.special_tokens_per_pair - option.row_lengths()
            if self.context_length is not None:
                room = tf.minimum(room, self.context_length)
            context = _first_tokens(context, room)
        pair = (context, option) if self.order == "context" else (option, context)
        return tokenizer.pack(*pair, sequence_length=sequence_length, dynamic=dynamic)

    def check(self, layout, sequence_length):
        """Raises ConfigError if the tokens of an option leave no room for a context."""
        most = sequence_length - layout.special_tokens_per_pair - 1
        if self.option_length is not None and self.option_length > most:
            raise ConfigError(
                f"task.option_length={self.option_length} leaves no room for a context in rows of task.sequence_length="
                f"{sequence_length} tokens with {layout.special_tokens_per_pair} special ones; set ",
                Advice("task.option_length", most),
                " or less",
            )


def _one_space(text):
    return tf.strings.strip(tf.strings.regex_replace(text, r"\s+", " "))


def fill_blank(text, mark, option, otherwise):
    """Each text with the option in the place of every mark; `otherwise` where it has no mark."""
    pieces = tf.strings.split(text, mark)
    rows, counts = pieces.value_rowids(), pieces.row_lengths()
    first = tf.range(tf.size(rows, rows.dtype)) == tf.gather(pieces.row_starts(), rows)
    values = tf.where(first, pieces.values, tf.strings.join([tf.gather(option, rows), pieces.values]))
    filled = tf.strings.unsorted_segment_join(values, rows, tf.size(counts))
    return tf.where(counts > 1, filled, otherwise)


def _first_tokens(ids, most):
    """The first tokens of each row of ragged ids, at most so many (int [M])."""
    rows = ids.value_rowids()
    column = tf.range(tf.size(rows, rows.dtype)) - tf.gather(ids.row_starts(), rows)
    return tf.ragged.boolean_mask(ids, ids.with_values(column < tf.gather(tf.cast(most, column.dtype), rows)))
