"""Heads and trees: files, distances, and the accuracies of heads by their definitions."""

import numpy as np
import pytest
from fakes import bert, tokenizer_of

from bert_tf.errors import DataError
from bert_tf.models import GPT2Config, GPT2Decoder
from bert_tf.probing import DependencyTree, HeadPositions, HeadRelations, LayerReader, read_trees

TOKENIZER = tokenizer_of("the un ##believ ##able film is good .")
TREES = [
    DependencyTree(["the", "unbelievable", "film"], [2, 2, -1], ["det", "amod", "root"], [False] * 3),
    DependencyTree(["film", "is", "good", "."], [2, 2, -1, 2], ["nsubj", "cop", "root", "punct"], [False] * 3 + [True]),
]
LINES = ["1\tfilm\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_", "2-3\tisgood\t" + "\t".join("_" * 8)]
LINES += ["2\tis\t_\tAUX\t_\t_\t3\tcop\t_\t_"]
LINES += ["3\tgood\t_\tADJ\t_\t_\t0\troot\t_\t_", "4\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_"]


def test_files(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("# sent_id = 1\n" + "\n".join(LINES) + "\n\n" + "\n".join(LINES) + "\n")
    assert read_trees(path) == [TREES[1]] * 2 and len(read_trees(path, most=1)) == 1
    for old, new, message in (
        ("\t3\tcop", "\t9\tcop", "line 3: the head is '9'"),
        ("\t0\troot", "\t1\troot", "line 1: .* do not form a tree"),
    ):
        path.write_text("\n".join(LINES).replace(old, new) + "\n")
        with pytest.raises(DataError, match=message):
            read_trees(path)
    (tmp_path / "b.conll").write_text("film NOUN\n")
    with pytest.raises(DataError, match="is not a CoNLL-U file"):
        read_trees(tmp_path / "b.conll")


def test_distances():
    tree = DependencyTree(list("abcde"), [1, -1, 3, 1, 3], ["x"] * 5, [False] * 5)  # a-b, c-d, d-b, e-d
    expected = [[0, 1, 3, 2, 3], [1, 0, 2, 1, 2], [3, 2, 0, 1, 2], [2, 1, 1, 0, 1], [3, 2, 2, 1, 0]]
    assert tree.distances().tolist() == expected


def test_accuracies_and_means_by_their_definitions():
    encoder = bert(TOKENIZER, 5, positions=7, initializer_range=0.5, output_attention_scores=True)
    long = DependencyTree(["film"] * 6, [-1, 0, 1, 2, 3, 4], ["root"] + ["x"] * 5, [False] * 6)
    done = []
    reader = LayerReader(encoder, TOKENIZER)
    found, positions = (
        probe.run(reader, [*TREES, long], progress=lambda *n: done.append(n))
        for probe in (HeadRelations(), HeadPositions())
    )
    relations, patterns = found.facts["relations"], positions.facts["patterns"]
    assert done == [(2, 2)] * 2 and (found.facts["count"], found.facts["skipped"]) == (2, 1)
    rows = [[2, 5, 6, 7, 8, 9, 3], [2, 9, 10, 11, 12, 3]]
    scores = [encoder({"token_ids": np.array([row])})["attention_scores"] for row in rows]
    attention = [np.stack(layers)[:, 0].astype(np.float64) for layers in scores]
    first, second = attention[0][:, :, 1:-1, 1:-1], attention[1][:, :, 1:-1, 1:-1]
    to = np.stack([first[..., 0], first[..., 1:4].sum(-1), first[..., 4]], axis=-1)
    words = np.stack([to[:, :, 0], to[:, :, 1:4].mean(2), to[:, :, 4]], axis=2)
    for layer in range(2):
        for head in range(2):
            own, other = words[layer, head], second[layer, head]
            # "the" (0) and "film" (2), without itself; then what looks at "the" most.
            assert relations["det"][0][layer][head] == (own[0, 2] > own[0, 1])
            assert relations["det"][1][layer][head] == (own[2, 0] > own[1, 0])
            subject = max((i for i in range(4) if i != 0), key=lambda i: other[0, i]) == 2
            copula = max((i for i in range(4) if i != 1), key=lambda i: other[1, i]) == 2
            assert relations["nsubj"][0][layer][head] == subject
            assert relations["cop"][0][layer][head] == copula
            own = attention[0][layer, head], attention[1][layer, head]
            previous = sum(sum(a[i, i - 1] for i in range(2, len(a) - 1)) for a in own) / (4 + 3)
            assert patterns["previous token"][layer][head] == pytest.approx(previous, abs=1e-5)
            end = sum(a[1:-1, -1].sum() for a in own) / (5 + 4)
            assert patterns["special tokens after the text"][layer][head] == pytest.approx(end, abs=1e-5)
    counts = {name: own["words"] for name, own in found.numbers()["rows"].items()}
    assert counts == {"all": 4, "det": 1, "amod": 1, "nsubj": 1, "cop": 1, "punct": 1}
    offsets = {name: (own["best offset"], own["offset"]) for name, own in found.numbers()["rows"].items()}
    assert offsets["punct"] == ("-1", 1.0) and offsets["nsubj"] == ("+2", 1.0)
    assert offsets["all"][1] == 0.5  # two of four words stand one before their heads, and two stand two before
    assert positions["next token"]["uniform"] == pytest.approx((4 / 7 + 3 / 6) / 7)
    accuracy, (layer, head) = found["all"]["best head"], map(int, found["all"]["layer-head"].split("-"))
    direction = ["dependent looks at head", "head looks at dependent"].index(found["all"]["direction"])
    assert relations["all"][direction][layer - 1][head - 1] == accuracy == np.max(relations["all"])
    assert "1 sentences were too long" in found.note
    assert len(positions.rows) == 5
    with pytest.raises(DataError, match="more than the 5 tokens"):
        HeadRelations().run(reader, [long])


def test_a_decoder_spreads_its_attention_over_what_is_before():
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32}
    decoder = GPT2Decoder(GPT2Config(TOKENIZER.vocabulary_size, max_positions=7, **sizes))
    found = HeadPositions().run(LayerReader(decoder, TOKENIZER), TREES[1:])  # [CLS] film is good . [SEP]
    assert found["previous token"]["uniform"] == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 3)
    assert found["the same token"]["uniform"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4)
    assert found["special tokens before the text"]["uniform"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4)
    assert found["next token"]["uniform"] == 0 == found["special tokens after the text"]["uniform"]
