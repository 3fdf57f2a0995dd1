"""Each kind of tokenizer in a SavedModel, served without this library, and with no growing memory."""

import subprocess
import sys
import textwrap

import pytest
import tensorflow as tf
from subword_oracle import corpus

from bert_tf.tokenizers import train_bpe, train_byte_level_bpe, train_unigram, train_wordpiece

TEXT = ["The <mask> e\u0301 naïve [MASK]!", "x" * 101 + " isn't  12,", ""]
SERVE = """
    import sys
    import tensorflow as tf, tensorflow_text
    text = ["The <mask> e\u0301 naïve [MASK]!", "x" * 101 + " isn't  12,", ""]
    for path in sys.argv[1:]:
        loaded = tf.saved_model.load(path)
        served = loaded.serve(tf.constant(text))
        print(served["token_ids"].numpy().tolist(), served["places"].numpy().tolist())
        with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
            meta = tf.compat.v1.saved_model.load(session, ["serve"], path)
            signature = meta.signature_def["serving_default"]
            names = [signature.outputs[name].name for name in ("token_ids", "places")]
            results = session.run(names, {signature.inputs["text"].name: text})
            print(*(result.tolist() for result in results))
            functions = graph.as_graph_def().library.function
            kinds = {node.op for f in functions for node in f.node_def} | {op.type for op in graph.get_operations()}
            print(sorted(k for k in kinds if "Mutable" in k or "PyFunc" in k or "Variable" in k))
    assert not any(name.startswith("bert_tf") for name in sys.modules)
"""


class Module(tf.Module):
    def __init__(self, tokenizer):
        self._in_use = lambda: tokenizer  # hidden from tracking: the resources are what is exported
        self.resources = tokenizer.resources

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, text):
        ids, starts, ends = self._in_use().tokenize_with_offsets(text)
        packed = self._in_use().pack(ids, sequence_length=40)
        return {"token_ids": packed["token_ids"], "places": tf.stack([starts, ends], 0).to_tensor(-1)}


@pytest.mark.slow
def test_served_without_this_library(tmp_path):
    some = corpus()[:1500]
    made = [
        train_bpe(some, 700, limit_alphabet=100),
        train_byte_level_bpe(some, 600),
        train_unigram(some, 500, character_coverage=0.999),
        train_wordpiece(some, 500, lowercase=False),
    ]
    assert [tokenizer.normalization for tokenizer in made] == [None, "NFC", None, "NFC"]
    expected, paths = [], []
    for tokenizer in made:
        module = Module(tokenizer)
        paths.append(str(tmp_path / str(len(paths))))
        tf.saved_model.save(module, paths[-1], signatures=module.serve)
        here = module.serve(tf.constant(TEXT))
        line = f"{here['token_ids'].numpy().tolist()} {here['places'].numpy().tolist()}"
        expected += [line, line, "[]"]
        ids = tokenizer.encode(TEXT[1])[:30]
        assert ids and ids == here["token_ids"][1, 1 : 1 + len(ids)].numpy().tolist()
    script = tmp_path / "serve.py"
    script.write_text(textwrap.dedent(SERVE), encoding="utf-8")
    result = subprocess.run([sys.executable, str(script), *paths], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == expected
