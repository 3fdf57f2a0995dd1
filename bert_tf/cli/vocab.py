"""Train a WordPiece vocabulary on a corpus.

The corpus is .txt (a blank line between documents), .jsonl (a "text" field), either with .gz,
folders and globs of them. The output folder holds vocab.txt and tokenizer_config.json.

example:
  bert-tf vocab corpus/ --output tokenizer --size 30522
  bert-tf vocab korean/*.jsonl --output tokenizer --size 32000 --cased

in Python:
  from bert_tf.tokenizers import train_wordpiece
  from tfrecords.corpus import read_texts
  train_wordpiece(read_texts(["corpus/"]), 30522, lowercase=True).save("tokenizer")
"""


def add_arguments(parser):
    parser.add_argument("corpus", nargs="+", help="files, folders or globs of text")
    parser.add_argument("--output", required=True, help="folder for the tokenizer")
    parser.add_argument("--size", type=int, default=30522, help="entries of the vocabulary (default %(default)s)")
    parser.add_argument(
        "--cased", action="store_true", help="keep case and accents; Hangul then stays in whole syllables"
    )
    parser.add_argument("--text-field", default="text", help="the .jsonl field that holds the text")
    parser.add_argument("--replace-invalid", action="store_true", help="replace bytes that are not UTF-8")


def run(arguments):
    from bert_tf.tokenizers import train_wordpiece
    from tfrecords.corpus import read_texts

    texts = read_texts(
        arguments.corpus,
        text_field=arguments.text_field,
        errors="replace" if arguments.replace_invalid else "strict",
    )
    tokenizer = train_wordpiece(texts, arguments.size, lowercase=not arguments.cased)
    tokenizer.save(arguments.output)
    print(f"{tokenizer.vocabulary_size:,} tokens in {arguments.output}")
