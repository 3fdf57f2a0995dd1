"""The importance of attention heads, by its definition."""

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.cli.main import main
from bert_tf.errors import ConfigError
from bert_tf.models.families import build_backbone, build_config
from bert_tf.probing import importance_of_heads
from bert_tf.tasks import build_task
from bert_tf.tokenizers import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film very dull warm and the is".split()]
TEXTS = ["a good film", "the film is bad", "very dull and bad", "warm and good", "the film is very very good", "good"]
LABELS = ["pos", "neg", "neg", "pos", "pos", "pos"]


def classifier(family="bert"):
    """(task, random model with two layers of three heads of 8, labelled examples)."""
    keras.utils.set_random_seed(2)
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=True)
    task = build_task({"kind": "classification", "sequence_length": 12, "labels": ["neg", "pos"]}, tokenizer)
    section = {"family": family, "vocabulary_size": len(VOCABULARY), "max_positions": 16, "initializer_range": 0.4}
    section |= {"hidden_size": 24, "num_layers": 2, "num_heads": 3, "intermediate_size": 32}
    section |= {"embedding_size": 8} if family == "albert" else {}
    config = build_config(section, padding_id=0)
    model = task.model(build_backbone(config, pooler=task.needs_pooler(config)))
    examples = task.read({"text": TEXTS, "label": LABELS})
    return task.learn(examples), model, examples


def logits(task, model):
    features = task.tokenizer.pack(task.tokenizer.tokenize(TEXTS), sequence_length=12)
    return model(features)["logits"].numpy()


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_it_is_the_derivative_by_a_factor_of_the_head(family):
    task, model, examples = classifier(family)
    importance, _ = importance_of_heads(task, model, examples)
    for layer in (0, 1):
        kernel = model.backbone.blocks()[layer].attention.output_projection.kernel
        original, slopes = np.asarray(kernel.value), []
        for head in range(3):
            losses = []
            for factor in (1.01, 0.99):
                rows = np.where(np.arange(24) // 8 == head, factor, 1.0)[:, None]
                kernel.assign(original * rows)
                found = logits(task, model).astype("float64")
                right = found[np.arange(len(TEXTS)), task.label_array(examples)]
                losses.append(np.log(np.exp(found).sum(axis=1)) - right)
            slopes.append(np.abs(np.subtract(*losses) / 0.02).sum())
        kernel.assign(original)
        np.testing.assert_allclose(importance[layer], slopes / np.linalg.norm(slopes), rtol=2e-2, atol=1e-3)


def test_layers_that_share_their_weights_are_refused():
    task, model, examples = classifier("albert")
    message = "not defined for AlbertEncoder: each layer must have an attention of its own"
    with pytest.raises(ConfigError, match=message):
        importance_of_heads(task, model, examples)


def test_the_command_shows_each_layer(tmp_path, capsys):
    task, model, _ = classifier()
    rows = [f"{label}\t{text}\n" for label, text in zip(LABELS, TEXTS)]
    (tmp_path / "dev.tsv").write_text("label\ttext\n" + "".join(rows))
    bert_tf.save(model, None, tmp_path / "run", format="run", task=task)
    files = [str(tmp_path / "run"), str(tmp_path / "dev.tsv"), "--output", str(tmp_path / "page.html")]
    assert main(["probe", "head_importance", *files, "--most", "2"]) == 0
    shown = capsys.readouterr().out
    assert "importance of heads" in shown and "layer 2" in shown and "over 2 examples" in shown
