"""Every family in the list, and a published checkpoint of each, passes the public check."""

from pathlib import Path

import keras
import pytest

import bert_tf
from bert_tf.models import FAMILIES, build_config, build_encoder, describe
from bert_tf.testing import check_backbone

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
SIZES = {
    "vocabulary_size": 50,
    "hidden_size": 24,
    "num_layers": 3,
    "num_heads": 3,
    "intermediate_size": 40,
    # Wider than the published 0.02: what must be equal must not be small.
    "initializer_range": 0.3,
}
OWN = {
    "albert": {"embedding_size": 10, "num_groups": 2},
    "electra": {"embedding_size": 10},
    "modernbert": {"local_attention": 4, "global_theta": 50.0, "local_theta": 20.0},
}
#: The vector of XLNet's query stream is trained by its objective.
UNREACHED = {"xlnet": ["embeddings/query_vector"]}


# Families that another test registered in this process have sizes of their own.
@pytest.mark.parametrize("family", [name for name in FAMILIES if FAMILIES[name].sizes])
def test_families(family, tmp_path):
    keras.utils.set_random_seed(1)
    config = build_config({"family": family} | SIZES | OWN.get(family, {}))
    assert build_config(describe(config)) == config
    encoder = build_encoder(config, pooler=True, dtype="float32")
    check_backbone(encoder, tmp_path, unreached=UNREACHED.get(family, ()))


@pytest.mark.parametrize(
    "folder", ["albert", "bert", "bert_sharded", "distilbert", "electra", "gpt1", "gpt2", "modernbert", "roberta", "xlnet"]
)
def test_imported_checkpoints(folder, tmp_path):
    encoder = bert_tf.load(FIXTURES / folder, dtype="float32", output_hidden_states=True).encoder
    check_backbone(encoder, tmp_path, unreached=UNREACHED.get(folder, ()))
