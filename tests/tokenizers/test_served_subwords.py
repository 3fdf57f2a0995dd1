"""All kinds of tokenizers in one SavedModel, served without this library, and with no growing memory."""

import subprocess
import sys
import textwrap

import tensorflow as tf
from subword_oracle import corpus

from bert_tf.tokenizers import train_bpe, train_byte_level_bpe, train_unigram

SERVE = """
    import sys
    import tensorflow as tf, tensorflow_text
    text = ["The <mask> é naïve [MASK]!", "x" * 101 + " isn't  12,", ""]
    loaded = tf.saved_model.load(sys.argv[1])
    for name, rows in sorted(loaded.serve(tf.constant(text)).items()): print(name, rows.numpy().tolist())
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["text"].name: text}
        for name in sorted(signature.outputs):
            print(name, session.run(signature.outputs[name].name, feed).tolist())
        functions = graph.as_graph_def().library.function
        kinds = {node.op for f in functions for node in f.node_def} | {op.type for op in graph.get_operations()}
        print(sorted(k for k in kinds if "Mutable" in k or "PyFunc" in k or "Variable" in k))
    assert not any(name.startswith("bert_tf") for name in sys.modules)
"""


def test_served_without_this_library(tmp_path):
    some = corpus()[:1500]
    made = {
        "bpe": train_bpe(some, 700, limit_alphabet=100),
        "byte_level": train_byte_level_bpe(some, 600),
        "unigram": train_unigram(some, 500, character_coverage=0.999),
    }

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def serve(self, text):
            outputs = {}
            for name, tokenizer in made.items():
                ids, starts, ends = tokenizer.tokenize_with_offsets(text)
                outputs[name + "_ids"] = tokenizer.pack(tokenizer.tokenize(text), sequence_length=40)["token_ids"]
                outputs[name + "_places"] = tf.stack([ids, starts, ends], 0).to_tensor(-1)
            return outputs

    module = Module()
    module.resources = [tokenizer.resources for tokenizer in made.values()]
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    script = tmp_path / "serve.py"
    script.write_text(textwrap.dedent(SERVE), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "model")], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    text = ["The <mask> é naïve [MASK]!", "x" * 101 + " isn't  12,", ""]
    expected = [f"{name} {rows.numpy().tolist()}" for name, rows in sorted(module.serve(tf.constant(text)).items())]
    assert result.stdout.splitlines() == [*expected, *expected, "[]"]
    for tokenizer in made.values():
        assert tokenizer.encode(text[1]) == tokenizer.tokenize(tf.constant(text))[1].numpy().tolist()
