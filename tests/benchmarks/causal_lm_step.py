"""The training step of a GPT-2 beside the peers': the next token at every position, the same shapes, the same work.

    pip install torch transformers   # may live elsewhere
    python tests/benchmarks/causal_lm_step.py [--torch-python PYTHON] [--hidden-size 768 --layers 12 --heads 12
        --batch 4 --steps 2]

Full rows of random ids; forward and backward pass with dropout 0.1, clip at 1.0, AdamW. All compute the logits of
50,257 tokens at every position.
"""

import argparse

from side_by_side import main, model_arguments
from training_step import RATE, fit_steps

VOCABULARY = 50257


def make_ids(a):
    import numpy as np

    return np.random.default_rng(0).integers(1000, VOCABULARY, (a.batch, a.length), dtype=np.int32)


def bert_tf(policy):
    def setup(a):
        import tensorflow as tf

        from bert_tf.backend import AdamW
        from bert_tf.models.gpt2.config import GPT2Config
        from bert_tf.models.gpt2.model import GPT2Decoder
        from bert_tf.objectives import CausalLM

        config = GPT2Config(VOCABULARY, a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
        model = CausalLM(GPT2Decoder(config, pooler=False, dtype=policy))
        model.compile(optimizer=AdamW(RATE, global_clipnorm=1.0))
        data = tf.data.Dataset.from_tensors({"token_ids": make_ids(a)}).repeat()
        return "tokens", fit_steps(model, data, a)

    return setup


def keras_hub(policy):
    def setup(a):
        import keras
        import keras_hub as hub
        import numpy as np
        import tensorflow as tf

        backbone = hub.models.GPT2Backbone(
            vocabulary_size=VOCABULARY,
            num_layers=a.layers,
            num_heads=a.heads,
            hidden_dim=a.hidden_size,
            intermediate_dim=4 * a.hidden_size,
            dtype=policy,
        )
        model = hub.models.GPT2CausalLM(backbone, preprocessor=None)
        optimizer = keras.optimizers.AdamW(RATE, weight_decay=0.01, global_clipnorm=1.0)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=False)
        ids = make_ids(a)
        weights = np.ones(ids.shape, np.float32)
        weights[:, -1] = 0.0
        inputs = {"token_ids": ids, "padding_mask": np.ones(ids.shape, bool)}
        data = tf.data.Dataset.from_tensors((inputs, np.roll(ids, -1, axis=1), weights)).repeat()
        return "tokens", fit_steps(model, data, a)

    return setup


def transformers(bfloat16):
    def setup(a):
        import os

        import torch
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        config = GPT2Config(n_embd=a.hidden_size, n_layer=a.layers, n_head=a.heads)
        model = GPT2LMHeadModel(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
        ids = torch.tensor(make_ids(a), dtype=torch.long)

        def turn():
            for _ in range(a.steps):
                with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                    loss = model(input_ids=ids, labels=ids).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            loss.item()
            return a.steps * a.batch * a.length

        return "tokens", turn

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_arguments(parser, batch=8)
    parser.add_argument("--steps", type=int, default=4, help="of a turn")
    main(
        {
            "bert_tf, float32": bert_tf("float32"),
            "bert_tf, bfloat16": bert_tf("mixed_bfloat16"),
            "KerasHub, float32": keras_hub("float32"),
            "KerasHub, bfloat16": keras_hub("mixed_bfloat16"),
            "transformers on PyTorch, float32": transformers(False),
            "transformers on PyTorch, bfloat16": transformers(True),
        },
        parser,
        reference=("transformers on PyTorch, float32", "KerasHub, float32"),
    )
