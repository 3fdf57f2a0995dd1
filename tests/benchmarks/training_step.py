"""The pretraining step beside the peers': masked LM, the same shapes, the same work.

    pip install -e ".[peers]"; pip install torch transformers   # may live elsewhere
    python tests/benchmarks/training_step.py [--torch-python PYTHON] [--hidden-size 768 --layers 12
        --heads 12 --batch 8 --steps 2]

Full rows of random ids; forward and backward pass with dropout 0.1, clip at 1.0, AdamW. PyTorch's
library computes vocabulary logits at every position: that is how it trains, so that is what is timed. The last two lines
are the ceiling: nothing but matrix products, as many as a step of BERT has.
"""

import argparse
import os
import sys

from side_by_side import main, model_arguments, paced

VOCABULARY = 30522
RATE = 1e-4


def make_batch(a):
    import numpy as np

    draw = np.random.default_rng(0)
    ids = draw.integers(1000, VOCABULARY, (a.batch, a.length), dtype=np.int32)
    positions = np.stack([np.sort(draw.permutation(a.length)[: a.predictions]) for _ in range(a.batch)])
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones(ids.shape, bool),
        "mask_positions": positions.astype(np.int32),
        "mask_ids": np.take_along_axis(ids, positions, 1),
        "mask_weights": np.ones(positions.shape, np.float32),
    }


