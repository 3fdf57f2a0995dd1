"""Twelve updates of a model of every family and objective, on the backend that KERAS_BACKEND names.

    KERAS_BACKEND=jax python tests/backend/twelve_steps.py FILE [OBJECTIVE ...]

Weights and features are NumPy's, so that backends can be compared. Writes `results` to FILE, an .npz, and prints the backends that
are imported. With names of `objectives` these alone, on a batch of eight rows that is divided over all devices of JAX; of
"divided:NAME" the weights are, too, over two devices each.
"""

import json
import re
import sys

import keras
import numpy as np

from bert_tf import models as m
from bert_tf import objectives as o
from bert_tf.backend import AdamW, WarmupDecay, layout_map
from bert_tf.models.electra.config import generator_config
from bert_tf.models.electra.model import make_generator
from bert_tf.objectives.settings import WordsConfig

VOCABULARY, BATCH, LENGTH, PREDICTIONS = 40, 4, 16, 4
SIZES = dict(vocabulary_size=VOCABULARY, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24)

#: Before the names of objectives whose weights are divided over devices.
DIVIDED = "divided:"
DECODERS = ("gpt1", "gpt2", "t5_decoder", "lstm_lm", "sa_lstm")


def objectives():
    """A small model of every family and objective, by a name. Some have dropout, others compile faster without."""
    dropout, one = 0.1, SIZES | {"dropout": 0.0, "attention_dropout": 0.0}
    two = one | {"num_layers": 2}  # which share weights, or of which only the second attends locally
    t5 = {name: value for name, value in one.items() if name != "attention_dropout"}
    t5 |= {"head_size": 8, "num_buckets": 8}
    elmo = dict(num_layers=1, units=12, filters=((1, 4),), highways=1, max_characters=3, dropout=dropout)
    lstm = dict(hidden_size=8, embedding_size=6, embedding_dropout=dropout)
    electra = m.ElectraConfig(embedding_size=8, **one)
    discriminator = m.ElectraEncoder(electra, pooler=False)
    generator = make_generator(discriminator, generator_config(electra, 0.5))
    return {
        # With a pooler that gets no gradient.
        "bert": o.MaskedLM(m.BertEncoder(m.BertConfig(**SIZES, dropout=dropout, attention_dropout=dropout))),
        "roberta": o.MaskedLM(m.RobertaEncoder(m.RobertaConfig(**one), pooler=False)),
        "albert": o.MaskedLM(m.AlbertEncoder(m.AlbertConfig(embedding_size=8, **two)), pair_task="sop"),
        "distilbert": o.MaskedLM(m.DistilBertEncoder(m.DistilBertConfig(**one))),
        "modernbert": o.MaskedLM(m.ModernBertEncoder(m.ModernBertConfig(local_attention=4, **two))),
        "spanbert": o.MaskedLM(m.SpanBertEncoder(m.SpanBertConfig(**one)), pair_task="nsp", span_boundary=True),
        "electra": o.ReplacedTokenDetection(discriminator, generator),
        "xlnet": o.PermutationLM(m.XLNetEncoder(m.XLNetConfig(**one), pooler=False), segments=2, memory_length=8),
        "gpt1": o.CausalLM(m.GPT1Decoder(m.GPT1Config(**one))),
        "gpt2": o.CausalLM(m.GPT2Decoder(m.GPT2Config(**one))),
        "t5_decoder": o.CausalLM(m.T5Decoder(m.T5DecoderConfig(**t5))),
        "lstm_lm": o.CausalLM(m.LstmLM(m.LstmLMConfig(VOCABULARY, **lstm))),
        "sa_lstm": o.SequenceAutoencoder(m.LstmLM(m.LstmLMConfig(VOCABULARY, **lstm))),
        "elmo": o.BidirectionalLM(
            m.Elmo(m.ElmoConfig(VOCABULARY, 8, **elmo)), WordsConfig(VOCABULARY, max_characters=3)
        ),
        "transformer_bilm": o.BidirectionalLM(m.TransformerBiLM(m.TransformerBiLMConfig(**one))),
        "t5": o.Denoising(m.T5(m.T5Config(**t5))),
        "transformer": o.TextToText(m.Transformer(m.TransformerConfig(**one)), label_smoothing=0.1),
    }


