"""Whether the original authors' code opens the TensorFlow 1 checkpoints that we write, and agrees.

    python tests/checks/original_code_opens.py bert <clone of google-research/bert>
    python tests/checks/original_code_opens.py albert <clone of google-research/albert>
    python tests/checks/original_code_opens.py electra <clone of google-research/electra>
    python tests/checks/original_code_opens.py xlnet <clone of zihangdai/xlnet>

A small random model of ours is saved; the original's `modeling.py` builds its graph, restores every
variable of it from the checkpoint, and computes the same outputs to 1e-5. That code needs
TensorFlow 1.15: what later versions took away (`tf.layers`, `tf.contrib.layers.layer_norm`) is
stood in for below, by the same variables and formulas.
"""

import importlib
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import tensorflow

import bert_tf
from bert_tf.models import BertConfig, BertEncoder
from bert_tf.models.albert.config import AlbertConfig
from bert_tf.models.albert.model import AlbertEncoder
from bert_tf.models.electra.config import ElectraConfig
from bert_tf.models.electra.model import ElectraEncoder
from bert_tf.models.xlnet.config import XLNetConfig
from bert_tf.models.xlnet.model import XLNetEncoder

v1 = tensorflow.compat.v1
IDS = np.array([[5, 6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 0, 0, 0]], "int32")
REAL = IDS > 0
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0]], "int32")
SIZES = dict(vocabulary_size=40, hidden_size=128, num_heads=2, intermediate_size=72)


def dense(inputs, units, activation=None, use_bias=True, kernel_initializer=None, name=None, **_):
    with v1.variable_scope(name, default_name="dense"):
        kernel = v1.get_variable("kernel", [inputs.shape[-1], units], initializer=kernel_initializer)
        x = v1.tensordot(inputs, kernel, [[-1], [0]])
        x = x + v1.get_variable("bias", [units], initializer=v1.zeros_initializer()) if use_bias else x
    return activation(x) if activation else x


def layer_norm(inputs, begin_norm_axis=-1, begin_params_axis=-1, scope=None):
    with v1.variable_scope(scope, default_name="LayerNorm"):
        size = [inputs.shape[-1]]
        beta = v1.get_variable("beta", size, initializer=v1.zeros_initializer())
        gamma = v1.get_variable("gamma", size, initializer=v1.ones_initializer())
        mean, variance = v1.nn.moments(inputs, [-1], keep_dims=True)
        return v1.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


def original(clone, module):
    """A module of the original code, which sees TensorFlow as it was."""
    old = types.ModuleType("tensorflow")
    old.__dict__.update({name: getattr(v1, name) for name in dir(v1) if not name.startswith("__")})
    old.layers = types.SimpleNamespace(dense=dense, dropout=lambda x, *_, **__: x)
    old.contrib = types.ModuleType("tensorflow.contrib")
    old.contrib.layers = types.SimpleNamespace(layer_norm=layer_norm)
    old.compat = types.SimpleNamespace(v1=old)
    names = {"tensorflow": old, "tensorflow.compat": old.compat, "tensorflow.compat.v1": old,
             "tensorflow.contrib": old.contrib}  # fmt: skip
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    sys.path.insert(0, clone)
    try:
        return importlib.import_module(module)
    finally:
        sys.modules.update({name: value for name, value in before.items() if value is not None})


def bert(clone, folder):
    modeling = original(clone, "modeling")
    config = modeling.BertConfig.from_json_file(str(folder / "bert_config.json"))
    model = modeling.BertModel(
        config, False, v1.constant(IDS), v1.constant(REAL.astype("int32")), v1.constant(SEGMENTS)
    )
    return {"sequence_output": model.get_sequence_output(), "pooled_output": model.get_pooled_output()}


def albert(clone, folder):
    modeling = original(clone, "modeling")
    config = modeling.AlbertConfig.from_json_file(str(folder / "albert_config.json"))
    model = modeling.AlbertModel(
        config, False, v1.constant(IDS), v1.constant(REAL.astype("int32")), v1.constant(SEGMENTS)
    )
    return {"sequence_output": model.get_sequence_output(), "pooled_output": model.get_pooled_output()}


def electra(clone, folder):
    modeling = original(clone, "model.modeling")
    config = modeling.BertConfig(40, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=72,
                                 max_position_embeddings=16)  # fmt: skip
    model = modeling.BertModel(
        config, False, v1.constant(IDS), v1.constant(REAL.astype("int32")), v1.constant(SEGMENTS), embedding_size=24
    )
    return {"sequence_output": model.get_sequence_output()}


def xlnet(clone, folder):
    modeling = original(clone, "modeling")
    values = dict(n_token=40, n_layer=2, d_model=128, n_head=2, d_head=64, d_inner=72)
    with v1.variable_scope("model"):
        output, *_ = modeling.transformer_xl(
            inp_k=v1.constant(IDS.T), seg_id=v1.constant(SEGMENTS.T), input_mask=v1.constant((~REAL).T.astype("float32")),
            mems=None, perm_mask=None, target_mapping=None, inp_q=None, dropout=0.0, dropatt=0.0, attn_type="bi", bi_data=False,
            initializer=v1.zeros_initializer(), is_training=False, ff_activation="gelu", untie_r=True, clamp_len=-1,
            same_length=False, mem_len=None, reuse_len=None, use_tpu=True, **values,
        )  # fmt: skip
    return {"sequence_output": v1.transpose(output, [1, 0, 2])}


MODELS = {
    "bert": (bert, lambda: BertEncoder(BertConfig(**SIZES, num_layers=2, max_positions=16))),
    "albert": (albert, lambda: AlbertEncoder(
        AlbertConfig(**SIZES, embedding_size=24, num_layers=4, num_groups=2, inner_groups=2, max_positions=16))),
    "electra": (electra, lambda: ElectraEncoder(
        ElectraConfig(**SIZES, embedding_size=24, num_layers=2, max_positions=16), pooler=False)),
    "xlnet": (xlnet, lambda: XLNetEncoder(XLNetConfig(**SIZES, num_layers=2), pooler=False)),
}  # fmt: skip


def main(family, clone):
    build, make = MODELS[family]
    encoder, generator = make(), np.random.default_rng(0)
    for variable in encoder.weights:
        variable.assign(np.asarray(variable) + 0.1 * generator.normal(size=variable.shape))
    outputs = encoder({"token_ids": IDS, "padding_mask": REAL, "segment_ids": SEGMENTS})
    ours = {name: np.asarray(value) for name, value in outputs.items()}
    folder = Path(tempfile.mkdtemp()) / "written"
    bert_tf.save(encoder, None, folder, format="tf1")
    with v1.Graph().as_default(), v1.Session() as session:
        v1.disable_resource_variables()
        theirs = build(clone, folder)
        variables = v1.global_variables()
        v1.train.Saver(variables).restore(session, v1.train.latest_checkpoint(str(folder)))
        theirs = session.run(theirs)
    in_file = {name for name, _ in tensorflow.train.list_variables(str(folder))}
    unread = in_file - {v.op.name for v in variables}
    print(f"{family}: the original restored {len(variables)} variables; not asked for: {sorted(unread) or 'none'}")
    for name, value in theirs.items():
        real = REAL if value.ndim == 3 else slice(None)
        error = np.max(np.abs(ours[name] - value)[real]) / np.max(np.abs(value))
        print(f"  {name}: relative difference {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main(*sys.argv[1:])
