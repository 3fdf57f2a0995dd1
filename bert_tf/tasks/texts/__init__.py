"""One label or number for a text or a pair of texts."""
