"""tokenizer.json of unigram models: ALBERT, XLNet and T5 as Hugging Face's converters write them.

It becomes a SentencePiece model, which the one `SentencePieceTokenizer` runs; `pre_tokenization` says what the
`tokenizers` package does with white space, which such a model cannot.
"""

import base64
import binascii

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.files.sentencepiece import CLASSES, read_settings
from bert_tf.tokenizers.files.tokenizer_config import naming
from bert_tf.tokenizers.files.tokenizer_json import only_member
from bert_tf.tokenizers.sentencepiece.families import FAMILIES, family_of
from bert_tf.tokenizers.sentencepiece.model_file import SPACE, check_charsmap, unigram_model
from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer

_RUNS_OF_SPACES = (("Regex", " {2,}", " "), ("Regex", " {2,}", SPACE))


def load_unigram_json(whole, lowercase=None):
    """A SentencePieceTokenizer of a `TokenizerJson`, with the ids of the `tokenizers` package.

    Two things differ from it. Special tokens that only normalization makes so, as full-width <s>,
    stay text here. And where accents are kept (always for T5), a character followed by marks of 6
    bytes or more, as decomposed Korean syllables, is joined by SentencePiece's table, not there.

    Raises:
        ConfigError: a component or a setting that is not supported, with its name and value.
        DataError: a vocabulary that is none, or a table of characters that is none.
    """
    file, model, config = whole.file, whole.model, whole.config
    if lowercase is not None:
        raise ConfigError(f"lowercase={lowercase}: {file} says itself whether text is lowercased")
    whole.expect("model.byte_fallback", model.get("byte_fallback", False), False)
    scores = _scores(model.get("vocab"), file)
    pieces = whole.with_added([piece for piece, _ in scores])
    for token, _ in whole.added:
        if token.normalized:
            raise ConfigError(f"{file}: added_tokens has '{token.content}' with normalized = true, which is not supported")
    named = config.tokenizer_class if config is not None else None
    family = CLASSES.get((named or "").removesuffix("Fast")) or family_of(pieces, file)
    default = FAMILIES[family]
    unknown = model.get("unk_id")
    if not isinstance(unknown, int) or not 0 <= unknown < len(scores) or pieces[unknown] != default["roles"]["unk"]:
        raise ConfigError(f"{file}: model.unk_id is {brief(unknown)}, which is not '{default['roles']['unk']}', {family}'s")
    whole.expect("post_processor", whole.layout(dict(default["roles"])), default["layout"])
    whole.expect("decoder.type", whole["decoder"].get("type"), None, "Metaspace")

    settings, charsmap, strips, joins = _read_normalizer(whole["normalizer"], default["cleaned"], file)
    settings["pre_tokenization"] = _pre_tokenization(whole, strips, joins)
    if not default["cleaned"]:
        settings["extra_ids"] = _count_sentinels(pieces)
    if config is not None:
        config.check_ids(pieces, file)
        for key, value in read_settings(config, family, settings).items():
            if value != settings[key]:
                raise ConfigError(f"{config.path}: {key} is {value!r}, but tokenizer.json has {settings[key]!r}")
    scores += [(piece, 0.0) for piece in pieces[len(scores) :]]
    control = {token.content for token, _ in whole.added if token.special}
    content = unigram_model(scores[: len(scores) - settings.get("extra_ids", 0)], unknown, control, charsmap)
    with naming(file):
        return SentencePieceTokenizer(content, family, special_tokens=[token for token, _ in whole.added], **settings)


def _scores(vocabulary, file):
    """The pieces with their scores as a list of (str, float)."""
    if not isinstance(vocabulary, list) or not vocabulary:
        raise DataError(f"{file}: model.vocab must be a list of pieces and scores")
    seen = {}
    for number, entry in enumerate(vocabulary):
        match entry:
            case [str(piece), int() | float()] if piece:
                if seen.setdefault(piece, number) != number:
                    raise DataError(f"{file}: model.vocab has '{piece}' twice, as {seen[piece]} and {number}")
            case _:
                raise DataError(f"{file}: model.vocab has {brief(entry)} as {number}, which is no piece and score")
    return [(piece, float(score)) for piece, score in vocabulary]


