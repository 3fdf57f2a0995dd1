import pytest

from tfrecords.corpus.tokens import DocumentTokenizer
from tfrecords.shards import jobs

KNOWN = {}


@pytest.fixture(autouse=True)
def traced_once(monkeypatch):
    """One graph for all writers with a tokenizer: to trace it takes longer than these corpora."""

    def document_tokenizer(tokenizer, pieces):
        return KNOWN.setdefault((tokenizer.fingerprint, pieces), DocumentTokenizer(tokenizer, pieces))

    monkeypatch.setattr(jobs, "DocumentTokenizer", document_tokenizer)
