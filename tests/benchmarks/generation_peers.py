"""What `generation.py` measures beside bert_tf: the sizes of the models, transformers on PyTorch, and ctranslate2."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple


class Size(NamedTuple):
    """The published sizes of a model."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    intermediate: int


SIZES = {"gpt2": Size(50257, 768, 12, 12, 3072), "t5": Size(32128, 768, 12, 12, 3072)}  # GPT-2 124M, T5-base


def prompts(a):
    """int32 [batch, prompt]: random ids that no model reads as special."""
    import numpy as np

    return np.random.default_rng(0).integers(1000, 2000, (a.batch, a.prompt), dtype=np.int32)


def cache_megabytes(a):
    """The keys and values of all layers, heads and positions; an encoder-decoder's of both of its attentions."""
    size, rows = SIZES[a.model], a.batch * a.beams
    positions = a.prompt + a.new_tokens + (1 if a.model == "t5" else 0)
    return 2 * size.layers * rows * positions * size.hidden * 4 / 1e6


def torch_model(a):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

    torch.set_num_threads(a.threads)
    size = SIZES[a.model]
    if a.model == "gpt2":
        return GPT2LMHeadModel(GPT2Config()).eval()  # its defaults are the 124M model's
    config = T5Config(
        vocab_size=size.vocabulary,
        d_model=size.hidden,
        d_kv=size.hidden // size.heads,
        d_ff=size.intermediate,
        num_layers=size.layers,
        num_heads=size.heads,
        decoder_start_token_id=0,
    )
    return T5ForConditionalGeneration(config).eval()


def transformers(a):
    """A pair: function from the number of new tokens to nothing; None."""
    import torch

    model, ids = torch_model(a), torch.tensor(prompts(a), dtype=torch.long)
    mask = torch.ones_like(ids)

    def generate(new):
        options = {"max_new_tokens": new, "min_new_tokens": new, "num_beams": a.beams, "do_sample": False}
        with torch.inference_mode():
            found = model.generate(ids, attention_mask=mask, pad_token_id=0, eos_token_id=1, **options)
        assert found.shape[1] == new + (a.prompt if a.model == "gpt2" else 1)

    return generate, None


def ctranslate2(a):
    """A pair: function from the number of new tokens to nothing; the seconds of the conversion."""
    import ctranslate2 as ct
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    folder, words = Path(tempfile.mkdtemp()), ["<pad>", "</s>", "<unk>"]
    words += [f"w{i}" for i in range(len(words), SIZES[a.model].vocabulary)]
    vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    special = {"pad_token": "<pad>", "eos_token": "</s>", "bos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=vocabulary, **special).save_pretrained(folder / "torch")
    torch_model(a).save_pretrained(folder / "torch")
    start = time.perf_counter()
    ct.converters.TransformersConverter(str(folder / "torch")).convert(str(folder / "converted"))
    seconds = time.perf_counter() - start
    tokens = [[words[i] for i in row] for row in prompts(a)]
    options = {"device": "cpu", "compute_type": "float32", "inter_threads": 1, "intra_threads": a.threads}
    if a.model == "gpt2":
        generator = ct.Generator(str(folder / "converted"), **options)

        def generate(new):
            found = generator.generate_batch(
                tokens, beam_size=a.beams, max_length=new, min_length=new, include_prompt_in_result=False
            )
            assert all(len(result.sequences_ids[0]) == new for result in found)
    else:
        translator = ct.Translator(str(folder / "converted"), **options)

        def generate(new):
            found = translator.translate_batch(
                tokens, beam_size=a.beams, max_decoding_length=new, min_decoding_length=new
            )
            assert all(len(result.hypotheses[0]) == new for result in found)

    return generate, seconds
