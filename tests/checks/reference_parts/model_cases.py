"""The tiny models that all parts share: every family, and its relatives that differ by a setting."""

import dataclasses

import numpy as np

from reference_parts import library

SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24}
POSITIONS = {"max_positions": 48}
T5_SIZES = SIZES | {"head_size": 6, "num_buckets": 8, "max_distance": 6}
#: Where a model has it, it differs from the default, and is so large that float32 shows it.
EPSILON = {"layer_norm_epsilon": 1e-3}
MASKED = ("masked_lm", {"pair_task": "none"})


@dataclasses.dataclass(frozen=True)
class Model:
    """A tiny model.

    Attributes:
        family: as it is registered.
        tokenizer: a name of `library.TRAINED`, whose vocabulary it has.
        config: its settings.
        format: what inputs/models holds: a folder of a published format; None: no such format can express it, and its
            variables are in inputs/weights.
        objective: (name, settings) of the heads that stand in the folder, too; None for none.
        pooler: whether it has a pooled output.
        rows: rows of the token table beyond the vocabulary.
        load_as: what the loader must be told, where the files do not say it.
    """

    family: str
    tokenizer: str
    config: dict
    format: str | None = None
    objective: tuple | None = None
    pooler: bool = False
    rows: int = 0
    load_as: str | None = None