def features():
    rng = np.random.default_rng(0)
    lengths = np.array([LENGTH, 11, LENGTH, 13])
    padding_mask = np.arange(LENGTH) < lengths[:, None]
    positions = np.sort(np.stack([rng.permutation(8)[:2] for _ in range(BATCH)]), 1)
    # Half of the predictions in each half of the row, for the two segments of XLNet.
    positions = np.concatenate([positions, np.sort(8 + np.stack([rng.permutation(3)[:2] for _ in range(BATCH)]), 1)], 1)
    return {
        "token_ids": (rng.integers(2, VOCABULARY, (BATCH, LENGTH)) * padding_mask).astype("int32"),
        "segment_ids": (np.arange(LENGTH) >= 8).astype("int32") * padding_mask.astype("int32"),
        "padding_mask": padding_mask,
        "mask_positions": positions.astype("int32"),
        "mask_ids": rng.integers(2, VOCABULARY, (BATCH, PREDICTIONS)).astype("int32"),
        "mask_weights": np.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1]], "float32"),
        "span_left": np.maximum(positions - 1, 0).astype("int32"),
        "span_right": np.minimum(positions + 2, LENGTH - 1).astype("int32"),
        "span_weights": np.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1]], "float32"),
        "sampling_bits": rng.integers(0, 2**24, (BATCH, PREDICTIONS)).astype("int32"),
        "permutation_order": np.tile(rng.permuted(np.tile(np.arange(8), (BATCH, 1)), axis=1), 2).astype("int32"),
        "decoder_token_ids": rng.integers(2, VOCABULARY, (BATCH, 6)).astype("int32"),
        "target_ids": rng.integers(2, VOCABULARY, (BATCH, 6)).astype("int32"),
        "target_weights": (np.arange(6) < np.array([6, 4, 5, 6])[:, None]).astype("float32"),
        "backward": np.array([False, True, False, True]),
        "pair_labels": np.array([0, 1, 1, 0], "int32"),
        "pair_weights": np.ones(BATCH, "float32"),
    }


def results(only=()):
    """ "OBJECTIVE/loss" -> those of twelve updates and of an evaluation; "OBJECTIVE/PATH" -> each variable after them."""
    batch, found = features(), {}
    if only:
        batch = {name: np.concatenate([value, value[::-1]]) for name, value in batch.items()}
    size = len(batch["token_ids"])
    characters = {"token_ids": np.tile(batch["token_ids"][..., None], (1, 1, 3)), "word_ids": batch["token_ids"]}
    for name, model in objectives().items():
        if only and name not in only:
            continue
        rng = np.random.default_rng(1)
        for variable in sorted(model.weights, key=lambda v: v.path):
            variable.assign(rng.normal(0, 0.2, variable.shape) + variable.path.endswith("gamma"))
        rows = batch | characters if name == "elmo" else batch
        if name in DECODERS:  # rows of one text
            rows = {key: value for key, value in batch.items() if not key.startswith(("decoder", "target", "mask"))}
        # The clip is reached, and the rate changes: warm-up, then decay.
        optimizer = AdamW(WarmupDecay(1e-2, total_steps=14, warmup_steps=4), global_clipnorm=0.5)
        model.compile(optimizer, accumulation_steps=2 if name in ("bert", "xlnet") else 1, seed=7)
        history = model.fit(rows, batch_size=size, epochs=12, shuffle=False, verbose=0).history
        evaluated = model.evaluate(rows, batch_size=size, verbose=0, return_dict=True)
        for key in evaluated.keys() & history.keys():
            found[f"{name}/{key}"] = np.array([*history[key], evaluated[key]])
        for variable in [*model.variables, *model.optimizer.variables]:
            found[f"{name}/{variable.path}"] = keras.ops.convert_to_numpy(variable)
    return found


if __name__ == "__main__":
    drawn = keras.initializers.TruncatedNormal, keras.initializers.VarianceScaling, keras.initializers.Orthogonal
    for initializer in drawn:  # which JAX would compile for each shape, for weights that are set by `results`
        initializer.__call__ = lambda self, shape, dtype=None: np.zeros(shape, dtype)
    found, names, distribution = {}, sys.argv[2:], keras.distribution
    whole, divided = ([n for n in names if n.startswith(DIVIDED) == is_divided] for is_divided in (False, True))
    if names:
        distribution.set_distribution(distribution.DataParallel())
    if whole or not names:
        found = results(whole)
    if divided:
        mesh = distribution.DeviceMesh((len(distribution.list_devices()) // 2, 2), ("batch", "model"))
        distribution.set_distribution(distribution.ModelParallel(layout_map=layout_map(mesh)))
        divided = [name.removeprefix(DIVIDED) for name in divided]
        for name in divided:
            kernels = [v for v in objectives()[name].weights if re.search("/(query|query_key_value)/kernel$", v.path)]
            maps = [v.value.sharding.devices_indices_map(v.shape) for v in kernels]
            assert maps and all(len(set(map(str, one.values()))) == 2 for one in maps)
        found |= {DIVIDED + name: value for name, value in results(divided).items()}
    np.savez(sys.argv[1], **found)
    print(json.dumps(sorted({m.split(".")[0] for m in sys.modules} & {"tensorflow", "jax"})))
