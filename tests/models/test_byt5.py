"""A ByT5 in the folder that Hugging Face has of it: opened, read and written in Korean, saved again, and served."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.export import ServedGeneration
from bert_tf.generation import GenerationConfig, TextGenerator
from bert_tf.models.t5.config import T5Config
from bert_tf.models.t5.model import T5
from bert_tf.objectives import Denoising
from bert_tf.tokenizers import ByteTokenizer

SIZES = {"num_layers": 3, "num_decoder_layers": 1, "num_heads": 2, "head_size": 6, "intermediate_size": 28}
PROMPTS = ["모든 국민은 법 앞에 평등하다.", "한", "e\u0301 👩‍👧 a\x00b"]
# Of google/byt5-small, beside the sizes.
PUBLISHED = {
    "_name_or_path": "/home/patrick/t5/byt5-small", "architectures": ["T5ForConditionalGeneration"], "d_ff": 28, "d_kv": 6,
    "d_model": 20, "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
    "gradient_checkpointing": False, "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06,
    "model_type": "t5", "num_decoder_layers": 1, "num_heads": 2, "num_layers": 3, "pad_token_id": 0,
    "relative_attention_num_buckets": 32, "tie_word_embeddings": False, "tokenizer_class": "ByT5Tokenizer",
    "transformers_version": "4.7.0.dev0", "use_cache": True, "vocab_size": 384,
}  # fmt: skip
TOKENIZER = {
    **{
        f"{role}_token": {"content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "__type": "AddedToken"}
        for role, token in (("eos", "</s>"), ("unk", "<unk>"), ("pad", "<pad>"))
    },
    "extra_ids": 125,
    "additional_special_tokens": [f"<extra_id_{i}>" for i in range(125)],
}  # fmt: skip


@pytest.fixture(scope="module")
def byt5(tmp_path_factory):
    """(folder, model): a model whose best byte is clearly the best."""
    keras.utils.set_random_seed(5)
    model = T5(T5Config(384, 20, activation="gelu_tanh", gated=True, tied=False, **SIZES))
    for variable in model.trainable_variables:
        variable.assign(variable + 0.3 * np.random.default_rng(1).normal(size=variable.shape))
    folder = tmp_path_factory.mktemp("byt5") / "small"
    bert_tf.save(Denoising(model), ByteTokenizer(), folder, "hf")
    (folder / "config.json").write_text(json.dumps(PUBLISHED))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    (folder / "tokenizer.json").unlink()  # which the published folder does not have
    assert len(list(folder.iterdir())) == 3  # with the weights
    return folder, model


def test_a_published_folder_opens_and_is_written_back(byt5, tmp_path):
    folder, model = byt5
    loaded = bert_tf.load(folder)
    assert loaded.backbone.config == model.config and loaded.tokenizer.vocabulary_size == 384
    assert loaded.tokenizer.sentinel_ids == list(range(258, 247, -1))
    config = GenerationConfig(max_new_tokens=12)
    wanted = TextGenerator(model, ByteTokenizer())(PROMPTS, config)
    assert TextGenerator(loaded.backbone, loaded.tokenizer)(PROMPTS, config) == wanted
    assert len({row[0].text for row in wanted}) == 3
    bert_tf.save(loaded.objective, loaded.tokenizer, tmp_path / "again", "hf")
    ours = json.loads((tmp_path / "again" / "config.json").read_text())
    same = "d_model d_kv num_decoder_layers feed_forward_proj tie_word_embeddings vocab_size eos_token_id model_type".split()
    assert {key: ours[key] for key in same} == {key: PUBLISHED[key] for key in same}
    again = bert_tf.load(tmp_path / "again")
    assert again.tokenizer.fingerprint == loaded.tokenizer.fingerprint
    for mine, theirs in zip(again.objective.variables, loaded.objective.variables):
        np.testing.assert_array_equal(mine, theirs)


def test_text_in_and_text_out_in_one_graph(byt5):
    _, model = byt5
    tokenizer = ByteTokenizer()
    settings = {"method": "beam_search", "beams": 3, "n_best": 2, "max_new_tokens": 12}
    served = ServedGeneration(Denoising(model), tokenizer, 64, **settings).signatures()["serving_default"].traced()
    wanted = TextGenerator(model, tokenizer)(PROMPTS, GenerationConfig(**settings))
    texts = [[text.decode() for text in row] for row in served(text=tf.constant(PROMPTS))["texts"].numpy()]
    found = [[answer.text for answer in row] for row in wanted]
    assert texts == [row + [""] * (2 - len(row)) for row in found] and len(found[0]) == 2
    assert "\ufffd" not in "".join(map("".join, texts))  # bytes that are no character are left out
    written = [
        bytes(i - 3 for i in a.token_ids if 2 < i < 259).decode("utf-8", "replace") for row in wanted for a in row
    ]
    assert not all(text.isascii() for text in written)
