"""Train a subword vocabulary on a corpus.

The corpus is .txt (a blank line between documents), .jsonl (a "text" field), .tsv or .csv (a column),
each also with .gz, or .parquet, folders and globs of them. The folder of the tokenizer is written whole
or not at all. The kinds, and the families that use them:
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
  from tfrecords import read_texts
  train_wordpiece(read_texts(["corpus/"]), 30522, lowercase=True).save("tokenizer")
"""

import os
from pathlib import Path

KINDS = ("wordpiece", "byte_level_bpe", "bpe", "unigram", "unigram_xlnet")
#: What the tokenizers of these kinds write.
TOKENIZER_FILES = ("tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "tokenizer.json")


def add_arguments(parser):
    parser.add_argument("corpus", nargs="+", help="files, folders or globs of text")
    parser.add_argument("--output", required=True, help="folder for the tokenizer")
    parser.add_argument("--size", type=int, default=30522, help="entries of the vocabulary (default %(default)s)")
    parser.add_argument("--kind", choices=KINDS, default="wordpiece", help="of subwords (default %(default)s)")
    parser.add_argument(
        "--cased",
        action="store_true",
        help="wordpiece and unigram: keep case and accents; Hangul then stays in whole syllables, decomposed "
        "text (as macOS writes it) is composed",
    )
    parser.add_argument(
        "--alphabet",
        type=int,
        metavar="N",
        help="wordpiece and bpe: keep so many kinds of characters, the most frequent; the others are unknown (default "
        "1000, or as many as cover 99.995%% of the text, up to a third of --size)",
    )
    parser.add_argument(
        "--text-field",
        default="text",
        metavar="NAME",
        help="the .jsonl field or the column that holds the text (default text, or the one column of a usual name); a "
        "number from 0 for a .tsv or .csv without a header",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the tokenizer that is there")
    parser.add_argument("--replace-invalid", action="store_true", help="replace bytes that are not UTF-8")


def run(arguments):
    from bert_tf.cli.child import run_in_child
    from bert_tf.errors import ConfigError

    kind, cased = arguments.kind, arguments.cased
    if cased and kind in ("byte_level_bpe", "bpe"):
        always = "keeps case always" if kind == "byte_level_bpe" else "lowercases, as GPT-1 did"
        raise ConfigError(f"--cased is for wordpiece and unigram; {kind} {always}")
    if arguments.alphabet is not None and kind not in ("wordpiece", "bpe"):
        raise ConfigError(f"--alphabet is for wordpiece and bpe, not for {kind}")
    _check_output(arguments)
    # The trainers are long calls of C++ and Rust, during which Python can neither answer a signal nor show progress.
    return run_in_child(lambda report: _train(arguments, report), f"training the vocabulary ({kind})")


def _check_output(arguments):
    """Refuses a folder that holds anything, but for a tokenizer that is to be overwritten."""
    from bert_tf.errors import RunDirectoryError

    output = Path(arguments.output)
    if output.is_file():
        raise RunDirectoryError(f"{output} is a file; choose another folder")
    try:
        names = sorted(os.listdir(output))
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunDirectoryError(f"cannot read {output}: {error.strerror}") from None
    if not names:
        return
    if not arguments.overwrite:
        what = "holds a tokenizer" if "tokenizer_config.json" in names else "is not empty"
        how = "choose another folder" + ", or replace it with --overwrite" * (what != "is not empty")
        raise RunDirectoryError(f"{output} {what}; {how}")
    others = [name for name in names if name not in TOKENIZER_FILES]
    if others or "tokenizer_config.json" not in names:
        raise RunDirectoryError(
            f"{output} holds {others[0] if others else names[0]}, which is not of a tokenizer that this command wrote; "
            "--overwrite replaces nothing else, choose another folder"
        )


def _train(arguments, report):
    """Trains and saves; `report(done, total)` is told of bytes that are read."""
    from bert_tf import tokenizers
    from bert_tf.files import atomic_folder
    from tfrecords.corpus.documents import CorpusReader
    from tfrecords.corpus.files import find_files

    kind, size, cased, output = arguments.kind, arguments.size, arguments.cased, arguments.output
    files = find_files(arguments.corpus)
    reader = CorpusReader(files, arguments.text_field, "replace" if arguments.replace_invalid else "strict")
    texts = _reported(reader, sum(file.bytes for file in files), report)
    if kind == "wordpiece":
        tokenizer = tokenizers.train_wordpiece(texts, size, lowercase=not cased, limit_alphabet=arguments.alphabet)
    elif kind == "byte_level_bpe":
        tokenizer = tokenizers.train_byte_level_bpe(texts, size)
    elif kind == "bpe":
        tokenizer = tokenizers.train_bpe(texts, size, cleaning="gpt1", limit_alphabet=arguments.alphabet)
    else:
        family = kind.partition("_")[2] or "albert"
        tokenizer = tokenizers.train_unigram(texts, size, family=family, lowercase=False if cased else None, keep_accents=cased)
    _check_output(arguments)  # which may have been written meanwhile
    with atomic_folder(output, replace=arguments.overwrite) as temporary:
        tokenizer.save(temporary)
    print(f"{tokenizer.vocabulary_size:,} tokens in {output}")
    jamo = sum(any("\u1100" <= c <= "\u11ff" for c in token) for token in tokenizer.vocabulary)
    if not cased and jamo * 20 > tokenizer.vocabulary_size:
        print(
            f"note: {jamo:,} of them are of Hangul, whose syllables a lowercasing vocabulary cuts into jamo (letters), "
            "so that texts have two to three times as many tokens; --cased keeps syllables whole"
        )


def _reported(reader, total, report):
    for document in reader:
        report(min(reader.position, total - 1), total)
        yield document.text.decode("utf-8")
    report(total, total)
