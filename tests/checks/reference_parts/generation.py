"""Generated texts with every method and restriction, scores of texts, and filled masks."""

import typing

import numpy as np

from bert_tf.export.fill_mask import ServedMaskedLM
from bert_tf.generation import GenerationConfig, TextGenerator, TextScorer
from reference_parts.model_cases import MODELS, inputs, load

PROMPTS = ["The people of the", "the states", "한국 naïve the", "union and the law, and"]
NEW = {"max_new_tokens": 10}
#: Case -> (model, settings, arguments of the generator).
CASES = {
    "greedy": ("gpt2", {}, {}),
    "sampled": ("gpt2", {"method": "sample", "seed": 3, "top_k": 20, "temperature": 0.7}, {}),
    "nucleus": ("gpt2", {"method": "sample", "seed": 11, "top_p": 0.8}, {}),
    "beams": ("gpt2", {"method": "beam_search", "beams": 3, "n_best": 3, "length_penalty": 0.8}, {}),
    "beams_huggingface": ("gpt2", {"method": "beam_search", "beams": 4, "n_best": 2, "beam_variant": "huggingface"}, {}),
    "restricted": ("gpt2", {"no_repeat_ngram": 2, "repetition_penalty": 1.3, "min_new_tokens": 4}, {}),
    "beams_restricted": ("gpt2", {"method": "beam_search", "beams": 3, "no_repeat_ngram": 1, "min_new_tokens": 3}, {}),
    "stop_strings": ("gpt2", {"method": "sample", "seed": 5, "stop_strings": ["a", "e"]}, {}),
    "allowed_tokens": ("gpt2", {"method": "sample", "seed": 1}, {"allowed_tokens": ["a", "b", "c", "e"], "stop_tokens": ["b"]}),
    "gpt1": ("gpt1", {"method": "sample", "seed": 2}, {}),
    "lstm": ("lstm_lm", {"method": "sample", "seed": 2, "top_k": 50}, {}),
    "t5": ("t5", {}, {}),
    "t5_sampled": ("t5", {"method": "sample", "seed": 4, "top_k": 30}, {}),
    "t5_beams": ("t5", {"method": "beam_search", "beams": 4, "n_best": 2}, {}),
    "t5_beams_huggingface": ("t5", {"method": "beam_search", "beams": 3, "beam_variant": "huggingface"}, {}),
    "byt5": ("t5_gated", {"method": "sample", "seed": 6}, {}),
    "transformer": ("transformer", {"method": "sample", "seed": 7}, {}),
    "prefix": ("t5_decoder_prefix", {"method": "sample", "seed": 8}, {}),
}  # fmt: skip
#: Case -> (model, settings): all weights are 0, so that all texts are equally probable.
TIED = {
    "greedy": ("gpt2", {"max_new_tokens": 3}),
    "beams": ("t5", {"method": "beam_search", "beams": 3, "n_best": 3, "max_new_tokens": 3}),
    "beams_huggingface": (
        "t5", {"method": "beam_search", "beams": 3, "n_best": 3, "beam_variant": "huggingface", "max_new_tokens": 3}
    ),
    "top_k": ("gpt2", {"method": "sample", "top_k": 5, "seed": 1, "max_new_tokens": 3}),
}  # fmt: skip
SCORED = ("gpt2", "gpt1", "lstm_lm", "t5", "transformer", "t5_decoder_prefix")
FILLED = ("bert", "roberta", "albert", "modernbert", "electra_generator", "distilbert")


def missing():
    used = {settings.get("method", "greedy") for _, settings, _ in CASES.values()}
    methods = typing.get_args(typing.get_type_hints(GenerationConfig)["method"])
    yield from (f"method {name}" for name in methods if name not in used)
    variants = typing.get_args(typing.get_type_hints(GenerationConfig)["beam_variant"])
    used = {settings.get("beam_variant", "tensor2tensor") for _, settings, _ in CASES.values()}
    yield from (f"beams of {name}" for name in variants if name not in used)


