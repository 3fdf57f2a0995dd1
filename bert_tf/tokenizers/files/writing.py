"""Writes the files of tokenizer folders, which Hugging Face's libraries read too.

tokenizer.json says everything, and tokenizer_config.json names the class that runs it as it is: the classes of single
families build a tokenizer by their own rules. The other files are for other readers, and for this library.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, processors

from bert_tf.errors import DataError
from bert_tf.files import atomic_write
from bert_tf.tokenizers.files.converting import ids_of
from bert_tf.tokenizers.files.tokenizer_config import CHECKSUM, CONFIG, WHOLE
from bert_tf.tokenizers.layout import START_TOKEN, WITH_SEGMENTS, build_layout
from bert_tf.types import StrPath

if TYPE_CHECKING:
    from bert_tf.tokenizers.bpe.merging import MergingTokenizer
    from bert_tf.tokenizers.tokenizer import Tokenizer

INPUTS = ("input_ids", "token_type_ids", "attention_mask")


def write_vocabulary(tokenizer: Tokenizer, folder: StrPath) -> None:
    """Writes vocab.txt; DataError for a token that holds a line break."""
    for i, token in enumerate(tokenizer.vocabulary):
        if "\n" in token or "\r" in token:
            raise DataError(f"id {i} of the vocabulary holds a line break: {token!r}")
    with atomic_write(Path(folder) / "vocab.txt") as file:
        file.write("".join(f"{token}\n" for token in tokenizer.vocabulary))


def write_bpe(tokenizer: MergingTokenizer, folder: StrPath) -> None:
    """Writes vocab.json and merges.txt."""
    with atomic_write(Path(folder) / "vocab.json") as file:
        json.dump(ids_of(tokenizer.vocabulary), file, ensure_ascii=False)
    with atomic_write(Path(folder) / "merges.txt") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in tokenizer.merges))


def write_config(tokenizer: Tokenizer, folder: StrPath, settings: dict[str, Any], converted: Any = None) -> None:
    """Writes tokenizer_config.json: `settings`, the special tokens, the layout and what the model is given.

    Args:
        settings: dict of the kind's own keys.
        converted: a `tokenizers.Tokenizer` without special tokens and layout, which become part of it: tokenizer.json. None
            for a kind that the package does not have.
    """
    folder, roles = Path(folder), tokenizer.role_tokens
    config = {"kind": tokenizer.kind, **settings, **{f"{role}_token": token for role, token in roles.items()}}
    if tokenizer.layout_name != "bert":
        ends = {"bos": "<s>", "eos": "</s>"} if tokenizer.layout_name == "xlnet" else {}
        for name, role in (("bos", "cls"), ("eos", "sep")):
            token = ends[name] if ends.get(name) in tokenizer.special_tokens else roles.get(role)
            config |= {f"{name}_token": token} if token else {}
    config["layout"] = tokenizer.layout_name
    segments = tokenizer.layout_name in WITH_SEGMENTS and tokenizer.layout.second_segment > 0
    config["model_input_names"] = model_inputs(segments)
    if tokenizer.layout.odd_to_longer:
        config["truncation_strategy"] = "longest_first"
    config["added_tokens_decoder"] = {
        str(tokenizer.token_to_id(t.content)): {
            "content": t.content, "lstrip": t.lstrip, "rstrip": t.rstrip, "normalized": t.normalized,
            "single_word": False, "special": t.special,
        }
        for t in sorted(tokenizer.special_token_details, key=lambda t: tokenizer.token_to_id(t.content) or 0)
    }  # fmt: skip
    if converted is not None:
        _complete(converted, tokenizer)
        content = converted.to_str(pretty=True)
        with atomic_write(folder / WHOLE) as file:
            file.write(content)
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        config[CHECKSUM] = hashlib.sha256(content.encode("utf-8")).hexdigest()
    with atomic_write(folder / CONFIG) as file:
        json.dump(config, file, ensure_ascii=False, indent=2)
        file.write("\n")


def model_inputs(segments: bool) -> list[str]:
    """`model_input_names` of tokenizer_config.json; `segments`: whether the model reads them."""
    return [name for name in INPUTS if segments or name != "token_type_ids"]


def _complete(converted, tokenizer):
    """Adds the special tokens, and the layout as a template."""
    for special, add in ((True, converted.add_special_tokens), (False, converted.add_tokens)):
        tokens = [t for t in tokenizer.special_token_details if t.special == special]
        add(
            [
                AddedToken(t.content, lstrip=t.lstrip, rstrip=t.rstrip, normalized=t.normalized, special=special)
                for t in tokens
            ]
        )
    roles: Any = tokenizer.role_tokens  # a layout of tokens in place of ids
    start: Any = START_TOKEN
    layout = build_layout(tokenizer.layout_name, roles.get("cls"), roles.get("sep"), start)
    first = [*layout.before_first, "$A", *layout.after_first]
    second = [f"{part}:{layout.second_segment}" for part in (*layout.before_second, "$B", *layout.after_second)]
    end = [f"{part}:{layout.end_segment}" for part in layout.at_end]
    used = (*layout.before_first, *layout.after_first, *layout.before_second, *layout.after_second, *layout.at_end)
    named = [(token, tokenizer.token_to_id(token)) for token in dict.fromkeys(used)]
    template = processors.TemplateProcessing(single=[*first, *end], pair=[*first, *second, *end], special_tokens=named)
    byte_processor = converted.post_processor  # of bytes: it leaves white space out of the offsets
    converted.post_processor = template if byte_processor is None else processors.Sequence([byte_processor, template])
