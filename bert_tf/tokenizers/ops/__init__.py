"""Graph operations that the tokenizers share."""
