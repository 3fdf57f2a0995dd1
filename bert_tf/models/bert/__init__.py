"""BERT and SpanBERT: see README.md of `bert_tf/models`."""
