"""Small exports, written once, and what each kind of client makes of them."""

import collections.abc
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf
from exports import LABELS, LENGTH, TAGS, TEXTS, VOCABULARY, bert, decoder
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf.export import ServedClassifier, ServedEmbedding, ServedMaskedLM, ServedMultipleChoice
from bert_tf.export.classification import ServedRegressor
from bert_tf.export.saved_model import write_saved_model
from bert_tf.export.spans import ServedQuestionAnswering
from bert_tf.export.tagging import ServedTagger
from bert_tf.models.task_heads import TaskHead
from bert_tf.objectives.masked_lm import MaskedLM
from bert_tf.tasks import MultipleChoice
from bert_tf.tasks.choices.option_rows import OptionRows
from bert_tf.tasks.heads import Classifier, Regressor
from bert_tf.tasks.spans.model import SpanModel
from bert_tf.tokenizers import WordPieceTokenizer

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY, lowercase=True)


@pytest.fixture(scope="session")
def models():
    keras.utils.set_random_seed(1)
    models = SimpleNamespace(classifier=Classifier(bert(), len(LABELS)), choices=MultipleChoice(bert()))
    models.regressor = Regressor(bert(), mean=2.5, scale=1.5)
    models.tagger = Classifier(bert(pooler=False), len(TAGS), head=TaskHead("tokens"))
    models.masked_lm = MaskedLM(bert(), pair_task="nsp")
    return models


class Exports(collections.abc.Mapping):
    """Name -> a namespace of `module`, and `path` of its SavedModel, which is written when it is first asked for."""

    def __init__(self, modules, folder):
        self.modules, self.folder, self.written = modules, folder, {}

    def __getitem__(self, name):
        if name not in self.written:
            module = self.modules[name]
            self.written[name] = SimpleNamespace(module=module, path=write_saved_model(module, self.folder / name))
        return self.written[name]

    def __iter__(self):
        return iter(self.modules)

    def __len__(self):
        return len(self.modules)


@pytest.fixture(scope="session")
def exports(models, tokenizer, tmp_path_factory):
    spans, (language_model, bpe) = SpanModel(bert(pooler=False), n_best=3), decoder(TEXTS)
    modules = {
        "pairs": ServedClassifier(models.classifier, tokenizer, LABELS, LENGTH, pairs=True),
        "regressor": ServedRegressor(models.regressor, tokenizer, LENGTH, static=True),
        "tagger": ServedTagger(models.tagger, tokenizer, TAGS, LENGTH),
        "tagger_whitespace": ServedTagger(models.tagger, tokenizer, TAGS, LENGTH, static=True, words="whitespace"),
        "choices": ServedMultipleChoice(models.choices, tokenizer, LENGTH, static=True, rows=OptionRows(blank="_")),
        "masked_lm": ServedMaskedLM(models.masked_lm, tokenizer, LENGTH, top_k=4),
        "embedding": ServedEmbedding(models.masked_lm.backbone, tokenizer, LENGTH),
        "gpt2": ServedEmbedding(language_model.backbone, bpe, LENGTH),  # whose tokenizer has other operators
        "questions": ServedQuestionAnswering(spans, tokenizer, LENGTH, stride=8, max_query_length=8, threshold=0.0),
    }
    return Exports(modules, tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="session")
def requests(exports):
    """What every client is asked: a list of (export, signature, inputs as arrays)."""
    result = []
    for name, export in exports.items():
        for batch in (TEXTS, TEXTS[1:2]):
            for signature in export.module.signatures():
                inputs = export.module.inputs_of(signature, batch)
                result.append((name, signature, {k: v.numpy() for k, v in inputs.items()}))
    return result


@pytest.fixture(scope="session")
def expected(exports, requests):
    """The answers of the modules in memory, run operation by operation."""
    answers = []
    for name, signature, inputs in requests:
        function = exports[name].module.signatures()[signature].function
        outputs = function(**{k: tf.constant(v) for k, v in inputs.items()})
        answers.append({k: v.numpy() for k, v in outputs.items()})
    return answers


def signatures_of(path):
    """Signature -> (outputs, inputs), each from the name to that of the tensor, "operation:index"."""
    saved = saved_model_pb2.SavedModel.FromString((Path(path) / "saved_model.pb").read_bytes())
    found = saved.meta_graphs[0].signature_def.items()
    ends = lambda tensors: {name: info.name for name, info in tensors.items() if info.name}  # noqa: E731
    return {name: (ends(signature.outputs), ends(signature.inputs)) for name, signature in found}


@pytest.fixture(scope="session")
def ask(exports, tmp_path_factory):
    """function(script, requests) -> the answers to requests, by a client in a process of its own."""

    def run(script, requests):
        folder = tmp_path_factory.mktemp("client")
        paths = {name: str(exports[name].path) for name, _, _ in requests}
        signatures = {name: signatures_of(path) for name, path in paths.items()}
        (folder / "requests").write_bytes(pickle.dumps((paths, signatures, requests)))
        command = [sys.executable, "-P", str(HERE / script), str(folder / "requests"), str(folder / "answers")]
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
        # An empty folder as the place to start in: nothing of the project can be imported.
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return pickle.loads((folder / "answers").read_bytes())

    return run
