"""Train a subword vocabulary on a corpus, or write the tokenizer of ByT5 or ELMo, which need none.

The corpus is .txt (an empty line between documents), .jsonl (a "text" field), .tsv or .csv (a column), each also gzipped,
or .parquet; or folders and globs of them.

example:
  bert-tf vocab corpus/ --output tokenizer --size 30522
  bert-tf vocab --output tokenizer --kind byte

in Python:
  from bert_tf.tokenizers import train_wordpiece
  from tfrecords import read_texts
  train_wordpiece(read_texts(["corpus/"]), 30522, lowercase=True).save("tokenizer")
"""

from pathlib import Path

from bert_tf.cli.child import run_in_child
from bert_tf.cli.settings import add_number, add_text_field
from bert_tf.errors import ConfigError, RunDirectoryError
from bert_tf.files import LOCK, atomic_folder, list_folder, lock_directory
from bert_tf.tokenizers.kinds import KINDS, trainers
from bert_tf.tokenizers.sentencepiece.families import MAX_EXTRA_IDS, sentinels

CONFIG = "tokenizer_config.json"
SIZE = 30522  # BERT's


def add_arguments(parser):
    add, families = parser.add_argument, "; ".join(f"{name}: {one.families}" for name, one in trainers().items())
    add("corpus", nargs="*", help=f"files, folders or globs of text; none with --kind {_without_corpus()}")
    add("--output", required=True, help="folder for the tokenizer")
    add_number(parser, "--size", f"entries of the vocabulary (default {SIZE})", dest="vocabulary_size")
    kinds = {"choices": tuple(trainers()), "default": "wordpiece", "metavar": "KIND"}
    add("--kind", **kinds, help=f"default %(default)s. {families}")
    cased = "keep case and accents; Hangul then stays in whole syllables, decomposed text is composed"
    add("--cased", action="store_true", help=f"{_names('cased')}: {cased}")
    alphabet = "keep only the N most frequent characters (default 1000, or as many as cover 99.995%% of the text)"
    add_number(parser, "--alphabet", f"{_names('has_alphabet')}: {alphabet}", dest="limit_alphabet")
    sentinels = "N of the --size are T5's sentinels <extra_id_0>, ..., which its objective needs (default 0)"
    add_number(parser, "--sentinels", f"{_names('has_special_tokens')}: {sentinels}")
    add_text_field(parser, default="text")
    add("--overwrite", action="store_true", help="replace an existing tokenizer")
    invalid = "replace bytes that are not UTF-8 by U+FFFD"
    add("--replace-invalid", dest="errors", action="store_const", const="replace", default="strict", help=invalid)


def run(arguments):
    kind, trainer = arguments.kind, trainers()[arguments.kind]
    values = {"cased": arguments.cased or None, "alphabet": arguments.limit_alphabet, "sentinels": arguments.sentinels}
    attributes = {"cased": "cased", "alphabet": "has_alphabet", "sentinels": "has_special_tokens"}
    for flag, value in values.items():
        if value is not None and not getattr(trainer, attributes[flag]):
            raise ConfigError(f"--{flag} is for {_names(attributes[flag])}, not for {kind} ({trainer.families})")
    if (arguments.sentinels or 0) > MAX_EXTRA_IDS:
        raise ConfigError(f"--sentinels is {arguments.sentinels}; it must be at most {MAX_EXTRA_IDS:,} (T5 has 100)")
    if not trainer.has_corpus:
        flags = {
            "--size": arguments.vocabulary_size is not None,
            "--text-field": arguments.text_field != "text",
            "--replace-invalid": arguments.errors != "strict",
        }
        flags |= {f"the corpus {path}": True for path in arguments.corpus}
        needless = next((flag for flag, is_given in flags.items() if is_given), None)
        if needless:
            raise ConfigError(f"--kind {kind} learns no vocabulary from text; remove {needless}")
        _check_output(arguments)
        return _write(arguments, trainer.train((), 0))
    if not arguments.corpus:
        raise ConfigError(f"--kind {kind} needs a corpus, files, folders or globs; {_without_corpus()} needs none")
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

    cased, size = arguments.cased, SIZE if arguments.vocabulary_size is None else arguments.vocabulary_size
    files = find_files(arguments.corpus)
    reader = CorpusReader(files, arguments.text_field, arguments.errors)
    texts = _read_texts(reader, sum(file.bytes for file in files), report)
    special = sentinels(arguments.sentinels or 0)
    tokenizer = trainers()[arguments.kind].train(texts, size, cased, arguments.limit_alphabet, special)
    _write(arguments, tokenizer)
    if tokenizer.vocabulary_size < size:
        digits = ". Pieces such as '2004,' are left out, too" if getattr(tokenizer, "split_digit_commas", False) else ""
        print(f"note: these are fewer than {size:,}: the text has no more to learn; more text gives more{digits}")
    jamo = sum(any("\u1100" <= c <= "\u11ff" for c in token) for token in tokenizer.vocabulary)
    if not cased and jamo * 20 > tokenizer.vocabulary_size:
        print(
            f"note: {jamo:,} of them are Hangul letters (jamo), with which texts get two to three times as many tokens; "
            "--cased keeps whole syllables"
        )


def _write(arguments, tokenizer):
    with lock_directory(arguments.output):
        _check_output(arguments)  # which may have been written meanwhile
        with atomic_folder(arguments.output, replace=arguments.overwrite) as temporary:
            tokenizer.save(temporary)
    print(f"{tokenizer.vocabulary_size:,} tokens in {arguments.output}")


def _read_texts(reader, total, report):
    for document in reader:
        report(min(reader.position, total - 1), total)
        yield document.text.decode("utf-8")
    report(total, total)
