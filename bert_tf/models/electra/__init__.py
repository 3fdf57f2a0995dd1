"""ELECTRA: see README.md of `bert_tf/models`."""
