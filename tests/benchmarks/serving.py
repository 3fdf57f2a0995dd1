"""Text to probabilities: an exported classifier beside the peers'.

    pip install torch transformers   # may live elsewhere
    python tests/benchmarks/serving.py [--torch-python PYTHON] [--batch 32] [--hidden-size 768 --layers 12 --heads 12]
    python tests/benchmarks/serving.py --tokens 8 --clients 2     # texts of 8 tokens, two at the same time

Sentences of the bundled addresses, tokenized and classified in batches that are padded to their longest
row, but for KerasHub's, whose packer pads all to one length. `--tokens` takes texts of one length instead, which
ONNX Runtime needs: its files are those of `bert-tf export --format onnx`. The weights are random; bert_tf's and
KerasHub's are the SavedModels that they export, called from Python. KerasHub's export takes ids: its
tokenizer runs as a graph function before it. p50, p95 and p99 are milliseconds of a request.
"""

import argparse
import gzip
import json
import random
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from side_by_side import main, model_arguments

ROOT = Path(__file__).parent.parent.parent
VOCABULARY = 30522
PACKED_VOCABULARY = ROOT / "tests/fixtures/tokenizers/bert-base-uncased-vocab.txt.gz"


def read_texts(count=256):
    lines = (ROOT / "bert_tf/samples/state_of_the_union.jsonl").read_text(encoding="utf-8").splitlines()
    text = " ".join(json.loads(line)["text"] for line in lines[::20]).replace("\n", " ")
    sentences = [sentence + "." for sentence in text.split(". ") if 40 < len(sentence) < 300]
    return sentences[:: max(1, len(sentences) // count)][:count]


def vocabulary_file():
    path = Path(tempfile.mkdtemp()) / "vocab.txt"
    path.write_bytes(gzip.decompress(PACKED_VOCABULARY.read_bytes()))
    return path


def tensorflow(a):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(a.intra_op)
    return tf


def texts_of(tokens, count):
    """Texts that are so many tokens of the vocabulary, two of them special."""
    words = [word for word in gzip.decompress(PACKED_VOCABULARY.read_bytes()).decode().split() if word.isalpha()]
    draws = random.Random(0)
    return [" ".join(draws.choices(words, k=tokens - 2)) for _ in range(count)]


def requests(a, answer):
    """One turn: all texts, in batches, each client one after the other."""
    texts = texts_of(a.tokens, a.batch * max(8, 32 // a.batch)) if a.tokens else read_texts()
    batches = [texts[i : i + a.batch] for i in range(0, len(texts) // a.batch * a.batch, a.batch)]
    latencies, clients = [], ThreadPoolExecutor(a.clients)

    def timed(batch):
        start = time.perf_counter()
        answer(batch)
        latencies.append(time.perf_counter() - start)

    def turn():
        list(clients.map(timed, batches))
        return len(batches) * a.batch

    def more():
        parts = statistics.quantiles(latencies[len(batches) :], n=100)  # without the first turn
        return {f"p{part}": f"{1000 * parts[part - 1]:.1f}" for part in (50, 95, 99)}

    return "texts", turn, more


def classifier(a, precision):
    from bert_tf.models.bert.config import BertConfig
    from bert_tf.models.bert.model import BertEncoder
    from bert_tf.tasks.heads import Classifier

    config = BertConfig(VOCABULARY, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
    return Classifier(BertEncoder(config, dtype=precision), 2)


def bert_tf(precision):
    def setup(a):
        tf = tensorflow(a)

        from bert_tf.export.classification import ServedClassifier
        from bert_tf.export.saved_model import write_saved_model
        from bert_tf.tokenizers import load_tokenizer

        model = classifier(a, precision)
        module = ServedClassifier(model, load_tokenizer(vocabulary_file()), ["no", "yes"], a.length)
        path = write_saved_model(module, tempfile.mkdtemp())
        function = tf.saved_model.load(path).signatures["serving_default"]
        return requests(a, lambda batch: function(text=tf.constant(batch))["probabilities"].numpy())

    return setup


def onnx(quantize):
    def setup(a):
        if not a.tokens:
            raise SystemExit("an ONNX file has one length; give --tokens")
        tf = tensorflow(a)
        import numpy as np
        import onnxruntime
        from tokenizers.implementations import BertWordPieceTokenizer

        from bert_tf.compression.onnx_file import write_onnx

        path = Path(tempfile.mkdtemp()) / "model.onnx"
        names = ("token_ids", "segment_ids", "padding_mask")
        specs = {name: tf.TensorSpec([None, a.tokens], tf.int32, name) for name in names}
        write_onnx(classifier(a, "float32"), specs, path, quantize)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = a.intra_op
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        tokenizer, wanted = BertWordPieceTokenizer(str(vocabulary_file())), [x.name for x in session.get_inputs()]

        def answer(batch):
            encodings = tokenizer.encode_batch(batch)
            rows = ([e.ids for e in encodings], [e.type_ids for e in encodings], [e.attention_mask for e in encodings])
            features = {name: np.array(row, np.int32) for name, row in zip(names, rows) if name in wanted}
            return session.run(None, features)

        return requests(a, answer)

    return setup


def keras_hub(a):
    tf = tensorflow(a)
    import keras_hub as hub

    tokenizer = hub.tokenizers.BertTokenizer(vocabulary_file().read_text(encoding="utf-8").splitlines(), lowercase=True)
    preprocessor = hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=a.length)
    backbone = hub.models.BertBackbone(
        vocabulary_size=VOCABULARY,
        num_layers=a.layers,
        num_heads=a.heads,
        hidden_dim=a.hidden_size,
        intermediate_dim=4 * a.hidden_size,
    )
    model = hub.models.BertTextClassifier(backbone, num_classes=2, preprocessor=None, activation="softmax")
    path = tempfile.mkdtemp()
    model.export(path, verbose=False)
    loaded = tf.saved_model.load(path)
    pack = tf.function(lambda texts: {name: tf.cast(x, tf.int32) for name, x in preprocessor(texts).items()})
    return requests(a, lambda batch: loaded.serve(pack(tf.constant(batch))).numpy())


def transformers(bfloat16):
    def setup(a):
        import os

        import torch
        from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        tokenizer = BertTokenizerFast(str(vocabulary_file()))
        model = BertForSequenceClassification(
            BertConfig(
                vocab_size=VOCABULARY,
                hidden_size=a.hidden_size,
                num_hidden_layers=a.layers,
                num_attention_heads=a.heads,
                intermediate_size=4 * a.hidden_size,
            )
        ).eval()
        # All of it in bfloat16, as from_pretrained(dtype=...) makes it: faster than autocast, which keeps sums in float32.
        model = model.to(torch.bfloat16) if bfloat16 else model

        def answer(batch):
            with torch.inference_mode():
                features = tokenizer(batch, padding=True, truncation=True, max_length=a.length, return_tensors="pt")
                return model(**features).logits.float().softmax(-1).numpy()

        return requests(a, answer)

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_arguments(parser, batch=1)
    parser.add_argument("--intra-op", type=int, default=0, help="threads of an operation; 0 for all cores")
    parser.add_argument("--tokens", type=int, help="texts of so many tokens, instead of sentences")
    parser.add_argument("--clients", type=int, default=1, help="how many send requests at the same time")
    main(
        {
            "bert_tf, float32": bert_tf("float32"),
            "bert_tf, bfloat16": bert_tf("mixed_bfloat16"),
            "ONNX Runtime, float32": onnx(None),
            "ONNX Runtime, int8": onnx("dynamic_int8"),
            "KerasHub, float32": keras_hub,
            "transformers on PyTorch, float32": transformers(False),
            "transformers on PyTorch, bfloat16": transformers(True),
        },
        parser,
        reference=("transformers on PyTorch, float32", "KerasHub, float32"),
    )
