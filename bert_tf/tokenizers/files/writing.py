"""Writes the files of tokenizer folders, which Hugging Face's libraries read too."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers.layout import START_TOKEN, build_layout


def write_vocabulary(tokenizer, folder):
    """Writes vocab.txt; DataError for a token that holds a line break."""
    for i, token in enumerate(tokenizer.vocabulary):
        if "\n" in token or "\r" in token:
            raise DataError(f"id {i} of the vocabulary holds a line break: {token!r}")
    with atomic_write(Path(folder) / "vocab.txt") as file:
        file.write("".join(f"{token}\n" for token in tokenizer.vocabulary))


def write_bpe(tokenizer, folder):
    """Writes vocab.json and merges.txt."""
    with atomic_write(Path(folder) / "vocab.json") as file:
        json.dump(_ids(tokenizer), file, ensure_ascii=False)
    with atomic_write(Path(folder) / "merges.txt") as file:
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
    with atomic_write(Path(folder) / "tokenizer_config.json") as file:
        json.dump(config, file, ensure_ascii=False, indent=2)
        file.write("\n")


def write_byte_level_bpe_json(tokenizer, folder):
    """Writes a `ByteLevelBPETokenizer` as tokenizer.json, as ModernBERT's was published."""
    whole = Tokenizer(models.BPE(_ids(tokenizer), list(tokenizer.merges)))
    if tokenizer.normalization is not None:
        whole.normalizer = getattr(normalizers, tokenizer.normalization)()
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=tokenizer.add_prefix_space)
    whole.decoder = decoders.ByteLevel()
    _write_json(whole, tokenizer, folder)


def write_wordpiece_json(tokenizer, folder):
    """Writes a `WordPieceTokenizer` with a normalization as tokenizer.json."""
    settings = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    whole = Tokenizer(models.WordPiece(_ids(tokenizer), unk_token=tokenizer.role_tokens["unk"], **settings))
    cleaning = normalizers.BertNormalizer(
        handle_chinese_chars=tokenizer.tokenize_chinese_chars,
        strip_accents=tokenizer.strip_accents,
        lowercase=tokenizer.lowercase,
    )
    whole.normalizer = normalizers.Sequence([getattr(normalizers, tokenizer.normalization)(), cleaning])
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    whole.decoder = decoders.WordPiece(prefix="##")
    _write_json(whole, tokenizer, folder)


def _ids(tokenizer):
    return {token: i for i, token in enumerate(tokenizer.vocabulary)}


def _write_json(whole, tokenizer, folder):
    """Adds the special tokens and the layout, as a template, and writes tokenizer.json."""
    for special, add in ((True, whole.add_special_tokens), (False, whole.add_tokens)):
        tokens = [t for t in tokenizer.special_token_details if t.special == special]
        add(
            [
                AddedToken(t.content, lstrip=t.lstrip, rstrip=t.rstrip, normalized=t.normalized, special=special)
                for t in tokens
            ]
        )
    roles = tokenizer.role_tokens
    layout = build_layout(tokenizer.layout_name, roles.get("cls"), roles.get("sep"), START_TOKEN)
    first = [*layout.before_first, "$A", *layout.after_first]
    second = [f"{part}:{layout.second_segment}" for part in (*layout.before_second, "$B", *layout.after_second)]
    end = [f"{part}:{layout.end_segment}" for part in layout.at_end]
    used = (*layout.before_first, *layout.after_first, *layout.before_second, *layout.after_second, *layout.at_end)
    named = [(token, tokenizer.token_to_id(token)) for token in dict.fromkeys(used)]
    whole.post_processor = processors.TemplateProcessing(
        single=[*first, *end], pair=[*first, *second, *end], special_tokens=named
    )
    with atomic_write(Path(folder) / "tokenizer.json") as file:
        file.write(whole.to_str(pretty=True))
