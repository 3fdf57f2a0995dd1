"""RoBERTa: see README.md of `bert_tf/models`."""
