"""tokenizer.json of unigram models: ALBERT, XLNet and T5 as Hugging Face's converters write them."""

import base64
import binascii

from bert_tf.errors import ConfigError, DataError
from bert_tf.parsing import brief
from bert_tf.tokenizers.config_files import TokenizerConfig, added_token, extend_vocabulary
from bert_tf.tokenizers.sentencepiece import (
    FAMILIES,
    SPACE,
    SentencePieceTokenizer,
    check_charsmap,
    family_of,
    unigram_model,
)
from bert_tf.tokenizers.sentencepiece_loading import CLASSES, read_settings
from bert_tf.tokenizers.tokenizer_json_parts import Expectations, layout_name, only_member

_QUOTES = [("String", "``", '"'), ("String", "''", '"')]
_RUNS = (("Regex", " {2,}", " "), ("Regex", " {2,}", SPACE))


def load_unigram_json(path, file, whole):
    """The SentencePieceTokenizer of a tokenizer.json, with the ids of the `tokenizers` package.

    Two things differ from it. Special tokens that only normalization makes so, as full-width <s>,
    stay text here. And where accents are kept (always for T5), a character with marks behind it of 6
    bytes or more, as parted Korean syllables, is joined by SentencePiece's table, not there.

    Args:
        path: the file, or the folder that has it and perhaps tokenizer_config.json.
        file: of the tokenizer.json.
        whole: its content.

    Raises:
        ConfigError: a component or a setting that is not supported, with its name and value.
        DataError: a vocabulary that is none, or a table of characters that is none.
    """
    expect, model = Expectations(file), whole["model"]
    expect("model.byte_fallback", model.get("byte_fallback", False), False)
    scores = _scores(model.get("vocab"), file)
    added = [(added_token(t, f"{file}: added_tokens"), t["id"]) for t in whole.get("added_tokens") or ()]
    pieces = extend_vocabulary([piece for piece, _ in scores], {t.content: i for t, i in added}, file)
    for token, _ in added:
        if token.normalized:
            raise ConfigError(f"{file}: added_tokens has '{token.content}' with normalized = true, which is not supported")
    config = TokenizerConfig(file.parent) if path.is_dir() else None
    family = CLASSES.get(((config and config.tokenizer_class) or "").removesuffix("Fast")) or family_of(set(pieces))
    if family is None:
        raise ConfigError(f"{file}: its pieces are those of no known family ({', '.join(FAMILIES)})")
    roles = FAMILIES[family]["roles"]
    unknown = model.get("unk_id")
    if not isinstance(unknown, int) or not 0 <= unknown < len(scores) or pieces[unknown] != roles["unk"]:
        raise ConfigError(f"{file}: model.unk_id is {brief(unknown)}, which is not '{roles['unk']}', {family}'s")
    expect("post_processor", layout_name(whole.get("post_processor"), dict(roles), expect), FAMILIES[family]["layout"])
    expect("decoder.type", (whole.get("decoder") or {}).get("type"), None, "Metaspace")

    steps = _Steps(whole.get("normalizer"), file)
    settings = {}
    if FAMILIES[family]["cleaned"]:
        settings = steps.cleaning() | {"split_digit_commas": False}
    else:
        settings["extra_ids"] = _sentinels(pieces)
    charsmap = steps.charsmap()
    settings["conventions"] = _conventions(steps.white_space(), whole.get("pre_tokenizer"), expect)
    if config is not None:
        _check_config(config, family, settings, pieces)
    scores += [(piece, 0.0) for piece in pieces[len(scores) :]]
    control = {token.content for token, _ in added if token.special}
    content = unigram_model(scores[: len(scores) - settings.get("extra_ids", 0)], unknown, control, charsmap)
    try:
        return SentencePieceTokenizer(content, family, special_tokens=[token for token, _ in added], **settings)
    except (DataError, ConfigError) as error:
        raise type(error)(f"{file}: {error}") from None


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


def _sentinels(pieces):
    """How many of the last pieces are <extra_id_n>, ..., <extra_id_0>."""
    count = 0
    while count < len(pieces) and pieces[-1 - count] == f"<extra_id_{count}>":
        count += 1
    return count


