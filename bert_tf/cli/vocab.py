"""Train a subword vocabulary on a corpus.

The corpus is .txt (a blank line between documents), .jsonl (a "text" field), either with .gz,
folders and globs of them. The kinds, and the families that use them:
  wordpiece       BERT, ELECTRA, DistilBERT, SpanBERT
  byte_level_bpe  RoBERTa, GPT-2: every text in any script, no unknown tokens
  bpe             GPT-1: lowercased words with an end mark
  unigram         SentencePiece for ALBERT; unigram_xlnet for XLNet

example:
  bert-tf vocab corpus/ --output tokenizer --size 30522
  bert-tf vocab korean/*.jsonl --output tokenizer --size 32000 --cased
  bert-tf vocab chinese/ --output tokenizer --size 21128 --alphabet 8000
  bert-tf vocab corpus/ --output tokenizer --size 50265 --kind byte_level_bpe

in Python:
  from bert_tf.tokenizers import train_wordpiece
  from tfrecords.corpus import read_texts
  train_wordpiece(read_texts(["corpus/"]), 30522, lowercase=True).save("tokenizer")
"""

KINDS = ("wordpiece", "byte_level_bpe", "bpe", "unigram", "unigram_xlnet")


def add_arguments(parser):
    parser.add_argument("corpus", nargs="+", help="files, folders or globs of text")
    parser.add_argument("--output", required=True, help="folder for the tokenizer")
    parser.add_argument("--size", type=int, default=30522, help="entries of the vocabulary (default %(default)s)")
    parser.add_argument("--kind", choices=KINDS, default="wordpiece", help="of subwords (default %(default)s)")
    parser.add_argument(
        "--cased",
        action="store_true",
        help="wordpiece and unigram: keep case and accents; Hangul then stays in whole syllables",
    )
    parser.add_argument(
        "--alphabet",
        type=int,
        metavar="N",
        help="wordpiece and bpe: keep so many kinds of characters, the most frequent; the others are unknown (default "
        "1000, or as many as cover 99.995%% of the text, up to a third of --size)",
    )
    parser.add_argument("--text-field", default="text", help="the .jsonl field that holds the text")
    parser.add_argument("--replace-invalid", action="store_true", help="replace bytes that are not UTF-8")


def run(arguments):
    from bert_tf import tokenizers
    from bert_tf.errors import ConfigError
    from tfrecords.corpus import read_texts

    kind, size, cased = arguments.kind, arguments.size, arguments.cased
    if cased and kind in ("byte_level_bpe", "bpe"):
        always = "keeps case always" if kind == "byte_level_bpe" else "lowercases, as GPT-1 did"
        raise ConfigError(f"--cased is for wordpiece and unigram; {kind} {always}")
    if arguments.alphabet is not None and kind not in ("wordpiece", "bpe"):
        raise ConfigError(f"--alphabet is for wordpiece and bpe, not for {kind}")
    texts = read_texts(
        arguments.corpus,
        text_field=arguments.text_field,
        errors="replace" if arguments.replace_invalid else "strict",
    )
    if kind == "wordpiece":
        tokenizer = tokenizers.train_wordpiece(texts, size, lowercase=not cased, limit_alphabet=arguments.alphabet)
    elif kind == "byte_level_bpe":
        tokenizer = tokenizers.train_byte_level_bpe(texts, size)
    elif kind == "bpe":
        tokenizer = tokenizers.train_bpe(texts, size, cleaning="gpt1", limit_alphabet=arguments.alphabet)
    else:
        family = kind.partition("_")[2] or "albert"
        tokenizer = tokenizers.train_unigram(texts, size, family=family, lowercase=False if cased else None, keep_accents=cased)
    tokenizer.save(arguments.output)
    print(f"{tokenizer.vocabulary_size:,} tokens in {arguments.output}")
