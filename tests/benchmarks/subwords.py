"""How many megabytes of text a second become byte pairs and unigram pieces, beside other implementations.

    python tests/benchmarks/subwords.py [--text FILE.jsonl|FILE.txt] [--megabytes 1.7] [--rounds 5]
        [--gpt2 FOLDER]

Sentences of English in batches of 1024, in graph mode; vocabularies of 8,000 trained on the text
(or GPT-2's own, from a folder with encoder.json and vocab.bpe). The implementations take turns and
the median of the rounds is printed. "differs" counts the sentences whose ids are not those of
`tokenizers`, or of `sentencepiece` for the unigram model. KerasHub's remembers every word it has
seen in a table that grows; its first round, which fills that, is not counted.
"""

import argparse
import statistics
import time

import keras_hub
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text
import tokenizers
from tokenizers import models, pre_tokenizers
from wordpiece import BATCH, ROOT, read_sentences

from bert_tf.tokenizers import load_tokenizer, train_bpe, train_byte_level_bpe, train_unigram


def reference(tokenizer, splitter, **settings):
    ids = {token: i for i, token in enumerate(tokenizer.vocabulary)}
    made = tokenizers.Tokenizer(models.BPE(ids, list(tokenizer.merges), **settings))
    made.pre_tokenizer = splitter
    return lambda texts: [encoding.ids for encoding in made.encode_batch(texts)]


def implementations(sentences, gpt2):
    """Groups of name -> (whether it takes a list, function from a batch to ids); the reference comes last."""
    byte_level = load_tokenizer(gpt2) if gpt2 else train_byte_level_bpe(sentences, 8000)
    hub = keras_hub.tokenizers.BytePairTokenizer(
        {token: i for i, token in enumerate(byte_level.vocabulary)}, [" ".join(pair) for pair in byte_level.merges]
    )
    plain = train_bpe(sentences, 8000)
    unigram = train_unigram(sentences, 8000, "t5")
    pieces = tf_text.SentencepieceTokenizer(unigram.model, out_type=tf.int32)
    processor = sentencepiece.SentencePieceProcessor(model_proto=unigram.model)
    byte_splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return [
        {
            "bert_tf ByteLevelBPETokenizer": (False, tf.function(byte_level.tokenize)),
            "bert_tf, with offsets": (False, tf.function(byte_level.tokenize_with_offsets)),
            "keras_hub BytePairTokenizer": (False, tf.function(lambda t: hub.tokenize(t))),
            "tokenizers encode_batch": (True, reference(byte_level, byte_splitter)),
        },
        {
            "bert_tf BPETokenizer": (False, tf.function(plain.tokenize)),
            "tokenizers encode_batch, BPE": (
                True,
                reference(plain, pre_tokenizers.WhitespaceSplit(), end_of_word_suffix="</w>", unk_token="[UNK]"),
            ),
        },
        {
            "bert_tf SentencePieceTokenizer": (False, tf.function(unigram.tokenize)),
            "bert_tf, SentencePiece offsets": (False, tf.function(unigram.tokenize_with_offsets)),
            "tf_text SentencepieceTokenizer": (False, tf.function(pieces.tokenize)),
            "sentencepiece encode": (True, processor.encode),
        },
    ]


def rows(result):
    result = result[0] if isinstance(result, tuple) else result
    return result if isinstance(result, list) else result.to_list()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=ROOT / "bert_tf" / "samples" / "state_of_the_union.jsonl")
    parser.add_argument("--megabytes", type=float, default=1.7)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpt2", help="folder with encoder.json and vocab.bpe")
    arguments = parser.parse_args()
    sentences, size = read_sentences(arguments.text, arguments.megabytes)
    batches = [sentences[i : i + BATCH] for i in range(0, len(sentences), BATCH)]
    tensors = [tf.constant(batch) for batch in batches]
    print(f"{len(sentences):,} sentences, {size:.1f} MB, median of {arguments.rounds} rounds")
    for group in implementations(sentences, arguments.gpt2):
        found, seconds = {}, {name: [] for name in group}
        for name, (takes_list, function) in group.items():  # also traces the functions
            found[name] = [ids for batch in (batches if takes_list else tensors) for ids in rows(function(batch))]
        for _ in range(arguments.rounds):
            for name, (takes_list, function) in group.items():
                start = time.perf_counter()
                for batch in batches if takes_list else tensors:
                    function(batch)
                seconds[name].append(time.perf_counter() - start)
        truth = found[list(group)[-1]]
        for name, values in seconds.items():
            differs = sum(a != b for a, b in zip(found[name], truth))
            print(f"{name:32s} {size / statistics.median(values):6.1f} MB/s   differs {differs}")


if __name__ == "__main__":
    main()
