"""Tables of characters, each with what becomes of it before BPE and unigram models see the text."""

import functools
import unicodedata

from bert_tf.tokenizers.characters import cleaned_characters, punctuation


def white_space():
    """The characters that Unicode calls White_Space."""
    return frozenset(c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f")


@functools.lru_cache(maxsize=1)
def gpt1_characters():
    """Cleaned as for an uncased BERT, a blank on either side of each punctuation mark.

    Source: what Hugging Face's OpenAIGPTTokenizer does. (GPT-1's authors cleaned with ftfy and
    split with spaCy, which no graph can.)
    """
    spaced = str.maketrans({c: f" {c} " for c in punctuation()})
    table = {c: c.translate(spaced) for c in punctuation()}
    for character, result in cleaned_characters(True, True, True).items():
        table[character] = result.translate(spaced)
    return table


@functools.lru_cache(maxsize=1)
def plain_characters():
    """White space becomes a blank; all else stays."""
    return {c: " " for c in white_space()}


@functools.lru_cache(maxsize=4)
def sentencepiece_characters(lowercase, keep_accents):
    """What ALBERT's and XLNet's authors do to the text before SentencePiece sees it.

    White space of Python's `str.split` becomes a blank; without `keep_accents` characters are
    decomposed (NFKD) and combining ones dropped; with `lowercase` they are lowercased, each by
    itself: a capital sigma at the end of a word becomes σ, where Python's `lower` has ς.

    Source: preprocess_text of google-research/albert tokenization.py and zihangdai/xlnet
    prepro_utils.py.
    """
    table = {}
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000))):
        result = " " if character.isspace() else character
        if not keep_accents:
            result = "".join(c for c in unicodedata.normalize("NFKD", result) if not unicodedata.combining(c))
        if lowercase:
            result = "".join(c.lower() for c in result)
        if result != character:
            table[character] = result
    return table
