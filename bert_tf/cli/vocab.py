"""Train a subword vocabulary on a corpus, or write the tokenizer of ByT5 or ELMo, which need none.

The corpus is .txt (an empty line between documents), .jsonl (a "text" field), .tsv or .csv (a column), each also gzipped,
or .parquet; or folders and globs of them. The tokenizer's folder appears only when it is complete.

example:
  bert-tf vocab corpus/ --output tokenizer --size 30522
  bert-tf vocab korean/*.jsonl --output tokenizer --size 32000 --cased
  bert-tf vocab corpus/ --output tokenizer --size 50265 --kind byte_level_bpe
  bert-tf vocab --output tokenizer --kind byte

in Python:
  from bert_tf.tokenizers import train_wordpiece
  from tfrecords import read_texts
  train_wordpiece(read_texts(["corpus/"]), 30522, lowercase=True).save("tokenizer")
"""

from pathlib import Path

from bert_tf.cli.settings import at_least
from bert_tf.tokenizers.kinds import KINDS, trainers
from bert_tf.tokenizers.sentencepiece.families import MAX_EXTRA_IDS, sentinels

CONFIG = "tokenizer_config.json"
SIZE = 30522  # BERT's


def add_arguments(parser):
    add = parser.add_argument
    add("corpus", nargs="*", help=f"files, folders or globs of text; none with --kind {_without_corpus()}")
    add("--output", required=True, help="folder for the tokenizer")
    add("--size", type=at_least(1), help=f"entries of the vocabulary (default {SIZE})")
    families = "; ".join(f"{name}: {trainer.families}" for name, trainer in trainers().items())
    add(
        "--kind",
        choices=tuple(trainers()),
        metavar="KIND",
        default="wordpiece",
        help=f"default %(default)s. {families}",
    )
    add(
        "--cased",
        action="store_true",
        help=f"{_names('cased')}: keep case and accents; Hangul then stays in whole syllables, decomposed "
        "text (as macOS writes it) is composed",
    )
    add(
        "--alphabet",
        type=at_least(1),
        metavar="N",
        help=f"{_names('has_alphabet')}: keep only the N most frequent characters; the others become [UNK] "
        "(default 1000, or as many as cover 99.995%% of the text, up to a third of --size)",
    )
    add(
        "--sentinels",
        type=at_least(1),
        metavar="N",
        help=f"{_names('has_special_tokens')}: N of the --size are T5's sentinels <extra_id_0>, ..., which its objective "
        "needs (default 0)",
    )
    add(
        "--text-field",
        default="text",
        metavar="NAME",
        help="the field or column that holds the text (default text, or the one of a usual name); a number from 0 for a "
        ".tsv or .csv without a header",
    )
    add("--overwrite", action="store_true", help="replace an existing tokenizer")
    add("--replace-invalid", action="store_true", help="replace bytes that are not UTF-8 by U+FFFD")


def run(arguments):
    from bert_tf.cli.child import run_in_child
    from bert_tf.errors import ConfigError

    kind, trainer = arguments.kind, trainers()[arguments.kind]
    if arguments.cased and trainer.cased is None:
        raise ConfigError(f"--cased is for {_names('cased')}, not for {kind} ({trainer.families})")
    if arguments.alphabet is not None and not trainer.has_alphabet:
        raise ConfigError(f"--alphabet is for {_names('has_alphabet')}, not for {kind}")
    if arguments.sentinels is not None and not trainer.has_special_tokens:
        raise ConfigError(f"--sentinels is for {_names('has_special_tokens')}, not for {kind} ({trainer.families})")
    if (arguments.sentinels or 0) > MAX_EXTRA_IDS:
        raise ConfigError(f"--sentinels is {arguments.sentinels}; it must be at most {MAX_EXTRA_IDS:,} (T5 has 100)")
    if not trainer.has_corpus:
        given = [f"the corpus {path}" for path in arguments.corpus[:1]] + [
            option
            for option, is_given in (
                ("--size", arguments.size is not None),
                ("--text-field", arguments.text_field != "text"),
                ("--replace-invalid", arguments.replace_invalid),
            )
            if is_given
        ]
        if given:
            raise ConfigError(f"--kind {kind} learns no vocabulary from text; remove {given[0]}")
        _check_output(arguments)
        return _write(arguments, trainer.train((), 0))
    if not arguments.corpus:
        raise ConfigError(
            f"--kind {kind} needs a corpus: name files, folders or globs of text; only --kind {_without_corpus()} needs none"
        )
    _check_output(arguments)
    # The trainers are long calls of C++ and Rust, during which Python can neither answer a signal nor show progress.
    return run_in_child(lambda report: _train(arguments, report), f"training the vocabulary ({kind})")


