"""Question answering: the span of a context that answers a question, or that there is none (SQuAD, MRQA, KorQuAD)."""
