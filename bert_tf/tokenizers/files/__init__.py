"""Tokenizer folders and files: reading and writing them."""