def _count_sentinels(pieces):
    """How many of the last pieces are <extra_id_n>, ..., <extra_id_0>."""
    count = 0
    while count < len(pieces) and pieces[-1 - count] == f"<extra_id_{count}>":
        count += 1
    return count


def _read_normalizer(normalizer, cleaned, file):
    """What the steps of a normalizer do, which must come in the order of Hugging Face's converters.

    Returns:
        (settings, charsmap, strips, joins): keyword arguments of SentencePieceTokenizer; bytes, the table of
        the model, b"" for none; whether white space at the end is dropped; whether several spaces become one.
    """
    steps = list(_flat(normalizer))

    def take(kind, accepted=lambda step: True):
        """The next step if it is such a one, else None."""
        return steps.pop(0) if steps and steps[0].get("type") == kind and accepted(steps[0]) else None

    settings = {}
    if cleaned:
        for quote in ("``", "''"):
            step = take("Replace")
            if step is None or _replaced(step) != ("String", quote, '"'):
                raise ConfigError(f'{file}: normalizer has {brief(step or steps[:1])} where {quote} must become "')
        decomposed, stripped = take("NFKD"), take("StripAccents")
        if bool(decomposed) != bool(stripped):
            raise ConfigError(f"{file}: normalizer has one of NFKD and StripAccents; only both or neither is supported")
        settings = {"lowercase": take("Lowercase") is not None, "keep_accents": not stripped, "split_digit_commas": False}
    table = (take("Precompiled") or {}).get("precompiled_charsmap") or ""
    where = f"{file}: normalizer.precompiled_charsmap"
    try:
        charsmap = base64.b64decode(table, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise DataError(f"{where} is no base64: {error}") from None
    check_charsmap(charsmap, where)
    strip = take("Strip", lambda step: not step.get("strip_left")) or {}
    joins = take("Replace", lambda step: _replaced(step) in _RUNS_OF_SPACES)
    if steps:
        raise ConfigError(f"{file}: normalizer has {brief(steps[0])}, which is not supported there")
    return settings, charsmap, bool(strip.get("strip_right")), joins is not None


def _flat(normalizer):
    """The members of a Sequence, and of Sequences in it."""
    if normalizer and normalizer.get("type") != "Sequence":
        yield normalizer
    for member in normalizer.get("normalizers") or ():
        yield from _flat(member)


def _replaced(step):
    """(kind of pattern, pattern, content) of a Replace."""
    pattern = step.get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        return None
    return *next(iter(pattern.items())), step.get("content")


def _pre_tokenization(whole, strips, joins):
    """The name in `pre_tokenization.PRE_TOKENIZATIONS` of how words are cut."""
    splitter = only_member(whole["pre_tokenizer"], "pretokenizers")
    members = splitter.get("pretokenizers") or [] if splitter.get("type") == "Sequence" else [splitter]
    kinds = tuple(member.get("type") for member in members)
    whole.expect("the types in pre_tokenizer", kinds, ("Metaspace",), ("WhitespaceSplit", "Metaspace"))
    metaspace = members[-1]
    whole.expect("pre_tokenizer.replacement", metaspace.get("replacement"), SPACE)
    before_2024 = "always" if metaspace.get("add_prefix_space", True) else "never"
    whole.expect("pre_tokenizer.prepend_scheme", metaspace.get("prepend_scheme", before_2024), "always")
    whole.expect("pre_tokenizer.split", metaspace.get("split", True), True)
    if len(kinds) == 2:
        return "words"
    if not joins:
        raise ConfigError(
            f"{whole.file}: neither normalizer nor pre_tokenizer joins several spaces into one; this is not supported"
        )
    return "stripped" if strips else "last_blank"
