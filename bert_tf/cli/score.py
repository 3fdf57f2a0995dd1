"""Score text: the log-likelihood of continuations, or the perplexity of a corpus.

Continuations: two strings, or a file with the columns context and continuation (TSV or CSV with a header, or JSON
lines). A space between the two belongs in front of the continuation. For a model that answers sources (T5, a run of the
task or objective text_to_text) the context is the source, and the continuation the whole target. Printed are the
natural log-likelihood, the tokens of the continuation, and whether greedy generation would give it.

--corpus: perplexity of files, folders and globs, as `bert-tf shards` reads them, with a decoder. exp(nll / tokens),
exp(nll / words), and bits per byte: the last two compare models with different vocabularies. A document longer than
--length tokens is read in windows that begin every --stride tokens; a smaller stride costs more and gives a lower
perplexity. State both with a result. Positions beyond the length of pretraining are untrained: a --length beyond it
gives a higher perplexity.

example:
  bert-tf score gpt "The capital of France is" " Paris"
  bert-tf score gpt --file pairs.tsv --output scored.tsv
  bert-tf score gpt --corpus test.txt --stride 256

in Python:
  import bert_tf
  scorer = bert_tf.load("gpt").scorer
  scorer.continuations([("The capital of France is", " Paris")])[0].log_likelihood
  scorer.perplexity(["One document.", "Another."], stride=256).per_word
"""

import bert_tf

COLUMNS = ("log_likelihood", "tokens", "is_greedy", "context", "continuation")


def add_arguments(parser):
    add = parser.add_argument
    add("run", help="the run of a decoder or encoder-decoder, or a published checkpoint")
    add("text", nargs="*", metavar="CONTEXT CONTINUATION", help="one pair")
    add("--file", help="pairs in the columns context and continuation: TSV, CSV or JSON lines")
    add("--output", help="write the scored pairs here, .tsv or .jsonl, instead of printing them")
    add("--corpus", nargs="+", help=".txt, .jsonl, .tsv, .csv (also .gz), .parquet, folders, globs")
    add("--text-field", default="text", help="field or column of the text (default %(default)s)")
    add("--length", type=int, help="tokens of a window (default: the sequence length of pretraining)")
    add("--stride", type=int, help="tokens between two windows (default: length - 1)")
    add("--batch-size", type=int, default=8, help="sequences of a batch (default %(default)s)")
    add("--json", action="store_true", help="print the perplexity as one line of JSON")


def run(arguments):
    check(arguments)

    pairs = None if arguments.corpus else pairs_of(arguments)
    model = bert_tf.load(arguments.run)
    scorer = model.scorer
    scorer.batch_size = arguments.batch_size
    if arguments.corpus:
        if not scorer.frame.is_source:  # which `perplexity` refuses
            arguments.length = arguments.length or model.sequence_length
        print_perplexity(perplexity(scorer, arguments), arguments)
    else:
        print_scores(pairs, scores_of(scorer, pairs), arguments.output)


def check(arguments):
    """Rejects wrong arguments before TensorFlow is imported."""
    from bert_tf.errors import ConfigError
    from bert_tf.files import check_output

    if [bool(arguments.text), bool(arguments.file), bool(arguments.corpus)].count(True) != 1:
        raise ConfigError("give a context and a continuation, or --file, or --corpus; one of the three")
    if arguments.text and len(arguments.text) != 2:
        raise ConfigError(f"{len(arguments.text)} texts are given; give a context and a continuation, each in quotes")
    for flag in ("length", "stride", "batch_size"):
        value = getattr(arguments, flag)
        if value is not None and value < 1:
            raise ConfigError(f"--{flag.replace('_', '-')} is {value}; it must be at least 1")
    if not arguments.corpus and (arguments.length or arguments.stride or arguments.json):
        raise ConfigError("--length, --stride and --json are for --corpus; remove them")
    if arguments.output and (arguments.corpus or not arguments.output.endswith((".tsv", ".jsonl"))):
        raise ConfigError("--output is for scored pairs and ends with .tsv or .jsonl")
    if arguments.output:
        check_output(arguments.output)


def pairs_of(arguments):
    """The list of (context, continuation)."""
    from bert_tf.tasks.rows.opening import read_dicts

    if arguments.text:
        return [tuple(arguments.text)]
    rows = read_dicts(arguments.file, ("context", "continuation"))
    return [(row["context"], row["continuation"]) for row in rows]


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

    files = find_files(arguments.corpus)
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


def print_perplexity(result, arguments):
    import dataclasses
    import json

    values = {name: getattr(result, name) for name in ("per_token", "per_word", "bits_per_byte")}
    if arguments.json:
        print(json.dumps(dataclasses.asdict(result) | values))
        return
    print(f"  perplexity per token  {result.per_token:,.4f}")
    print(f"  perplexity per word   {result.per_word:,.4f}")
    print(f"  bits per byte         {result.bits_per_byte:.4f}")
    print(f"  {result.nll:,.1f} nats over {result.tokens:,} tokens, {result.words:,} words, {result.bytes:,} bytes")
