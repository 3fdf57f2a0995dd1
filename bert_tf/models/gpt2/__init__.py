"""GPT-2: see README.md of `bert_tf/models`."""
