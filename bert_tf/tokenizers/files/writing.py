"""Writes the files of tokenizer folders, which Hugging Face's libraries read too."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers.layout import build_layout


def write_wordpiece(tokenizer, folder):
    """Writes vocab.txt and tokenizer_config.json, and tokenizer.json where there is a normalization.

    Raises:
        DataError: a token that holds a line break.
        RunDirectoryError: the folder cannot be written.
    """
    for i, token in enumerate(tokenizer.vocabulary):
        if "\n" in token or "\r" in token:
            raise DataError(f"id {i} of the vocabulary holds a line break: {token!r}")
    with atomic_write(Path(folder) / "vocab.txt") as file:
        file.write("".join(f"{token}\n" for token in tokenizer.vocabulary))
    roles, normalization = tokenizer.role_tokens, tokenizer.normalization
    config = {
        "tokenizer_class": "BertTokenizer" if normalization is None else "PreTrainedTokenizerFast",
        "do_lower_case": tokenizer.lowercase,
        "strip_accents": tokenizer.strip_accents,
        "tokenize_chinese_chars": tokenizer.tokenize_chinese_chars,
        **{f"{role}_token": token for role, token in roles.items()},
        "additional_special_tokens": [t for t in tokenizer.special_tokens if t not in roles.values()],
    }
    if normalization is not None:
        config["normalization"] = normalization
        _write_wordpiece_json(tokenizer, folder)
    _write_config(config, folder)


def write_bpe(tokenizer, folder):
    """Writes vocab.json and merges.txt into `folder`."""
    folder = Path(folder)
    with atomic_write(folder / "vocab.json") as file:
        json.dump({token: i for i, token in enumerate(tokenizer.vocabulary)}, file, ensure_ascii=False)
    with atomic_write(folder / "merges.txt") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in tokenizer.merges))


def write_config(tokenizer, folder, settings):
    """Writes tokenizer_config.json: `settings`, the special tokens and the layout."""
    roles = {f"{role}_token": token for role, token in tokenizer.role_tokens.items()}
    added = {
        str(tokenizer.token_to_id(t.content)): {
            "content": t.content, "lstrip": t.lstrip, "rstrip": t.rstrip, "normalized": t.normalized,
            "single_word": False, "special": t.special,
        }
        for t in sorted(tokenizer.special_token_details, key=lambda t: tokenizer.token_to_id(t.content))
    }  # fmt: skip
    config = {**settings, **roles, "layout": tokenizer.layout_name, "added_tokens_decoder": added}
    _write_config(config, folder)


def _write_config(config, folder):
    with atomic_write(Path(folder) / "tokenizer_config.json") as file:
        json.dump(config, file, ensure_ascii=False, indent=2)
        file.write("\n")


def write_tokenizer_json(tokenizer, folder):
    """Writes a byte-level BPE as tokenizer.json, with its layout as the template.

    ModernBERT was published so: its tokenizer is neither GPT-2's nor RoBERTa's.

    Args:
        tokenizer: a `ByteLevelBPETokenizer`.
        folder: where the file is written.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """
    raw = Tokenizer(models.BPE({t: i for i, t in enumerate(tokenizer.vocabulary)}, list(tokenizer.merges)))
    if tokenizer.normalization is not None:
        raw.normalizer = getattr(normalizers, tokenizer.normalization.upper())()
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=tokenizer.add_prefix_space)
    raw.decoder = decoders.ByteLevel()
    for special, add in ((True, raw.add_special_tokens), (False, raw.add_tokens)):
        add(
            [
                AddedToken(t.content, lstrip=t.lstrip, rstrip=t.rstrip, normalized=t.normalized, special=special)
                for t in tokenizer.special_token_details
                if t.special == special
            ]
        )
    _write(raw, tokenizer, folder)


def _write_wordpiece_json(tokenizer, folder):
    """Writes a `WordPieceTokenizer` with a normalization as tokenizer.json."""
    model = models.WordPiece(
        {t: i for i, t in enumerate(tokenizer.vocabulary)},
        unk_token=tokenizer.role_tokens["unk"],
        continuing_subword_prefix="##",
        max_input_chars_per_word=100,
    )
    raw = Tokenizer(model)
    cleaning = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=tokenizer.tokenize_chinese_chars,
        strip_accents=tokenizer.strip_accents,
        lowercase=tokenizer.lowercase,
    )
    raw.normalizer = normalizers.Sequence([getattr(normalizers, tokenizer.normalization)(), cleaning])
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece(prefix="##")
    raw.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in tokenizer.special_tokens])
    _write(raw, tokenizer, folder)


def _write(raw, tokenizer, folder):
    raw.post_processor = _template(tokenizer)
    with atomic_write(Path(folder) / "tokenizer.json") as file:
        file.write(raw.to_str(pretty=True))


def _template(tokenizer):
    roles = tokenizer.role_tokens
    layout = build_layout(tokenizer.layout_name, roles.get("cls"), roles.get("sep"))
    first = [*layout.before_first, "$A", *layout.after_first]
    second = [f"{part}:{layout.second_segment}" for part in (*layout.before_second, "$B", *layout.after_second)]
    end = [f"{part}:{layout.end_segment}" for part in layout.at_end]
    named = [(roles[role], tokenizer.token_to_id(roles[role])) for role in ("cls", "sep") if role in roles]
    return processors.TemplateProcessing(single=[*first, *end], pair=[*first, *second, *end], special_tokens=named)
