"""Text to text: one text is read and another one is written."""