class _Steps:
    """The members of a normalizer, taken from the first to the last; the next must be what is asked for."""

    def __init__(self, normalizer, file):
        self.file = file
        self._left = list(_flat(normalizer))

    def _take(self, kind):
        """The next member if it is of this kind, else None."""
        if self._left and self._left[0].get("type") == kind:
            return self._left.pop(0)
        return None

    def _refuse(self, step, wanted):
        raise ConfigError(f"{self.file}: normalizer has {step if isinstance(step, str) else brief(step)}{wanted}")

    def cleaning(self):
        """Keyword arguments of SentencePieceTokenizer."""
        for quote in _QUOTES:
            step = self._take("Replace")
            if _replaced(step) != quote:
                self._refuse(step or self._left[:1] or "nothing", f" where {quote[1]} must become {quote[2]}")
        decomposed, stripped = self._take("NFKD"), self._take("StripAccents")
        if bool(decomposed) != bool(stripped):
            self._refuse("one of NFKD and StripAccents", "; only both or neither is supported")
        return {"lowercase": self._take("Lowercase") is not None, "keep_accents": decomposed is None}

    def charsmap(self):
        """bytes: the table of the model, b"" for none."""
        step = self._take("Precompiled")
        try:
            table = base64.b64decode((step or {}).get("precompiled_charsmap") or "", validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise DataError(f"{self.file}: normalizer.precompiled_charsmap is no base64: {error}") from None
        check_charsmap(table, f"{self.file}: normalizer.precompiled_charsmap")
        return table

    def white_space(self):
        """(whether the end is stripped, whether runs of blanks become one); nothing may be left."""
        strip = self._take("Strip") or {}
        if strip.get("strip_left"):
            self._refuse(strip, "; only strip_left = false is supported")
        runs = self._take("Replace")
        if runs is not None and _replaced(runs) not in _RUNS:
            self._refuse(runs, "; only runs of blanks may be replaced there")
        for step in self._left:
            self._refuse(step, ", which is not supported there")
        return bool(strip.get("strip_right")), runs is not None


def _flat(normalizer):
    """The members of a Sequence, and of Sequences in it."""
    if normalizer is None:
        return
    if normalizer.get("type") != "Sequence":
        yield normalizer
        return
    for member in normalizer.get("normalizers") or ():
        yield from _flat(member)


def _replaced(step):
    """(kind of pattern, pattern, content) of a Replace."""
    pattern = (step or {}).get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        return None
    kind, text = next(iter(pattern.items()))
    return kind, text, step.get("content")


def _conventions(white_space, splitter, expect):
    """The name in `CONVENTIONS` of how words are cut."""
    strips, joins = white_space
    splitter = only_member(splitter, "pretokenizers") or {}
    members = splitter.get("pretokenizers") or [] if splitter.get("type") == "Sequence" else [splitter]
    kinds = tuple(member.get("type") for member in members)
    expect("the types in pre_tokenizer", kinds, ("Metaspace",), ("WhitespaceSplit", "Metaspace"))
    metaspace = members[-1]
    expect("pre_tokenizer.replacement", metaspace.get("replacement"), SPACE)
    before_2024 = "always" if metaspace.get("add_prefix_space", True) else "never"
    expect("pre_tokenizer.prepend_scheme", metaspace.get("prepend_scheme", before_2024), "always")
    expect("pre_tokenizer.split", metaspace.get("split", True), True)
    if len(kinds) == 2:
        return "words"
    if not joins:
        raise ConfigError(
            f"{expect.file}: neither normalizer nor pre_tokenizer makes one of several blanks; this is not supported"
        )
    return "stripped" if strips else "last_blank"


def _check_config(config, family, settings, pieces):
    """Refuses a tokenizer_config.json that says something else than tokenizer.json."""
    found = read_settings(config, family, settings)
    for key, value in found.items():
        if value != settings[key]:
            raise ConfigError(f"{config.path}: {key} is {value!r}, but tokenizer.json has {settings[key]!r}")
    for token, token_id in config.ids.items():
        if not 0 <= token_id < len(pieces) or pieces[token_id] != token:
            raise ConfigError(f"{config.path} gives '{token}' the id {token_id}, which tokenizer.json does not")
