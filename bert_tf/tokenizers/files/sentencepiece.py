"""SentencePiece from disk: spiece.model, or the tokenizer.json that Hugging Face's converters write.

A tokenizer.json becomes a SentencePiece model, which the one `SentencePieceTokenizer` runs; `pre_tokenization` says
what the `tokenizers` package does with white space, which such a model cannot.
"""

from pathlib import Path

from bert_tf.errors import ConfigError, DataError
from bert_tf.files import explain_reading
from bert_tf.parsing import brief
from bert_tf.tokenizers.files.converting import COMBINING, WHITE_SPACE
from bert_tf.tokenizers.files.tokenizer_config import TokenizerConfig, add_path_to_errors
from bert_tf.tokenizers.files.tokenizer_json import TokenizerJson, charsmap_of, members
from bert_tf.tokenizers.sentencepiece.families import FAMILIES, check_family, family_of, family_tokens, sentinels
from bert_tf.tokenizers.sentencepiece.model_file import SPACE, pieces_of, unigram_model
from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer
from bert_tf.types import StrPath

_CLASSES = {settings["class"]: family for family, settings in FAMILIES.items()}
_SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
_RUNS_OF_SPACES = (({"Regex": " {2,}"}, " "), ({"Regex": " {2,}"}, SPACE))


def load_sentencepiece(path: StrPath, lowercase: bool | None = None) -> SentencePieceTokenizer:
    """A SentencePieceTokenizer of a folder or a model file; see `load_tokenizer`."""
    path = Path(path)
    file = _model_file(path) if path.is_dir() else path
    with explain_reading(file):
        model = file.read_bytes()
    with add_path_to_errors(file):
        pieces = pieces_of(model)
    config = TokenizerConfig(path)
    family = _family(config, pieces, file)
    default = FAMILIES[family]
    settings = {"pre_tokenization": config.take("conventions", "authors", str)}
    if default["cleaned"]:
        settings["lowercase"] = config.take("do_lower_case", default["lowercase"], bool)
        settings["keep_accents"] = config.take("keep_accents", False, bool)
        settings["split_digit_commas"] = config.take("split_digit_commas", True, bool)
    else:
        settings["extra_ids"] = config.take("extra_ids", default["extra_ids"], int)
    config.finish()
    if lowercase is not None:
        settings["lowercase"] = lowercase
    extra_ids = settings.get("extra_ids", 0)
    config.check_ids([*pieces, *sentinels(extra_ids)], file)
    special = config.special_tokens(family_tokens(family, extra_ids))
    with add_path_to_errors(file):
        return SentencePieceTokenizer(model, family, special_tokens=special, **settings)


def _model_file(folder):
    """The path of a folder's SentencePiece model; DataError if there are several, none of them spiece.model."""
    if (folder / "spiece.model").exists():
        return folder / "spiece.model"
    files = sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if len(files) > 1:
        raise DataError(f"{folder} has several SentencePiece models: {', '.join(p.name for p in files)}; name one")
    return files[0]


def _family(config, pieces, file):
    """The family that a `TokenizerConfig` names, or else the pieces; its fixed settings are taken."""
    family = config.take("family", None, (str, type(None)))
    if family is None:
        family = _CLASSES.get((config.tokenizer_class or "").removesuffix("Fast")) or family_of(pieces, file)
    check_family(family)
    config.check_roles(FAMILIES[family]["roles"], family)
    config.check_fixed(layout=FAMILIES[family]["layout"], remove_space=True, legacy=True, add_prefix_space=True)
    return family


