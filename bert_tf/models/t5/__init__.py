"""T5: see README.md of `bert_tf/models`."""
