"""What stands before a prompt, for models that were trained here, imported, or fine-tuned."""

import keras
import numpy as np
import pytest

from bert_tf.errors import ConfigError
from bert_tf.generation import GenerationConfig, PromptTokenizer, TextGenerator, TextScorer
from bert_tf.models import GPT2Config, GPT2Decoder
from bert_tf.objectives import CausalLM, Denoising
from bert_tf.tasks import build_task
from bert_tf.tokenizers import Frame, load_tokenizer, train_byte_level_bpe
from bert_tf.tokenizers.bpe.byte_level_bpe import GPT2_ROLES
from tfrecords import ShardReader, ShardsConfig, write_shards
from tfrecords.corruption.denoising_config import DenoisingConfig

TEXT = "the state of the union is strong, and the people of the union know it."


@pytest.fixture(scope="module")
def tokenizer():
    """RoBERTa's: <s> text </s>."""
    return train_byte_level_bpe([TEXT] * 30, 300)


@pytest.fixture(scope="module")
def gpt(tokenizer):
    keras.utils.set_random_seed(0)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 24, "max_positions": 96}
    return GPT2Decoder(GPT2Config(tokenizer.vocabulary_size, **sizes, initializer_range=0.6))


def test_an_objective_is_taken_for_its_backbone(gpt, tokenizer):
    config = GenerationConfig(max_new_tokens=4)
    generate, wanted = TextGenerator(CausalLM(gpt), tokenizer), TextGenerator(gpt, tokenizer)
    assert generate.model is gpt
    assert generate(["the state"], config) == wanted(["the state"], config)
    assert TextScorer(CausalLM(gpt), tokenizer).model is gpt


def test_the_frame_is_that_of_the_objective(gpt, tokenizer):
    objective = Denoising(gpt, denoising=DenoisingConfig(method="lm"))
    prompts = PromptTokenizer(objective, tokenizer)
    assert prompts.frame == objective.frame(tokenizer)
    assert prompts.ids("the") == [tokenizer.sep_id, *tokenizer.encode("the")]
    bare = Frame.for_continuation(tokenizer, before=())
    assert PromptTokenizer(objective, tokenizer, bare).ids("the") == tokenizer.encode("the")


def test_the_model_of_a_task_needs_its_frame(gpt, tokenizer):
    task = build_task({"kind": "text_to_text", "sequence_length": 16, "target_length": 8}, tokenizer, backbone=gpt)
    with pytest.raises(ConfigError, match="knows how its prompts are read; give frame=task.frame"):
        TextGenerator(task.model(gpt), tokenizer)
    assert TextGenerator(task.model(gpt), tokenizer, frame=task.frame).model is gpt


@pytest.mark.parametrize("layout", ["roberta", "none"])
def test_prompts_begin_as_the_rows_of_shards(layout, tmp_path):
    settings = {"role_tokens": GPT2_ROLES, "layout": "none"} if layout == "none" else {}
    tokenizer = train_byte_level_bpe([TEXT] * 30, 300, **settings)
    (tmp_path / "corpus.txt").write_text(f"{TEXT}\n")
    config = ShardsConfig(format="full_sentences", sequence_length=64)
    write_shards(tmp_path / "corpus.txt", tmp_path / "shards", tokenizer, config, progress=False)
    (rows,) = ShardReader(tmp_path / "shards").dataset(1, seed=0, epochs=1)
    tokenizer.save(tmp_path / "tokenizer")  # as a published model keeps it
    for one in (tokenizer, load_tokenizer(tmp_path / "tokenizer")):
        decoder = GPT2Decoder(GPT2Config(one.vocabulary_size, 8, num_layers=1, num_heads=1, intermediate_size=8))
        ids = PromptTokenizer(CausalLM(decoder), one).ids("the state")
        np.testing.assert_array_equal(rows["token_ids"][0, : len(ids)], ids)
