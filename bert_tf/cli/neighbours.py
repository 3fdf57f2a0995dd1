"""Print the words whose vectors are nearest to those of given words, by the cosine.

The vectors are those of a run of 'bert-tf vectors', of a file of word2vec, GloVe or fastText, or the token table of any
other model.

example:
  bert-tf neighbours vectors king queen
  bert-tf neighbours glove.6B.100d.txt king --count 5

in Python:
  from bert_tf.vectors import WordTable
  WordTable.load("vectors").neighbours("king", count=5)
"""

from bert_tf.errors import ConfigError


def add_arguments(parser):
    parser.add_argument("source", help="a run directory, a file of word vectors, or a published checkpoint")
    parser.add_argument("words", nargs="+", metavar="word", help="a word of the vocabulary")
    parser.add_argument("--count", type=int, default=10, help="neighbours of each word (default %(default)s)")


def run(arguments):
    if arguments.count < 1:
        raise ConfigError(f"--count is {arguments.count}; it must be at least 1")
    from bert_tf.vectors.similarity import WordTable

    table = WordTable.load(arguments.source)
    for word in arguments.words:
        found = table.neighbours(word, arguments.count)
        print(f"{word}: " + "  ".join(f"{other} {cosine:.2f}" for other, cosine in found))