def load_unigram_json(json_file: TokenizerJson, lowercase: bool | None = None) -> SentencePieceTokenizer:
    """A SentencePieceTokenizer of a `TokenizerJson`, with the ids of the `tokenizers` package.

    Two things differ from it. Special tokens that only normalization makes so, as full-width <s>, stay text here. And
    where accents are kept (always for T5), a character followed by marks of 6 bytes or more, as decomposed Korean
    syllables, is joined by SentencePiece's table, not there.

    Raises:
        ConfigError: a component or a setting that is not supported, with its name and value.
        DataError: a piece that stands twice, or a broken table of characters.
    """
    file, model, config = json_file.file, json_file.model, json_file.config
    if lowercase is not None:
        raise ConfigError(f"lowercase={lowercase}: {file} says itself whether text is lowercased")
    json_file.expect("model.byte_fallback", model.get("byte_fallback", False), False)
    pieces = [piece for piece, _ in model["vocab"]]
    if len(set(pieces)) < len(pieces):
        twice = next(piece for number, piece in enumerate(pieces) if piece in pieces[:number])
        raise DataError(f"{file}: model.vocab has '{twice}' twice; remove one")
    scores = [(piece, float(score)) for piece, score in model["vocab"]]
    pieces = json_file.add_tokens(pieces)
    for token, _ in json_file.added:
        if token.normalized:
            raise ConfigError(
                f"{file}: added_tokens has '{token.content}' with normalized = true, which is not supported for "
                "SentencePiece; add it as AddedToken(..., normalized=False)"
            )
    family = _family(config, pieces, file)
    default = FAMILIES[family]
    unknown = model.get("unk_id")
    if unknown is None or pieces[unknown] != default["roles"]["unk"]:
        raise ConfigError(
            f"{file}: model.unk_id is {brief(unknown)}, which is not '{default['roles']['unk']}', {family}'s"
        )
    layout = json_file.layout(dict(default["roles"]))
    if layout != default["layout"]:
        raise ConfigError(
            f"{file}: post_processor is '{layout}'; only '{default['layout']}' is supported, {family}'s: set the "
            "post_processor to its TemplateProcessing, and save the file again"
        )
    json_file.expect("decoder.type", json_file["decoder"].get("type"), None, "Metaspace")

    splitters = members(json_file["pre_tokenizer"], "pretokenizers")
    by_this_library = splitters[:1] == [_SPLIT]  # as `save` writes SentencePiece's own way
    settings, charsmap, strips, joins = _read_normalizer(
        json_file["normalizer"], default["cleaned"], by_this_library, file
    )
    settings["pre_tokenization"] = _pre_tokenization(json_file, splitters, strips, joins)
    if not default["cleaned"]:
        settings["extra_ids"] = _count_sentinels(pieces)
    names = {"pre_tokenization": "conventions", "lowercase": "do_lower_case"}
    config.take("split_digit_commas", None, (bool, type(None)))  # which no tokenizer.json has
    config.check_fixed(**{names.get(key, key): value for key, value in settings.items() if key != "split_digit_commas"})
    config.finish()
    config.check_ids(pieces, file)
    scores += [(piece, 0.0) for piece in pieces[len(scores) :]]
    control = {token.content for token, _ in json_file.added if token.special}
    content = unigram_model(scores[: len(scores) - settings.get("extra_ids", 0)], unknown, control, charsmap)
    with add_path_to_errors(file):
        return SentencePieceTokenizer(
            content, family, special_tokens=[token for token, _ in json_file.added], **settings
        )


def _count_sentinels(pieces):
    """How many of the last pieces are <extra_id_n>, ..., <extra_id_0>."""
    count = 0
    while count < len(pieces) and pieces[-1 - count] == f"<extra_id_{count}>":
        count += 1
    return count


def _read_normalizer(normalizer, cleaned, by_this_library, file):
    """What the steps of a normalizer do, which must come in the order of Hugging Face's converters, or with
    `by_this_library` in that of `converting.unigram`.

    Returns:
        (settings, charsmap, strips, joins): keyword arguments of SentencePieceTokenizer; bytes, the table of
        the model, b"" for none; whether white space at the end is dropped; whether several spaces become one.
    """
    steps = members(normalizer, "normalizers")

    def take(type_, accepted=lambda step: True):
        """The next step if it is such a one, else None."""
        return steps.pop(0) if steps and steps[0]["type"] == type_ and accepted(steps[0]) else None

    settings = {}
    if cleaned:
        for quote in ("``", "''"):
            step = take("Replace")
            if step is None or (step["pattern"], step["content"]) != ({"String": quote}, '"'):
                raise ConfigError(f'{file}: normalizer has {brief(step or steps[:1])} where {quote} must become "')
        if by_this_library:
            take("Replace", lambda step: (step["pattern"], step["content"]) == ({"Regex": WHITE_SPACE}, " "))
        decomposed = take("NFKD")
        stripped = take("Replace", lambda step: step["pattern"] == {"Regex": COMBINING}) or take("StripAccents")
        if bool(decomposed) != bool(stripped):
            raise ConfigError(f"{file}: normalizer has one of NFKD and StripAccents; only both or neither is supported")
        settings = {
            "lowercase": take("Lowercase") is not None,
            "keep_accents": not stripped,
            "split_digit_commas": False,
        }
    if by_this_library:
        take("NFC")
    charsmap = charsmap_of(take("Precompiled") or {}, f"{file}: normalizer")
    strip = take("Strip", lambda step: not step["strip_left"]) or {}
    joins = take("Replace", lambda step: (step["pattern"], step["content"]) in _RUNS_OF_SPACES)
    if steps:
        raise ConfigError(f"{file}: normalizer has {brief(steps[0])}, which is not supported there")
    return settings, charsmap, strip.get("strip_right", False), joins is not None


def _pre_tokenization(json_file, splitters, strips, joins):
    """The name in `pre_tokenization.PRE_TOKENIZATIONS` of how words are cut."""
    types = tuple(splitter["type"] for splitter in splitters)
    supported = [("Metaspace",), ("WhitespaceSplit", "Metaspace")]
    json_file.expect(
        "the types in pre_tokenizer", types, *supported, *([("Split", "Metaspace")] if splitters[0] == _SPLIT else [])
    )
    metaspace = splitters[-1]
    json_file.expect("pre_tokenizer.replacement", metaspace["replacement"], SPACE)
    before_2024 = "always" if metaspace.get("add_prefix_space", True) else "never"
    json_file.expect("pre_tokenizer.prepend_scheme", metaspace.get("prepend_scheme", before_2024), "always")
    json_file.expect("pre_tokenizer.split", metaspace.get("split", True), True)
    if len(types) == 2:
        return "authors" if splitters[0] == _SPLIT else "words"
    if not joins:
        raise ConfigError(
            f"{json_file.file}: neither normalizer nor pre_tokenizer joins several spaces into one; this is not supported"
        )
    return "stripped" if strips else "last_blank"
