"""New tokens a second: GPT-2 greedily, or T5 with beam search, beside the peers.

    pip install ctranslate2 torch transformers   # may live elsewhere
    python tests/benchmarks/generation.py [--torch-python PYTHON] [--model gpt2] [--batch 8] [--new-tokens 64]
        [--threads 2]

Random weights of the published sizes. No text ends early, so all write the same number of tokens; tokens of the best
text count. "made" is the time of the first call less that of a later one: tracing or compiling, or the conversion of
the model. "first token" is the time of a call that writes one token. The cache is computed: 2 (keys and values) x
layers x rows x positions x heads x head size x 4 bytes; with beams also the attention to the source.
The exported model reads text: its vocabulary is a small one, the model's is not, and the longer text of each prompt is
cut to the same number of tokens.
"""

import argparse
import os
import tempfile
import time

from generation_peers import SIZES, cache_megabytes, ctranslate2, prompts, transformers
from serving import read_texts
from side_by_side import main


def timed(turn):
    start = time.perf_counter()
    turn()
    return time.perf_counter() - start


def measured(a, generate, made=None):
    """What `side_by_side` wants, of a function from the number of new tokens to nothing."""
    start, seconds = timed(lambda: generate(a.new_tokens)), []

    def turn():
        seconds.append(timed(lambda: generate(a.new_tokens)))
        return a.batch * a.new_tokens

    def more():
        generate(1)
        first = min(timed(lambda: generate(1)) for _ in range(3))
        return {
            "first token": f"{1000 * first:.0f} ms",
            "made": f"{start - seconds[0] if made is None else made:.1f} s",
            "cache": f"{cache_megabytes(a):.1f} MB",
        }

    return "tokens", turn, more


def tensorflow(a):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(a.threads)
    tf.config.threading.set_inter_op_parallelism_threads(a.threads)
    return tf


def our_model(a):
    size = SIZES[a.model]
    if a.model == "gpt2":
        from bert_tf.models.gpt2.config import GPT2Config
        from bert_tf.models.gpt2.model import GPT2Decoder

        config = GPT2Config(size.vocabulary, size.hidden, size.layers, size.heads, size.intermediate)
        return GPT2Decoder(config)
    from bert_tf.models.t5.config import T5Config
    from bert_tf.models.t5.model import T5

    return T5(
        T5Config(
            size.vocabulary,
            size.hidden,
            num_layers=size.layers,
            num_heads=size.heads,
            head_size=size.hidden // size.heads,
            intermediate_size=size.intermediate,
        )
    )


def settings(a, new):
    found = {"max_new_tokens": new}
    return found if a.beams == 1 else found | {"method": "beam_search", "beams": a.beams}


def bert_tf(a):
    import numpy as np

    tensorflow(a)
    from bert_tf.backend import as_graph
    from bert_tf.generation import (
        DecoderSteps,
        EncoderDecoderSteps,
        GenerationConfig,
        Restrictions,
        beam_search,
        generate_tokens,
    )

    model, ids = our_model(a), prompts(a)
    search = generate_tokens if a.beams == 1 else beam_search
    mask, functions = np.ones_like(ids, bool), {}

    def function_of(new):
        def function(token_ids, mask):
            if model.structure == "decoder":
                steps = DecoderSteps(model, token_ids, mask, new)
            else:
                steps = EncoderDecoderSteps(model, token_ids, mask, new, start_id=0)
            return search(steps, GenerationConfig(**settings(a, new)), Restrictions())

        return as_graph(function, [((None, None), "int32"), ((None, None), "bool")])

    def generate(new):
        if new not in functions:
            functions[new] = function_of(new)
        assert functions[new](ids, mask)["token_ids"].numpy().shape[-1] == new

    return measured(a, generate)


def exported(a):
    os.environ["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] = "1"  # as docs/guides/serve.md starts a server
    tf = tensorflow(a)
    from bert_tf.export.generation import ServedGeneration
    from bert_tf.objectives import CausalLM, TextToText
    from bert_tf.tokenizers import train_wordpiece

    texts = read_texts()
    tokenizer = train_wordpiece(texts, 2000, lowercase=True)
    texts = [" ".join(texts[i:] + texts[:i])[:2000] for i in range(a.batch)]
    wrapped = (CausalLM if a.model == "gpt2" else TextToText)(our_model(a))
    options = settings(a, a.new_tokens) | {"min_new_tokens": a.new_tokens}
    module = ServedGeneration(wrapped, tokenizer, sequence_length=a.prompt, **options)
    path = tempfile.mkdtemp()
    tf.saved_model.save(module, path, signatures=module.traced())
    del module, wrapped
    signatures = tf.saved_model.load(path).signatures

    def generate(new):
        inputs = {"text": tf.constant(texts)}
        if new < a.new_tokens:
            inputs |= dict.fromkeys(("min_new_tokens", "max_new_tokens"), tf.fill([a.batch], new))
        answer = signatures["generate" if new < a.new_tokens else "serving_default"](**inputs)
        assert (answer["lengths"].numpy() == new).all(), answer["lengths"]

    return measured(a, generate)


def keras_hub(xla):
    def setup(a):
        import numpy as np

        tensorflow(a)
        import keras_hub as hub

        size = SIZES[a.model]
        sizes = {
            "vocabulary_size": size.vocabulary,
            "num_layers": size.layers,
            "num_heads": size.heads,
            "hidden_dim": size.hidden,
            "intermediate_dim": size.intermediate,
        }
        if a.model == "gpt2":
            model = hub.models.GPT2CausalLM(hub.models.GPT2Backbone(**sizes), preprocessor=None)
        else:
            backbone = hub.models.T5Backbone(**sizes, activation="relu", use_gated_activation=False)
            model = hub.models.T5Seq2SeqLM(backbone, preprocessor=None)
        sampler = "greedy" if a.beams == 1 else hub.samplers.BeamSampler(num_beams=a.beams)
        model.compile(sampler=sampler, jit_compile=xla)
        ids = prompts(a)

        def rows(begin, new, prefix=""):
            padded = np.pad(begin, [(0, 0), (0, new)])
            real = np.broadcast_to(np.arange(padded.shape[1]) < begin.shape[1], padded.shape)
            return {f"{prefix}token_ids": padded, f"{prefix}padding_mask": real}

        def generate(new):
            inputs = rows(ids, new)
            if a.model == "t5":
                inputs = rows(ids, 0, "encoder_") | rows(np.zeros_like(ids[:, :1]), new, "decoder_")
            model.generate(inputs, stop_token_ids=None)

        return measured(a, generate)

    return setup


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(SIZES), default="gpt2")
    parser.add_argument("--batch", type=int, default=1, help="prompts at once")
    parser.add_argument("--prompt", type=int, default=32, help="tokens of each prompt, or of each source of T5")
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    main(
        {
            "bert_tf in Python": bert_tf,
            "bert_tf exported": exported,
            "KerasHub, graph": keras_hub(False),
            "KerasHub, XLA": keras_hub(True),
            "transformers on PyTorch": lambda a: measured(a, *transformers(a)),
            "ctranslate2, float32": lambda a: measured(a, *ctranslate2(a)),
        },
        parser,
        reference=("ctranslate2, float32", "KerasHub, graph"),
    )