def bert_tf(policy):
    def setup(a):
        import tensorflow as tf

        from bert_tf.backend import AdamW
        from bert_tf.models.bert.config import BertConfig
        from bert_tf.models.bert.model import BertEncoder
        from bert_tf.objectives import MaskedLM

        config = BertConfig(VOCABULARY, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
        model = MaskedLM(BertEncoder(config, pooler=False, dtype=policy))
        model.compile(optimizer=AdamW(RATE, global_clipnorm=1.0))
        data = tf.data.Dataset.from_tensors(make_batch(a)).repeat()
        return "tokens", fit_steps(model, data, a)

    return setup


def fit_steps(model, data, a):
    train = paced(model, data, a.steps)
    return lambda: (train(), a.steps * a.batch * a.length)[1]


def garden_model(a, policy, vocabulary=VOCABULARY):
    """(model, optimizer, function from a batch of Model Garden's to the loss of one update)."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf
    import tf_keras
    from official.modeling import tf_utils
    from official.nlp import optimization
    from official.nlp.modeling import models, networks

    tf_keras.mixed_precision.set_global_policy(policy)
    start = tf_keras.initializers.TruncatedNormal(stddev=0.02)
    encoder = networks.BertEncoderV2(
        vocab_size=vocabulary,
        type_vocab_size=2,
        hidden_size=a.hidden_size,
        num_layers=a.layers,
        num_attention_heads=a.heads,
        inner_dim=4 * a.hidden_size,
        initializer=start,
    )
    model = models.BertPretrainerV2(encoder, mlm_activation=tf_utils.get_activation("gelu"), mlm_initializer=start)
    optimizer = optimization.AdamWeightDecay(
        learning_rate=RATE, weight_decay_rate=0.01, gradient_clip_norm=1.0, exclude_from_weight_decay=["norm", "bias"]
    )

    @tf.function  # the step of official/nlp/tasks/masked_lm.py
    def step(batch):
        inputs = {name: batch[name] for name in GARDEN_INPUTS}
        labels, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
        with tf.GradientTape() as tape:
            logits = tf.cast(model(inputs, training=True)["mlm_logits"], tf.float32)
            losses = tf_keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses * weights), tf.reduce_sum(weights))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return model, optimizer, step


GARDEN_INPUTS = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")


def model_garden(policy):
    def setup(a):
        *_, step = garden_model(a, policy)
        import tensorflow as tf

        ours = make_batch(a)
        batch = {
            "input_word_ids": ours["token_ids"],
            "input_mask": ours["padding_mask"].astype("int32"),
            "input_type_ids": ours["segment_ids"],
            "masked_lm_positions": ours["mask_positions"],
            "masked_lm_ids": ours["mask_ids"],
            "masked_lm_weights": ours["mask_weights"],
        }
        data = iter(tf.data.Dataset.from_tensors(batch).repeat())

        def turn():
            for _ in range(a.steps):
                loss = step(next(data))
            loss.numpy()
            return a.steps * a.batch * a.length

        return "tokens", turn

    return setup


def keras_hub(policy):
    def setup(a):
        import keras
        import keras_hub as hub
        import tensorflow as tf

        backbone = hub.models.BertBackbone(
            vocabulary_size=VOCABULARY,
            num_layers=a.layers,
            num_heads=a.heads,
            hidden_dim=a.hidden_size,
            intermediate_dim=4 * a.hidden_size,
            dtype=policy,
        )
        model = hub.models.BertMaskedLM(backbone=backbone, preprocessor=None)
        optimizer = keras.optimizers.AdamW(RATE, weight_decay=0.01, global_clipnorm=1.0)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=False)  # with XLA it is slower on a CPU
        batch = make_batch(a)
        inputs = {key: batch[key] for key in ("token_ids", "segment_ids", "padding_mask", "mask_positions")}
        data = tf.data.Dataset.from_tensors((inputs, batch["mask_ids"], batch["mask_weights"])).repeat()
        return "tokens", fit_steps(model, data, a)

    return setup


def transformers(bfloat16):
    def setup(a):
        import torch
        from transformers import BertConfig, BertForMaskedLM

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=VOCABULARY,
                hidden_size=a.hidden_size,
                num_hidden_layers=a.layers,
                num_attention_heads=a.heads,
                intermediate_size=4 * a.hidden_size,
            )
        ).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
        batch = make_batch(a)
        ids = torch.tensor(batch["token_ids"], dtype=torch.long)
        labels = torch.full_like(ids, -100)
        positions = torch.tensor(batch["mask_positions"], dtype=torch.long)
        labels.scatter_(1, positions, ids.gather(1, positions))

        def turn():
            for _ in range(a.steps):
                with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                    loss = model(input_ids=ids, labels=labels).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            loss.item()
            return a.steps * a.batch * a.length

        return "tokens", turn

    return setup


def matrix_products(policy):
    """As many multiplications as a step has, in square products of 1024: what the machine could do at best."""

    def setup(a):
        import tensorflow as tf

        layer = 12 * a.hidden_size**2 + 2 * a.length * a.hidden_size
        share = a.predictions / a.length
        per_token = a.layers * layer + share * a.hidden_size * (a.hidden_size + VOCABULARY)
        x = tf.cast(tf.random.normal([1024, 1024]), "bfloat16" if "bfloat16" in policy else "float32")
        repetitions = round(3 * per_token * a.steps * a.batch * a.length / 1024**3)
        print(f"{6 * per_token / 1e6:.0f} MFLOP a token", file=sys.stderr)

        @tf.function
        def products():
            y = x
            for _ in tf.range(repetitions):
                y = tf.matmul(x, x)
            return y[0, 0]

        def turn():
            products().numpy()
            return a.steps * a.batch * a.length

        return "tokens", turn

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_arguments(parser, batch=16)
    parser.add_argument("--predictions", type=int, default=20, help="of each row")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    main(
        {
            "bert_tf, bfloat16": bert_tf("mixed_bfloat16"),
            "bert_tf, float32": bert_tf("float32"),
            "Model Garden, bfloat16": model_garden("mixed_bfloat16"),
            "Model Garden, float32": model_garden("float32"),
            "KerasHub, bfloat16": keras_hub("mixed_bfloat16"),
            "KerasHub, float32": keras_hub("float32"),
            "transformers on PyTorch, bfloat16": transformers(True),
            "transformers on PyTorch, float32": transformers(False),
            "matrix products alone, bfloat16": matrix_products("mixed_bfloat16"),
            "matrix products alone, float32": matrix_products("float32"),
        },
        parser,
        reference=("Model Garden, float32", "KerasHub, float32"),
    )
