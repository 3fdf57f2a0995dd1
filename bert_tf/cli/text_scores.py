"""What `bert-tf evaluate` prints of a model that writes text: log-likelihoods of continuations, perplexity of a corpus."""

import bert_tf
from bert_tf.cli.settings import at_least
from bert_tf.errors import ConfigError

COLUMNS = ("log_likelihood", "tokens", "is_greedy", "context", "continuation")


def add_arguments(parser):
    add = parser.add_argument
    add(
        "--continuation",
        nargs=2,
        action="append",
        default=[],
        metavar=("CONTEXT", "TEXT"),
        help="the log-likelihood of a text after a context; may be repeated",
    )
    add("--continuations", metavar="FILE", help="the same of a file with the columns context and continuation")
    add("--output", help="write these scores here, .tsv or .jsonl, instead of printing them")
    add("--text-field", default="text", help="of a corpus, the field or column of the text (default %(default)s)")
    add("--length", type=at_least(1), help="tokens of a window (default: the sequence length of pretraining)")
    add("--stride", type=at_least(1), help="tokens between two windows (default: length - 1)")


def check(arguments):
    """Rejects wrong arguments before TensorFlow is imported."""
    from bert_tf.files import check_output

    given = [bool(arguments.files), bool(arguments.continuation), bool(arguments.continuations)]
    if given.count(True) != 1:
        raise ConfigError("give files, or --continuation, or --continuations; one of the three")
    if arguments.output and not (arguments.continuation or arguments.continuations):
        raise ConfigError("--output is for --continuation and --continuations; remove it")
    if arguments.output and not arguments.output.endswith((".tsv", ".jsonl")):
        raise ConfigError(f"--output is {arguments.output}; it must end with .tsv or .jsonl")
    if not arguments.files and (arguments.length or arguments.stride or arguments.json):
        raise ConfigError("--length, --stride and --json are for a corpus; remove them")
    if arguments.output:
        check_output(arguments.output)


def print_continuations(arguments):
    """Scores what --continuation or --continuations gives."""
    from bert_tf.tasks.rows.opening import read_dicts

    pairs = [tuple(pair) for pair in arguments.continuation]
    if arguments.continuations:
        rows = read_dicts(arguments.continuations, ("context", "continuation"))
        pairs = [(row["context"], row["continuation"]) for row in rows]
    scorer = bert_tf.load(arguments.run).scorer
    scorer.batch_size = arguments.batch_size
    print_scores(pairs, scores_of(scorer, pairs), arguments.output)


def print_perplexity(model, arguments):
    """The perplexity of the files as a corpus, with the scorer of an opened model."""
    scorer = model.scorer
    scorer.batch_size = arguments.batch_size
    if not scorer.frame.is_source:  # which `perplexity` refuses
        arguments.length = arguments.length or model.sequence_length
    _print_perplexity(perplexity(scorer, arguments), arguments.json)


def scores_of(scorer, pairs):
    """The list of `ContinuationScore`, with a line of progress where there are many."""
    from bert_tf.progress import Progress

    size = 32 * scorer.batch_size
    if len(pairs) <= size:
        return scorer.continuations(pairs)
    progress, scores = Progress("score", len(pairs), "pairs"), []
    for begin in range(0, len(pairs), size):
        scores += scorer.continuations(pairs[begin : begin + size])
        progress.update(len(scores))
    progress.finish()
    return scores


def print_scores(pairs, scores, output):
    import json

    from bert_tf.files import atomic_write

    rows = [
        dict(zip(COLUMNS, (round(score.log_likelihood, 6), score.tokens, score.is_greedy, *pair)))
        for pair, score in zip(pairs, scores)
    ]
    if output and output.endswith(".jsonl"):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    else:
        lines = ["\t".join(COLUMNS), *("\t".join(map(_cell, row.values())) for row in rows)]
    if not output:
        print("\n".join(lines))
        return
    with atomic_write(output) as file:
        file.writelines(line + "\n" for line in lines)
    print(f"{len(rows)} scores in {output}")


def _cell(value):
    """A value of a TSV row: tabs and line ends are written as JSON writes them."""
    text = value if isinstance(value, str) else str(value).lower()
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def perplexity(scorer, arguments):
    """The `Perplexity` of the corpus, with a line of progress."""
    from bert_tf.progress import Progress
    from tfrecords.corpus.documents import CorpusReader
    from tfrecords.corpus.files import find_files

    files = find_files(arguments.files)
    reader = CorpusReader(files, arguments.text_field, max_document_bytes=1 << 24)
    progress = Progress("score", sum(file.bytes for file in files) / 1e6, "MB")
    texts = (document.text.decode("utf-8") for document in reader)

    def show(result, fraction):
        progress.update(
            fraction * reader.position / 1e6, f"{result.tokens:,} tokens  perplexity {result.per_token:.2f}"
        )

    result = scorer.perplexity(texts, arguments.length, arguments.stride, show)
    progress.update(reader.position / 1e6)
    progress.finish()
    return result


def _print_perplexity(result, as_json):
    import dataclasses
    import json

    values = {name: getattr(result, name) for name in ("per_token", "per_word", "bits_per_byte")}
    if as_json:
        print(json.dumps(dataclasses.asdict(result) | values))
        return
    print(f"  perplexity per token  {result.per_token:,.4f}")
    print(f"  perplexity per word   {result.per_word:,.4f}")
    print(f"  bits per byte         {result.bits_per_byte:.4f}")
    print(f"  {result.nll:,.1f} nats over {result.tokens:,} tokens, {result.words:,} words, {result.bytes:,} bytes")
