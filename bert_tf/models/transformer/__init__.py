"""The Transformer: see README.md of `bert_tf/models`."""
