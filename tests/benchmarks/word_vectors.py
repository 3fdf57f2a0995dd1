"""Word vectors beside gensim: words a second on one core, neighbours, and agreement with judged pairs of words.

    python tests/benchmarks/word_vectors.py CORPUS --torch-python PYTHON_WITH_GENSIM --similarity wordsim353.tsv simlex999.txt

CORPUS is JSON lines with a field `text`. Both read the same words, one sentence a line, and train from text to vectors
with one process and the same settings. "words/s" counts the words of the text once for each epoch; the time holds
counting the vocabulary too. The files of judged pairs lie in gensim's `test/test_data`.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from side_by_side import main

ALGORITHMS = {"skip_gram": 1, "cbow": 0}
MIN_COUNT, WINDOW, NEGATIVES = 5, 5, 5


def ours(arguments):
    from bert_tf.vectors import (
        CbowConfig,
        SkipGramConfig,
        VectorsConfig,
        VectorsTrainConfig,
        VocabularyConfig,
        WordTable,
        train_vectors,
    )

    settings = {"skip_gram": SkipGramConfig, "cbow": CbowConfig}[arguments.algorithm]
    algorithm = settings(size=arguments.size, epochs=arguments.epochs, window=WINDOW, negatives=NEGATIVES)
    config = VectorsConfig(algorithm, VocabularyConfig(min_count=MIN_COUNT), VectorsTrainConfig(workers=1))
    found = {}

    def turn():
        with tempfile.TemporaryDirectory() as folder:
            run, _ = train_vectors(config, arguments.folder / "corpus.jsonl", Path(folder) / "run")
            found["table"] = WordTable.load(run.path)
        return number_of_words(arguments) * arguments.epochs

    return "words", turn, lambda: quality(arguments, "bert_tf", found["table"].words, found["table"].vectors)


def gensim(seed):
    def setup(arguments):
        from gensim.models import Word2Vec
        from gensim.models.word2vec import LineSentence

        found = {}

        def turn():
            found["model"] = Word2Vec(
                LineSentence(arguments.folder / "corpus.txt"), vector_size=arguments.size, window=WINDOW,
                min_count=MIN_COUNT, sg=ALGORITHMS[arguments.algorithm], negative=NEGATIVES, sample=1e-3, workers=1,
                epochs=arguments.epochs, alpha={"skip_gram": 0.025, "cbow": 0.05}[arguments.algorithm], seed=seed,
            )  # fmt: skip
            return number_of_words(arguments) * arguments.epochs

        def more():
            vectors = found["model"].wv
            return quality(arguments, f"gensim {seed}", vectors.index_to_key, vectors.vectors)

        return "words", turn, more

    return setup


def number_of_words(arguments):
    return int((arguments.folder / "words").read_text())


def quality(arguments, name, words, vectors):
    """Spearman's correlation with each file of pairs, and how many of the ten neighbours are gensim's, of 500 words."""
    from scipy.stats import spearmanr

    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ids, result = {word: i for i, word in enumerate(words)}, {}
    for path in arguments.similarity:
        judged, cosines = [], []
        for line in path.read_text(encoding="utf-8").splitlines():
            first, second, *score = line.lower().split()
            if score and first in ids and second in ids:
                judged.append(float(score[0]))
                cosines.append(vectors[ids[first]] @ vectors[ids[second]])
        result[path.stem] = f"{spearmanr(judged, cosines).statistic:.3f} ({len(judged)} pairs)"
    np.savez(arguments.folder / f"{name}.npz", words=words, vectors=vectors)
    reference = np.load(arguments.folder / "gensim 1.npz")
    if name != "gensim 1":
        theirs = {word: i for i, word in enumerate(reference["words"])}
        frequent = [word for word in reference["words"][100:600] if word in ids]
        common = set(theirs) & set(ids)
        ours_, theirs_ = neighbours(words, vectors, frequent, common), neighbours(*reference.values(), frequent, common)
        result["neighbours"] = f"{np.mean([len(set(ours_[w]) & set(theirs_[w])) for w in frequent]):.1f} of 10"
    return result


def neighbours(words, vectors, asked, allowed):
    kept = [i for i, word in enumerate(words) if word in allowed]
    names, table = [words[i] for i in kept], vectors[kept]
    row = {word: i for i, word in enumerate(names)}
    nearest = np.argsort(-(table[[row[word] for word in asked]] @ table.T), axis=1)[:, 1:11]
    return {word: [names[i] for i in line] for word, line in zip(asked, nearest)}


def write_words(corpus, folder):
    """The same words for both: one sentence a line, lowercased, white space between words and punctuation."""
    from bert_tf.tokenizers import train_words
    from tfrecords import read_texts
    from tfrecords.corpus.sentences import split_sentences

    start, total = time.perf_counter(), 0
    texts = list(read_texts(corpus))
    tokenizer = train_words(texts, None)
    with (
        open(folder / "corpus.txt", "w", encoding="utf-8") as plain,
        open(folder / "corpus.jsonl", "w", encoding="utf-8") as lines,
    ):
        for text in texts:
            for ids in tokenizer.tokenize(split_sentences(text)).to_list():
                words = [tokenizer.vocabulary[i] for i in ids]
                plain.write(" ".join(words) + "\n")
                lines.write(json.dumps({"text": " ".join(words)}) + "\n")
                total += len(words)
    (folder / "words").write_text(str(total))
    print(f"{total:,} words in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="skip_gram")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--similarity", type=Path, nargs="*", default=[])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "word_vectors_benchmark")
    known, _ = parser.parse_known_args()
    known.folder.mkdir(exist_ok=True)
    if not (known.folder / "words").exists():
        write_words(known.corpus, known.folder)
    main({"gensim": gensim(1), "bert_tf": ours, "gensim, another seed": gensim(2)}, parser, ["gensim"])
