"""tokenizer.json: the only file from which transformers opens a tokenizer without a class of its own."""

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors


def write_tokenizer_json(tokenizer, folder):
    """Writes a byte-level BPE as tokenizer.json, with [CLS] and [SEP] (or what they are called) around.

    ModernBERT was published so: its tokenizer is neither GPT-2's nor RoBERTa's.

    Args:
        tokenizer: a `ByteLevelBPETokenizer`.
        folder: where the file is written.
    """
    raw = Tokenizer(models.BPE({t: i for i, t in enumerate(tokenizer.vocabulary)}, list(tokenizer.merges)))
    if tokenizer.normalization is not None:
        raw.normalizer = getattr(normalizers, tokenizer.normalization.upper())()
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=tokenizer.add_prefix_space)
    raw.decoder = decoders.ByteLevel()
    cls, sep = tokenizer.role_tokens["cls"], tokenizer.role_tokens["sep"]
    raw.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B {sep}",
        special_tokens=[(cls, tokenizer.cls_id), (sep, tokenizer.sep_id)],
    )
    raw.add_special_tokens(
        [
            AddedToken(t.content, lstrip=t.lstrip, rstrip=t.rstrip, normalized=t.normalized)
            for t in tokenizer.special_token_details
        ]
    )
    raw.save(str(Path(folder) / "tokenizer.json"))