def cases(room):
    for name in CASES:
        yield name, lambda name=name: generated(room, name)
    for name in TIED:
        yield f"tied/{name}", lambda name=name: tied(room, name)
    for name in SCORED:
        yield f"scores/{name}", lambda name=name: scores(room, name)
    for name in FILLED:
        yield f"filled/{name}", lambda name=name: filled(room, name)


def model_of(room, name):
    """(model, tokenizer, frame of its prompts): loaded once for all cases."""

    def make():
        objective = MODELS[name].objective
        encoder, tokenizer, model, _ = load(room, name, pretraining=bool(objective))
        return encoder, tokenizer, model.frame(tokenizer) if model else None

    return room.once(("generation", name), make)


def generated(room, name):
    model_name, settings, arguments = CASES[name]
    model, tokenizer, frame = model_of(room, model_name)
    prompts = room.json("texts/prompts", lambda: PROMPTS)
    config = GenerationConfig(**NEW | {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()})
    generate = TextGenerator(model, tokenizer, frame=frame, **arguments)
    found = {"answers": as_dicts(generate(prompts, config))}
    if name in ("greedy", "stop_strings", "t5_sampled"):
        found["streamed"] = list(generate.stream(prompts[0], config))
    return found


def as_dicts(answers):
    return [
        [{"text": one.text, "ids": one.token_ids, "score": float(one.score), "finished": one.finished} for one in row]
        for row in answers
    ]


def tied(room, name):
    """Which of equally probable texts come first."""
    model_name, settings = TIED[name]
    model, tokenizer, objective, _ = load(room, model_name, pretraining=True)
    for variable in model.weights:
        variable.assign(0 * variable)
    generate = TextGenerator(model, tokenizer, frame=objective.frame(tokenizer))
    return as_dicts(generate(room.json("texts/prompts", lambda: PROMPTS)[:2], GenerationConfig(**settings)))


def scores(room, name):
    model, tokenizer, frame = model_of(room, name)
    scorer, prompts = TextScorer(model, tokenizer, frame=frame), room.json("texts/prompts", lambda: PROMPTS)
    pairs = [(prompt, f" {other}") for prompt, other in zip(prompts, [*prompts[1:], "of law"])]
    found = {
        "continuations": [
            {"log_likelihood": float(one.log_likelihood), "tokens": one.tokens, "greedy": one.is_greedy}
            for one in scorer.continuations(pairs)
        ]
    }
    if scorer.frame.is_source:
        if scorer.has_encoder:
            rows = inputs(room, name, model)
            sources, targets = rows["prompts"].tolist(), rows["new"].tolist()
            found["targets"] = [list(pair) for pair in scorer.target_tokens(sources, targets)]
        return found
    found["tokens"] = [list(one) for one in scorer.tokens(prompts)]
    documents = [*prompts, " ".join(prompts * 3)]
    whole = scorer.perplexity(documents, length=16, stride=5)
    found["perplexity"] = {key: getattr(whole, key) for key in ("nll", "tokens", "words", "bytes")}
    found["perplexities"] = np.array([whole.per_token, whole.per_word, whole.bits_per_byte])
    return found


def filled(room, name):
    """The best tokens at each mask: the order of equals counts, too."""
    _, tokenizer, objective, _ = load(room, name, pretraining=True)
    mask = tokenizer.id_to_token(tokenizer.mask_id)
    module = ServedMaskedLM(objective, tokenizer, min(objective.backbone.config.max_positions, 512), top_k=7)
    texts = [f"the {mask} of the union", f"{mask} {mask} naïve 한국 {mask}", f"The people{mask}."]
    found = guesses(module.fill(texts))
    for variable in objective.weights:
        variable.assign(0 * variable)
    return {"filled": found, "tied": guesses(module.fill(texts[:1]))}


def guesses(answers):
    return [
        [
            {"tokens": [token for token, _ in best], "probabilities": np.array([float(p) for _, p in best], "float32")}
            for best in masks
        ]
        for masks in answers
    ]
