"""The `tokenizers.Tokenizer` that computes what a tokenizer of each kind computes, without special tokens and layout.

`writing.write_config` adds these two and writes it as tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bert_tf.tokenizers.bpe.gpt2_words import byte_alphabet
from bert_tf.tokenizers.character_tables import combining_characters, ranges_of, white_space_of_python
from bert_tf.tokenizers.sentencepiece.families import FAMILIES
from bert_tf.tokenizers.sentencepiece.model_file import SPACE, byte_pieces, parse_model

if TYPE_CHECKING:
    from bert_tf.tokenizers.bpe.bpe import BPETokenizer
    from bert_tf.tokenizers.bpe.byte_level_bpe import ByteLevelBPETokenizer
    from bert_tf.tokenizers.byte.byte import ByteTokenizer
    from bert_tf.tokenizers.sentencepiece.sentencepiece import SentencePieceTokenizer
    from bert_tf.tokenizers.wordpiece.wordpiece import WordPieceTokenizer


def byte_level_bpe(tokenizer: ByteLevelBPETokenizer) -> Any:
    """The `tokenizers.Tokenizer` of a `ByteLevelBPETokenizer`; see above."""
    converted = Tokenizer(models.BPE(ids_of(tokenizer.vocabulary), list(tokenizer.merges)))
    if tokenizer.normalization is not None:
        converted.normalizer = getattr(normalizers, tokenizer.normalization)()
    return _of_bytes(converted, tokenizer.add_prefix_space)


def bytes_alone(tokenizer: ByteTokenizer) -> Any:
    """The `tokenizers.Tokenizer` of a `ByteTokenizer`, whose bytes are spelled as GPT-2 spells them."""
    spelled = dict(enumerate(byte_alphabet(), tokenizer.vocabulary.index("<0x00>")))
    vocabulary = {spelled.get(i, token): i for i, token in enumerate(tokenizer.vocabulary)}
    return _of_bytes(Tokenizer(models.BPE(vocabulary, [])), add_prefix_space=False)


def _of_bytes(converted, add_prefix_space):
    converted.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    converted.post_processor = processors.ByteLevel(add_prefix_space=add_prefix_space, trim_offsets=True)
    converted.decoder = decoders.ByteLevel()
    return converted


def bpe(tokenizer: BPETokenizer) -> Any:
    """The `tokenizers.Tokenizer` of a `BPETokenizer`; see above."""
    suffix = tokenizer.end_of_word
    settings = {"end_of_word_suffix": suffix} if suffix else {}
    unknown = tokenizer.role_tokens["unk"]
    converted = Tokenizer(
        models.BPE(ids_of(tokenizer.vocabulary), list(tokenizer.merges), unk_token=unknown, **settings)
    )
    if tokenizer.cleaning == "gpt1":
        converted.normalizer = normalizers.BertNormalizer(lowercase=True)
        converted.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    else:
        split = {"plain": pre_tokenizers.WhitespaceSplit, "words": pre_tokenizers.Whitespace}[tokenizer.cleaning]
        converted.pre_tokenizer = split()
    if suffix:
        converted.decoder = decoders.BPEDecoder(suffix=suffix)
    return converted


def wordpiece(tokenizer: WordPieceTokenizer) -> Any:
    """The `tokenizers.Tokenizer` of a `WordPieceTokenizer`; see above."""
    settings = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    converted = Tokenizer(
        models.WordPiece(ids_of(tokenizer.vocabulary), unk_token=tokenizer.role_tokens["unk"], **settings)
    )
    cleaning = normalizers.BertNormalizer(
        handle_chinese_chars=tokenizer.tokenize_chinese_chars,
        strip_accents=tokenizer.strip_accents,
        lowercase=tokenizer.lowercase,
    )
    if tokenizer.normalization is None:
        converted.normalizer = cleaning
    else:
        converted.normalizer = normalizers.Sequence([getattr(normalizers, tokenizer.normalization)(), cleaning])
    converted.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    converted.decoder = decoders.WordPiece(prefix="##")
    return converted


def unigram(tokenizer: SentencePieceTokenizer) -> Any:
    """The `tokenizers.Tokenizer` of a `SentencePieceTokenizer`; None for a model that is not a unigram model.

    Its own way of cutting words ("authors") is spelled with the steps that the package has. Two things it has not:
    `split_digit_commas`, and where accents are kept (T5 always) the marks of a letter stay in their order, as in
    SentencePiece, but a letter and a mark between which another stands are joined.
    """
    proto = parse_model(tokenizer.model)
    if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
        return None
    scores = {piece.piece: piece.score for piece in proto.pieces}
    pieces = [(token, scores.get(token, 0.0)) for token in tokenizer.vocabulary]
    converted = Tokenizer(models.Unigram(pieces, unk_id=tokenizer.unk_id, byte_fallback=bool(byte_pieces(proto))))
    charsmap = proto.normalizer_spec.precompiled_charsmap
    converted.normalizer = normalizers.Sequence(
        [*_cleaning(tokenizer), *([normalizers.Precompiled(charsmap)] if charsmap else []), *_white_space(tokenizer)]
    )
    metaspace = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
    first = {"authors": pre_tokenizers.Split(" ", "removed"), "words": pre_tokenizers.WhitespaceSplit()}
    splitters = [first[tokenizer.pre_tokenization]] if tokenizer.pre_tokenization in first else []
    converted.pre_tokenizer = pre_tokenizers.Sequence([*splitters, metaspace]) if splitters else metaspace
    converted.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    return converted


def _cleaning(tokenizer):
    """The steps before the model's own table of characters."""
    authors = tokenizer.pre_tokenization == "authors"
    steps: list[Any] = []
    if FAMILIES[tokenizer.family]["cleaned"]:
        steps += [normalizers.Replace(quotes, '"') for quotes in ("``", "''")]
        if authors:
            steps.append(normalizers.Replace(Regex(WHITE_SPACE), " "))
        if not tokenizer.keep_accents:
            steps.append(normalizers.NFKD())
            steps.append(normalizers.Replace(Regex(COMBINING), "") if authors else normalizers.StripAccents())
        if tokenizer.lowercase:
            steps.append(normalizers.Lowercase())
    # The package looks up groups of less than 6 bytes in that table, SentencePiece groups of any length: composed
    # characters, Korean syllables among them, are the same to both.
    return [*steps, normalizers.NFC()] if authors else steps


def _white_space(tokenizer):
    steps = {"stripped": [normalizers.Strip(left=False)], "last_blank": []}.get(tokenizer.pre_tokenization)
    return [] if steps is None else [*steps, normalizers.Replace(Regex(" {2,}"), " ")]


def ids_of(vocabulary: Sequence[str]) -> dict[str, int]:
    """Token -> id of a whole vocabulary."""
    return {token: i for i, token in enumerate(vocabulary)}


#: What is a space to ALBERT's and XLNet's authors, and what they drop: see `sentencepiece_characters`.
WHITE_SPACE, COMBINING = f"[{ranges_of(white_space_of_python())}]", f"[{ranges_of(combining_characters())}]"
