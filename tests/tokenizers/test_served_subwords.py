"""What a process of its own shows: tokenizers in a v1 session without this library, and training that repeats.

WordPiece is in all exports (tests/export), and `check_tokenizer` loads every kind in TensorFlow 2.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from subword_oracle import corpus
from wordpiece_oracle import sample_sentences

from bert_tf.tokenizers import train_bpe, train_byte_level_bpe, train_unigram, train_wordpiece

TEXT = ["The <mask> e\u0301 naïve [MASK]!", "x" * 101 + " isn't  12,", ""]
SERVE = """
import sys
import tensorflow as tf, tensorflow_text
text = ["The <mask> e\u0301 naïve [MASK]!", "x" * 101 + " isn't  12,", ""]
with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
    meta = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = meta.signature_def["serving_default"]
    names = [signature.outputs[name].name for name in sorted(signature.outputs)]
    print([result.tolist() for result in session.run(names, {signature.inputs["text"].name: text})])
    functions = graph.as_graph_def().library.function
    kinds = {node.op for f in functions for node in f.node_def} | {op.type for op in graph.get_operations()}
    print(sorted(k for k in kinds if "Mutable" in k or "PyFunc" in k or "Variable" in k))
assert not any(name.startswith("bert_tf") for name in sys.modules)
from test_served_subwords import fingerprints
print(*fingerprints(-1))
"""


def fingerprints(step):
    """Of what is trained; the order of the texts makes no difference to whole words."""
    some = sample_sentences()[:800]
    words = train_wordpiece(iter(some[::step]), 600, lowercase=False)
    return [made.fingerprint for made in (train_byte_level_bpe(some, 600), train_bpe(some, 600), words)]


@pytest.mark.slow
def test_another_process_serves_without_this_library_and_trains_the_same_files(tmp_path):
    some = corpus()[:1500]
    made = [train_byte_level_bpe(some, 600), train_unigram(some, 500, character_coverage=0.999)]
    assert [tokenizer.normalization for tokenizer in made] == ["NFC", None]
    module = tf.Module()
    module.resources = [tokenizer.resources for tokenizer in made]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        outputs = {}
        for number, tokenizer in enumerate(made):
            ids, starts, ends = tokenizer.tokenize_with_offsets(text)
            outputs[f"{number} ids"] = tokenizer.pack(ids, sequence_length=40)["token_ids"]
            outputs[f"{number} places"] = tf.stack([starts, ends], 0).to_tensor(-1)
        return outputs

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.serve)
    here = {name: value.numpy().tolist() for name, value in module.serve(tf.constant(TEXT)).items()}
    for number, tokenizer in enumerate(made):
        ids = tokenizer.encode(TEXT[1])[:30]
        assert ids and ids == here[f"{number} ids"][1][1 : 1 + len(ids)]
    (tmp_path / "serve.py").write_text(SERVE, encoding="utf-8")
    command = [sys.executable, tmp_path / "serve.py", tmp_path / "saved"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    served, operations, trained = result.stdout.splitlines()
    assert served == str([here[name] for name in sorted(here)])
    assert operations == "[]"
    assert trained.split() == fingerprints(1)
