"""A pretraining step on a GPU or TPU: BERT-base and GPT-2 small on JAX, beside transformers on PyTorch.

    pip install torch transformers   # may live elsewhere
    python tests/benchmarks/accelerator_step.py --model bert --length 128 --batch 128 --peak 989 [--torch-python PYTHON]
    python tests/benchmarks/accelerator_step.py --model gpt2 --length 512 --batch 32 --peak 989
    python tests/benchmarks/accelerator_step.py --precision float32 --batch 2 --layers 1 --hidden-size 64 --heads 2 --steps 2

The work of `training_step.py` and `causal_lm_step.py`, in bfloat16 with float32 master weights; needs no TensorFlow.
PyTorch is compiled, with the attention of `scaled_dot_product_attention`, autocast and the fused AdamW. `--peak` is what
the device can do, in TFLOP/s (an H200 989 in bfloat16), of which the table has the share: 6 operations for each weight
of a product and token, forward and backward, those of attention included, recomputed ones not. Memory is what the
library has reserved at most.
"""

import argparse
import os
import time

import causal_lm_step
import training_step
from side_by_side import main, model_arguments, paced
from training_step import RATE

MODELS = {"bert": training_step.VOCABULARY, "gpt2": causal_lm_step.VOCABULARY}


def batch_of(a):
    return training_step.make_batch(a) if a.model == "bert" else {"token_ids": causal_lm_step.make_ids(a)}


def measured(a, turn, peak_bytes):
    """(unit, turn, more) of a function that does a turn, and one that returns the bytes of the device."""
    layer = 12 * a.hidden_size**2 + 2 * a.length * a.hidden_size
    share, dense = (a.predictions / a.length, a.hidden_size) if a.model == "bert" else (1, 0)
    per_token = 6 * (a.layers * layer + share * a.hidden_size * (dense + MODELS[a.model]))
    tokens, times = a.steps * a.batch * a.length, []

    def timed():
        start = time.perf_counter()
        turn()
        times.append(time.perf_counter() - start)
        return tokens

    def more():
        rate = tokens / sorted(times[1:])[len(times[1:]) // 2]  # without the first, which compiles
        done = rate * per_token / 1e12
        share = f"{done / a.peak:.2f}" if a.peak else "unknown"
        return {"TFLOP/s": f"{done:.3g}", "share of peak": share, "device memory": f"{peak_bytes() / 1e9:.1f} GB"}

    return "tokens", timed, more


def bert_tf(a):
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the other library is on the device too
    import itertools

    import jax

    from bert_tf.backend import AdamW
    from bert_tf.models import BertConfig, BertEncoder, GPT2Config, GPT2Decoder
    from bert_tf.objectives import CausalLM, MaskedLM

    policy = "mixed_bfloat16" if a.precision == "bfloat16" else "float32"
    sizes = (MODELS[a.model], a.hidden_size, a.layers, a.heads, 4 * a.hidden_size)
    if a.model == "bert":
        model = MaskedLM(BertEncoder(BertConfig(*sizes), pooler=False, dtype=policy))
    else:
        model = CausalLM(GPT2Decoder(GPT2Config(*sizes), pooler=False, dtype=policy))
    model.compile(optimizer=AdamW(RATE, global_clipnorm=1.0), steps_per_execution=a.steps)
    statistics = jax.devices()[0].memory_stats
    # The host looks at the results after all updates of a turn, which are one call of Keras's loop.
    rows = batch_of(a)
    turn = paced(model, ((rows,) for _ in itertools.count()), 1)
    return measured(a, turn, lambda: (statistics() or {"peak_bytes_in_use": 0})["peak_bytes_in_use"])


def transformers(a):
    import torch
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if a.model == "bert":
        sizes = dict(hidden_size=a.hidden_size, num_hidden_layers=a.layers, num_attention_heads=a.heads)
        config = BertConfig(vocab_size=MODELS["bert"], intermediate_size=4 * a.hidden_size, **sizes)
        model = BertForMaskedLM._from_config(config, attn_implementation="sdpa")
    else:
        config = GPT2Config(n_embd=a.hidden_size, n_layer=a.layers, n_head=a.heads)
        model = GPT2LMHeadModel._from_config(config, attn_implementation="sdpa")
    model = model.train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=True)
    batch = batch_of(a)
    ids = labels = torch.tensor(batch["token_ids"], dtype=torch.long)
    if a.model == "bert":
        labels = torch.full_like(ids, -100)
        positions = torch.tensor(batch["mask_positions"], dtype=torch.long)
        labels.scatter_(1, positions, ids.gather(1, positions))
    ids, labels = ids.to(device), labels.to(device)
    forward = torch.compile(lambda: model(input_ids=ids, labels=labels).loss)

    def turn():
        for _ in range(a.steps):
            with torch.autocast(device, torch.bfloat16, enabled=a.precision == "bfloat16"):
                loss = forward()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        loss.item()

    return measured(a, turn, torch.cuda.max_memory_reserved if device == "cuda" else lambda: 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_arguments(parser, batch=64)
    parser.set_defaults(hidden_size=768, layers=12, heads=12)
    parser.add_argument("--model", choices=MODELS, default="bert")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--predictions", type=int, default=20, help="of each row, of bert")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--peak", type=float, help="TFLOP/s of the device")
    peer = "transformers on PyTorch, compiled"
    main({"bert_tf on JAX": bert_tf, peer: transformers}, parser, reference=(peer,))
