"""Words as rows of characters."""