def _names(attribute):
    """The choices of --kind that have something, e.g. "wordpiece and bpe"."""
    *names, last = [name for name, trainer in trainers().items() if getattr(trainer, attribute)]
    return f"{', '.join(names)} and {last}"


def _without_corpus():
    return " or ".join(name for name, trainer in trainers().items() if not trainer.has_corpus)


def _check_output(arguments):
    """Refuses a folder that is not empty, except a tokenizer with --overwrite."""
    from bert_tf.errors import RunDirectoryError
    from bert_tf.files import LOCK, list_folder

    output = Path(arguments.output)
    if output.is_file():
        raise RunDirectoryError(f"{output} is a file; choose another folder")
    names = [path.name for path in list_folder(output) if path.name != LOCK]
    if names and not arguments.overwrite:
        if CONFIG in names:
            raise RunDirectoryError(f"{output} holds a tokenizer; choose another folder, or add --overwrite")
        raise RunDirectoryError(f"{output} is not empty; choose another folder")
    written = {CONFIG, "tokenizer.json", *(name for kind in KINDS.values() for name in kind.files[0])}
    others = [name for name in names if name not in written or CONFIG not in names]
    if others:
        raise RunDirectoryError(
            f"{output} holds {others[0]}, which is not of a tokenizer that this command wrote; --overwrite replaces only "
            "such tokenizers, choose another folder"
        )


def _train(arguments, report):
    """Trains and saves; calls `report(done, total)` with the number of bytes read."""
    from tfrecords.corpus.documents import CorpusReader
    from tfrecords.corpus.files import find_files

    cased, size = arguments.cased, SIZE if arguments.size is None else arguments.size
    files = find_files(arguments.corpus)
    reader = CorpusReader(files, arguments.text_field, "replace" if arguments.replace_invalid else "strict")
    texts = _reported(reader, sum(file.bytes for file in files), report)
    special = sentinels(arguments.sentinels or 0)
    tokenizer = trainers()[arguments.kind].train(texts, size, cased, arguments.alphabet, special)
    _write(arguments, tokenizer)
    if tokenizer.vocabulary_size < size:
        print(
            f"note: there are fewer than the {size:,} asked for, because the text has no more to learn; more text gives more"
            + (". Pieces such as '2004,' are left out, too" if getattr(tokenizer, "split_digit_commas", False) else "")
        )
    jamo = sum(any("\u1100" <= c <= "\u11ff" for c in token) for token in tokenizer.vocabulary)
    if not cased and jamo * 20 > tokenizer.vocabulary_size:
        print(
            f"note: {jamo:,} of them are Hangul letters (jamo): a lowercasing vocabulary splits syllables into letters, and "
            "texts get two to three times as many tokens; --cased keeps whole syllables"
        )


def _write(arguments, tokenizer):
    from bert_tf.files import atomic_folder, lock_directory

    with lock_directory(arguments.output):
        _check_output(arguments)  # which may have been written meanwhile
        with atomic_folder(arguments.output, replace=arguments.overwrite) as temporary:
            tokenizer.save(temporary)
    print(f"{tokenizer.vocabulary_size:,} tokens in {arguments.output}")


def _reported(reader, total, report):
    for document in reader:
        report(min(reader.position, total - 1), total)
        yield document.text.decode("utf-8")
    report(total, total)
