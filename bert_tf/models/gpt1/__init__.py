"""GPT-1: see README.md of `bert_tf/models`."""
