"""Byte-pair encodings: over bytes (GPT-2, RoBERTa, ModernBERT) and over characters (GPT-1, Sennrich)."""