_SHARED = SIZES | POSITIONS | {"embedding_size": 10, "num_layers": 4, "num_groups": 2}
_LSTM = {"hidden_size": 12, "embedding_size": 8}
_ELMO = {
    "hidden_size": 12, "num_layers": 2, "units": 10, "character_size": 6, "filters": [[1, 4], [3, 6]], "highways": 1,
    "cell_clip": 0.4, "projection_clip": 0.3,
}  # fmt: skip
MODELS = {
    "bert": Model("bert", "wordpiece", SIZES | POSITIONS, "hf", ("masked_lm", {"pair_task": "nsp"}), pooler=True),
    "bert_three_segments": Model(
        "bert", "wordpiece_cased",
        SIZES | POSITIONS | {"num_segments": 3, "activation": "gelu_erf", "layer_norm_epsilon": 1e-5},
        "hf", MASKED, rows=5,
    ),
    "roberta": Model("roberta", "byte_level_bpe", SIZES | POSITIONS | EPSILON, "hf", MASKED),
    "albert": Model(
        "albert", "unigram", _SHARED | {"inner_groups": 2}, "hf", ("masked_lm", {"pair_task": "sop"}), pooler=True
    ),
    "albert_attention": Model("albert", "unigram", _SHARED | EPSILON | {"share": "attention"}),
    "albert_feed_forward": Model("albert", "unigram", _SHARED | {"share": "feed_forward"}, pooler=True),
    "albert_none": Model("albert", "unigram", _SHARED | {"share": "none", "num_groups": 1}),
    "electra": Model(
        "electra", "wordpiece", SIZES | POSITIONS | {"embedding_size": 10}, "hf",
        ("replaced_token_detection", {"generator_size": 0.5}), pooler=True,
    ),
    "electra_generator": Model("electra", "wordpiece", SIZES | POSITIONS | {"embedding_size": 10}, "hf", MASKED),
    "spanbert": Model("spanbert", "wordpiece_cased", SIZES | POSITIONS | EPSILON, "hf", MASKED, load_as="spanbert"),
    "distilbert": Model("distilbert", "wordpiece", SIZES | POSITIONS, "hf", MASKED),
    "modernbert": Model(
        "modernbert", "byte_level_bpe",
        SIZES | POSITIONS | {"num_layers": 4, "local_attention": 4, "global_theta": 50.0, "local_theta": 20.0} | EPSILON,
        "hf", MASKED,
    ),
    "xlnet": Model("xlnet", "unigram_xlnet", SIZES, "hf", ("permutation_lm", {}), pooler=True),
    "xlnet_clamped": Model("xlnet", "unigram_xlnet", SIZES | EPSILON | {"clamp_length": 3, "activation": "relu"}, "hf"),
    "gpt1": Model("gpt1", "bpe", SIZES | POSITIONS | {"intermediate_size": 64}, "hf", ("causal_lm", {})),
    "gpt2": Model("gpt2", "byte_level_bpe_gpt2", SIZES | POSITIONS | EPSILON, "hf", ("causal_lm", {}), rows=2),
    "gpt1_prefix": Model("gpt1", "bpe", SIZES | POSITIONS | EPSILON | {"prefix": True}, pooler=True),
    "transformer": Model("transformer", "byte_level_bpe", SIZES | {"num_decoder_layers": 1}),
    "transformer_pre": Model(
        "transformer", "byte_level_bpe",
        SIZES | EPSILON | {"norm": "pre", "positions": "concatenated", "attention_bias": True, "activation": "gelu_tanh"},
    ),
    "t5": Model("t5", "unigram_t5", T5_SIZES | {"num_decoder_layers": 1}, "hf", ("denoising", {}), rows=4),
    "t5_gated": Model(
        "t5", "byte", T5_SIZES | EPSILON | {"gated": True, "tied": False, "activation": "gelu_tanh"}, "hf", ("denoising", {})
    ),
    "t5_shared": Model("t5", "unigram_t5", T5_SIZES | {"share_layers": True}),
    "t5_encoder": Model("t5_encoder", "unigram_t5", T5_SIZES, "hf", load_as="t5_encoder"),
    "t5_decoder": Model("t5_decoder", "unigram_t5", T5_SIZES),
    "t5_decoder_prefix": Model("t5_decoder", "unigram_t5", T5_SIZES | EPSILON | {"prefix": True}, pooler=True),
    "lstm_lm": Model("lstm_lm", "words", _LSTM | {"forget_bias": 1.0}, pooler=True),
    "lstm_lm_tied": Model("lstm_lm", "words", _LSTM | {"embedding_size": 12, "num_layers": 2, "tied": True}),
    "elmo": Model("elmo", "characters", _ELMO, "bilm"),
    "transformer_bilm": Model("transformer_bilm", "wordpiece", SIZES | POSITIONS | EPSILON, pooler=True),
    "word_vectors": Model("word_vectors", "words_cased", {"hidden_size": 12}, pooler=True),
    # Formats without a configuration mean some of the settings.
    "electra_tf1": Model(
        "electra", "wordpiece", SIZES | POSITIONS | {"embedding_size": 10, "num_heads": 1}, "tf1",
        ("replaced_token_detection", {"generator_size": 0.5}), pooler=True,
    ),
    "gpt1_numpy": Model(
        "gpt1", "bpe", SIZES | POSITIONS | {"intermediate_size": 64, "num_heads": 1, "num_layers": 1}, "numpy", ("causal_lm", {})
    ),
    "gpt2_tf1": Model("gpt2", "byte_level_bpe_gpt2", SIZES | POSITIONS | {"intermediate_size": 64}, "tf1", ("causal_lm", {})),
    "t5_tf1": Model("t5", "unigram_t5", SIZES | {"head_size": 6, "num_layers": 1}, "tf1", ("denoising", {})),
    "bilstm": Model("bilstm", "words", {"hidden_size": 12, "embedding_size": 8, "num_layers": 2}, pooler=True),
}  # fmt: skip


def load(room, name, pretraining=False, pooler=None, **arguments):
    """(encoder, tokenizer, objective or None, source or None) of a name of `MODELS`, its weights set."""
    model = MODELS[name]
    pooler = model.pooler if pooler is None else pooler
    if model.format:
        folder = room.made(f"models/{name}", lambda path: _write(room, name, path))
        known = {"family": model.load_as} if model.load_as else {}
        given = {"pooler": pooler, "fresh": ("pooler",)} if _may_have_pooler(model) else {}
        found = library.load(folder, pretraining, **known, **given, **arguments)
        if pooler and not model.pooler:
            room.assign(f"pooler_{name}", _pooler(found[0]))
        return found
    encoder = build(room, name, pooler, **arguments)
    poolers = _pooler(encoder)
    own = library.by_path(encoder)
    room.assign(f"model_{name}", {path: variable for path, variable in own.items() if path not in poolers})
    if poolers:
        room.assign(f"pooler_{name}", poolers)
    return encoder, room.tokenizer(model.tokenizer), None, None


