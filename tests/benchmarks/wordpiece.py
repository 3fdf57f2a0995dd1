"""How many megabytes of text a second become word pieces, beside other implementations.

    python tests/benchmarks/wordpiece.py [--text FILE.jsonl|FILE.txt] [--megabytes 4] [--rounds 9]

Sentences of English in batches of 1024, the vocabulary of bert-base-uncased, in graph mode; the
implementations take turns and the median of the rounds is printed. "differs" counts the
sentences whose ids are not those of Hugging Face's `tokenizers`.
"""

import argparse
import gzip
import json
import statistics
import time
from pathlib import Path

import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text
from tokenizers import BertWordPieceTokenizer

from bert_tf.tokenizers import WordPieceTokenizer, train_wordpiece

ROOT = Path(__file__).parent.parent.parent
VOCABULARY = ROOT / "tests" / "fixtures" / "tokenizers" / "bert-base-uncased-vocab.txt.gz"
BATCH = 1024


def read_sentences(path, megabytes):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] if str(path).endswith(".jsonl") else line for line in lines]
    sentences, size = [], 0
    for text in texts:
        for sentence in text.replace("\n", " ").split(". "):
            sentences.append(sentence + ".")
            size += len(sentences[-1].encode("utf-8"))
        if size > megabytes * 1e6:
            break
    return sentences, size / 1e6


def implementations(vocabulary):
    """Name -> function from a tensor of strings, or a list for Hugging Face's, to ids."""
    ours = WordPieceTokenizer(vocabulary)
    fast = tf_text.FastBertTokenizer(vocabulary, token_out_type=tf.int32, lower_case_nfd_strip_accents=True)
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(vocabulary, tf.range(len(vocabulary), dtype=tf.int64)), 1
    )
    slow = tf_text.BertTokenizer(table, lower_case=True, token_out_type=tf.int64)
    hub = keras_hub.tokenizers.WordPieceTokenizer(vocabulary, lowercase=True, strip_accents=True)
    theirs = BertWordPieceTokenizer({t: i for i, t in enumerate(vocabulary)}, lowercase=True)
    theirs.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])

    def reference(texts):
        return [e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)]

    return {
        "bert_tf WordPieceTokenizer": tf.function(ours.tokenize),
        "bert_tf, with offsets": tf.function(lambda t: ours.tokenize_with_offsets(t)),
        "tf_text FastBertTokenizer": tf.function(fast.tokenize),
        "tf_text FastBert, with offsets": tf.function(lambda t: fast.tokenize_with_offsets(t)),
        "tf_text BertTokenizer": tf.function(lambda t: slow.tokenize(t).merge_dims(1, 2)),
        "keras_hub WordPieceTokenizer": tf.function(lambda t: hub.tokenize(t)),
        "tokenizers encode_batch": reference,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=ROOT / "bert_tf" / "samples" / "state_of_the_union.jsonl")
    parser.add_argument("--megabytes", type=float, default=1.7)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    sentences, size = read_sentences(arguments.text, arguments.megabytes)
    with gzip.open(VOCABULARY, "rt", encoding="utf-8", newline="\n") as file:
        vocabulary = file.read().split("\n")[:-1]

    start = time.perf_counter()
    WordPieceTokenizer(vocabulary)
    built = time.perf_counter() - start
    start = time.perf_counter()
    train_wordpiece(sentences, 8000)
    trained = time.perf_counter() - start

    batches = [sentences[i : i + BATCH] for i in range(0, len(sentences), BATCH)]
    tensors = [tf.constant(batch) for batch in batches]
    running = implementations(vocabulary)
    results = {}
    for name, function in running.items():  # also traces the functions
        rows = [function(batch if name.startswith("tokenizers") else t) for batch, t in zip(batches, tensors)]
        rows = [r[0] if isinstance(r, tuple) else r for r in rows]
        results[name] = [ids for r in rows for ids in (r if isinstance(r, list) else r.to_list())]
    seconds = {name: [] for name in running}
    for _ in range(arguments.rounds):
        for name, function in running.items():
            inputs = batches if name.startswith("tokenizers") else tensors
            start = time.perf_counter()
            for batch in inputs:
                function(batch)
            seconds[name].append(time.perf_counter() - start)

    print(f"{len(sentences):,} sentences, {size:.1f} MB, median of {arguments.rounds} rounds")
    truth = results["tokenizers encode_batch"]
    for name, values in seconds.items():
        differs = sum(a != b for a, b in zip(results[name], truth))
        print(f"{name:32s} {size / statistics.median(values):6.1f} MB/s   differs {differs}")
    print(f"built from a list of {len(vocabulary):,} tokens in {built:.2f} s")
    print(f"trained 8,000 tokens on the same text in {trained:.1f} s")


if __name__ == "__main__":
    main()
