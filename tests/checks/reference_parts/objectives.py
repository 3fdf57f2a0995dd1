"""Every objective: losses, metrics and all gradients of a corrupted batch, and what it predicts of hidden tokens."""

import numpy as np
import tensorflow as tf

from bert_tf.objectives import OBJECTIVES
from reference_parts import library, shards
from reference_parts.corruption import batch_of, corruption_of
from reference_parts.model_cases import MODELS, load
from tfrecords import ShardsConfig

SPAN = {"strategy": "span", "rounding": "up"}
#: Case -> (objective, model, shards, settings).
CASES = {
    "masked_lm_nsp": ("masked_lm", "bert", "segment_pair", {"pair_task": "nsp"}),
    "masked_lm_sop": ("masked_lm", "albert", "segment_pair_sop", {"masking": {"strategy": "ngram"}}),
    "masked_lm_span_boundary": ("masked_lm", "spanbert", "doc_sentences", {"span_boundary": True, "masking": SPAN}),
    "masked_lm_roberta": ("masked_lm", "roberta", "full_sentences", {"masking": {"predict_special": True}}),
    "masked_lm_modernbert": ("masked_lm", "modernbert", "full_sentences", {"masking": {"rate": 0.3}}),
    "masked_lm_distilbert": ("masked_lm", "distilbert", "segment_pair", {"pair_task": "none"}),
    "masked_lm_bilstm": ("masked_lm", "bilstm", "words", {}),
    "masked_lm_electra": ("masked_lm", "electra_generator", "electra", {}),
    "replaced_tokens": ("replaced_token_detection", "electra", "electra", {"generator_size": 0.5}),
    "replaced_tokens_bert": (
        "replaced_token_detection", "bert", "segment_pair", {"generator_size": 0.5, "discriminator_weight": 3.0}
    ),
    "permutation": (
        "permutation_lm", "xlnet", "xlnet", {"memory_length": 10, "permutation": {"permutation_size": 16}}
    ),
    "causal_gpt2": ("causal_lm", "gpt2", "token_blocks", {}),
    "causal_documents": ("causal_lm", "gpt2", "token_blocks", {"documents": {"separate": True}, "loss_block": 7}),
    "causal_gpt1": ("causal_lm", "gpt1", "documents_a_line", {}),
    "causal_lstm": ("causal_lm", "lstm_lm", "words", {}),
    "causal_t5_decoder": ("causal_lm", "t5_decoder", "token_blocks_t5", {}),
    "autoencoder": ("sequence_autoencoder", "lstm_lm", "words", {}),
    "bidirectional_elmo": ("bidirectional_lm", "elmo", "words", {"words": {"size": 600}}),
    "bidirectional_transformer": ("bidirectional_lm", "transformer_bilm", "full_sentences_wordpiece", {}),
    "denoising": ("denoising", "t5", "token_blocks_t5", {"z_loss": 1e-3}),
    "denoising_shared": ("denoising", "t5_shared", "token_blocks_t5", {"denoising": {"method": "drop"}, "loss_block": 5}),
    "denoising_decoder": ("denoising", "t5_decoder", "token_blocks_t5", {}),
    "denoising_prefix": ("denoising", "t5_decoder_prefix", "token_blocks_t5", {"denoising": {"method": "prefix_lm"}}),
    "text_to_text": ("text_to_text", "t5", "text_pairs", {"label_smoothing": 0.1, "label_smoothing_normalization": "uniform"}),
    "text_to_text_transformer": ("text_to_text", "transformer_pre", "text_pairs_alone", {"label_smoothing": 0.1}),
    "text_to_text_decoder": ("text_to_text", "t5_decoder_prefix", "text_pairs", {"z_loss": 1e-3, "loss_block": 6}),
}  # fmt: skip


def missing():
    known = {name for name, *_ in CASES.values()}
    yield from (f"objective {name}" for name in OBJECTIVES if name not in known)


def cases(room):
    for name in CASES:
        yield name, lambda name=name: values(room, name)


def made(room, name):
    """(pretraining model with its weights, features, source of the backbone or None) of a case."""
    objective, model_name, shards_name, given = CASES[name]
    record = OBJECTIVES[objective]
    config = library.settings(record.config, {"name": objective} | given)
    packing = library.settings(ShardsConfig, shards.CASES[shards_name][2])
    config = config.for_shards(packing.packing, packing.sequence_length)
    pooler = config.needs_pooler or (MODELS[model_name].pooler and model_name in ("lstm_lm",))
    encoder, _, _, source = load(room, model_name, pooler=pooler)
    model = record.model_class.from_settings(encoder, config)
    own = library.by_path(encoder)
    room.assign(f"objective_{name}", {path: v for path, v in library.by_path(model).items() if path not in own})

    def features():
        corrupt = corruption_of(room, objective, shards_name, given.get(record.corruption_section, {}))
        batch = batch_of(room, shards_name)
        corrupted = corrupt(batch, 3) if corrupt else batch
        return {key: value.numpy() for key, value in corrupted.items()}

    arrays = room.arrays(f"batches/objective_{name}", features)
    return model, {key: tf.constant(array) for key, array in arrays.items()}, source


def values(room, name):
    model, features, source = made(room, name)
    found, gradients = library.loss_and_gradients(model, features)
    sums, metrics = model.loss_sums(features, training=False)
    found["evaluated"] = {"sums": sums, "metrics": {key: [float(x) for x in pair] for key, pair in metrics.items()}}
    found["outputs"] = library.numpy(model(features))
    found |= hidden(model, features, room.tokenizer(shards.CASES[CASES[name][2]][1]))
    found["gradients"] = library.published(source, gradients)
    return library.numpy(found)


def hidden(model, features, tokenizer):
    """What the model predicts of two tokens that it does not see, and of the order of two segments."""
    if model.settings.name not in ("masked_lm", "replaced_token_detection", "permutation_lm"):
        return {}
    names = ("token_ids", "segment_ids", "padding_mask")
    rows = {key: features[key][:3] for key in names}
    if model.settings.name == "permutation_lm":
        rows = {key: value[:, -16:] for key, value in rows.items()}
    positions = np.array([[2, 5], [1, 3], [0, 4]], "int32")
    mask = np.zeros(rows["token_ids"].shape, bool)
    mask[np.arange(3)[:, None], positions] = True
    logits = model.masked_token_logits(rows, tf.constant(mask), tf.constant(positions), tokenizer.mask_id)
    following = model.next_sentence_logits(rows)
    return {"hidden_tokens": logits} | ({} if following is None else {"next_sentence": following})