def _may_have_pooler(model):
    return model.family not in ("t5", "transformer", "elmo")


def _pooler(encoder):
    """The variables of the pooler, which one case has and another does not."""
    return {path: variable for path, variable in library.by_path(encoder).items() if path.startswith("pooler/")}


def build(room, name, pooler=False, **arguments):
    """The model with random weights."""
    model, tokenizer = MODELS[name], room.tokenizer(MODELS[name].tokenizer)
    config = dict(model.config)
    if model.family != "elmo":
        config["vocabulary_size"] = tokenizer.vocabulary_size + model.rows
    if model.family == "roberta":
        config["padding_id"] = tokenizer.pad_id
    given = {"pooler": pooler} if _may_have_pooler(model) else {}
    return library.new_encoder(model.family, config, **given, **arguments)


def _write(room, name, path):
    import bert_tf

    model = MODELS[name]
    encoder = build(room, name, model.pooler)
    whole = library.objective_around(encoder, *model.objective) if model.objective else encoder
    for place, variable in library.by_path(whole).items():
        variable.assign(library.draw(f"{name}/{place}", tuple(variable.shape)))
    bert_tf.save(whole, None if model.format == "bilm" else room.tokenizer(model.tokenizer), path, model.format)


def inputs(room, name, encoder):
    """The rows that a model reads, a dict of dicts: with padding, packed, and parts for generation."""
    size = encoder.config.vocabulary_size

    def make():
        random, shape = library.generator(f"rows {name}"), encoder.input["token_ids"].shape[2:]

        def ids(*rows):
            return random.integers(5, size - MODELS[name].rows, (*rows, *shape)).astype("int32")

        real = np.arange(12) < np.array([[12], [7], [1]])
        segments = np.where(real & (np.arange(12) >= 5), 1, 0).astype("int32")
        lengths = [(3, 4, 5), (6, 4)]
        packed = np.array([np.repeat(range(1, len(row) + 1), row).tolist() + [0] * (12 - sum(row)) for row in lengths])
        places = np.array([[p for n in row for p in range(n)] + [0] * (12 - sum(row)) for row in lengths])
        found = {
            "padded/token_ids": ids(3, 12), "padded/padding_mask": real, "padded/segment_ids": segments,
            "padded/prefix_mask": np.arange(12) < np.array([[4], [2], [0]]),
            "packed/token_ids": ids(2, 12), "packed/sequence_ids": packed.astype("int32"),
            "packed/position_ids": places.astype("int32"), "packed/segment_ids": (places > 1).astype("int32"),
            "packed/padding_mask": packed > 0,
            "mask_positions": np.array([[1, 5, 11], [2, 6, 0], [0, 0, 0]], "int32"),
            "prompts": ids(2, 5), "new": ids(2, 4), "prompts_mask": np.array([[True] * 5, [False] * 2 + [True] * 3]),
            "sources_mask": np.array([[True] * 5, [True] * 3 + [False] * 2]),
        }  # fmt: skip
        if "decoder_token_ids" in encoder.input:
            for rows in ("padded", "packed"):
                names = ("token_ids", "padding_mask", "sequence_ids", "position_ids")
                ours = {n: found[f"{rows}/{n}"] for n in names if f"{rows}/{n}" in found}
                ours["token_ids"] = ids(*ours["token_ids"].shape[:2])
                found |= {f"{rows}/decoder_{n}": array for n, array in ours.items()}
        return found

    arrays = room.arrays(f"batches/model_{name}", make)
    rows = {key: array for key, array in arrays.items() if "/" not in key}
    for kind in ("padded", "packed"):
        rows[kind] = {key.split("/")[1]: array for key, array in arrays.items() if key.startswith(f"{kind}/")}
        rows[kind] = {key: array for key, array in rows[kind].items() if key in encoder.input}
    return rows
