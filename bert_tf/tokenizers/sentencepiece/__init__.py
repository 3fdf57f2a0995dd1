"""SentencePiece models: ALBERT, XLNet, T5."""
