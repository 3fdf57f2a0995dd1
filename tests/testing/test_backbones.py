"""Every family in the list, and published checkpoints, pass the public check."""

import dataclasses
from pathlib import Path

import keras
import pytest

import bert_tf
from bert_tf.models import FAMILIES, build_backbone, build_config, describe
from bert_tf.testing import check_backbone

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
# One layer: the imported checkpoints below have more. Wider than the published 0.02: what must be equal must not be small.
SIZES = {"vocabulary_size": 50, "hidden_size": 24, "num_layers": 1, "num_heads": 3, "intermediate_size": 40}
SIZES |= {"initializer_range": 0.3}
OWN = {
    "albert": {"embedding_size": 10, "num_layers": 3, "num_groups": 2},
    "electra": {"embedding_size": 10},
    "transformer": {"num_decoder_layers": 1},
    # The second layer has the position biases of the first.
    "t5": {"num_layers": 2, "num_decoder_layers": 1, "head_size": 6, "num_buckets": 8, "max_distance": 6},
    "t5_encoder": {"num_layers": 2, "head_size": 6, "num_buckets": 8, "max_distance": 6},
    "t5_decoder": {"num_layers": 2, "head_size": 6, "num_buckets": 8, "max_distance": 6, "prefix": True},
    # One layer of 2 heads in each direction; the text of a check has padding on the right.
    "transformer_bilm": {"num_heads": 2, "max_positions": 64},
    "lstm_lm": {"embedding_size": 10, "num_layers": 2},
    "elmo": {"vocabulary_size": 262, "num_layers": 2, "units": 20, "character_size": 6, "filters": ((1, 8), (3, 8))},
    "modernbert": {"num_layers": 2, "local_attention": 4, "global_theta": 50.0, "local_theta": 20.0},
}
#: The vector of XLNet's query stream and the output layer of an LSTM are trained by their objectives.
UNREACHED = {"xlnet": ["embeddings/query_vector"], "lstm_lm": ["output/bias", "output/kernel"]}


#: The layers of the others are those of BERT, ALBERT, T5 and GPT-2; ELMo's are LSTMs in two directions.
QUICK = "bert albert modernbert xlnet transformer t5 transformer_bilm gpt2 lstm_lm".split()


# Families that another test registered in this process have sizes of their own.
@pytest.mark.slow_except(*QUICK)
@pytest.mark.parametrize("family", [name for name in FAMILIES if FAMILIES[name].sizes or name in OWN])
def test_families(family, tmp_path):
    keras.utils.set_random_seed(1)
    pair = FAMILIES[family].structure == "encoder_decoder"
    fields = {field.name for field in dataclasses.fields(FAMILIES[family].config)}
    sizes = {key: value for key, value in SIZES.items() if key in fields}
    config = build_config({"family": family} | sizes | OWN.get(family, {}))
    assert build_config(describe(config)) == config
    encoder = build_backbone(config, dtype="float32", **({} if pair or family == "elmo" else {"pooler": True}))
    training = family not in ("spanbert", "roberta", "distilbert", "electra")  # whose layers are BERT's
    check_backbone(encoder, tmp_path, unreached=UNREACHED.get(family, ()), training=training)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["roberta", "xlnet"])
def test_imported_checkpoints(folder, tmp_path):
    encoder = bert_tf.load(FIXTURES / folder, dtype="float32", output_hidden_states=True).encoder
    check_backbone(encoder, tmp_path, unreached=UNREACHED.get(folder, ()), training=False)
