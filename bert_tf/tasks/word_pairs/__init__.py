"""Classification of two words that are marked in a text or in a pair of texts; see `task.WordPairTask`."""
