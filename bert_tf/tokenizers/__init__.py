"""Text to token ids and back, as graph ops: training of vocabularies and their application."""
