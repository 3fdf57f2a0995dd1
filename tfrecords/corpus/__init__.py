"""Text to token ids: which files, which documents, which sentences."""
