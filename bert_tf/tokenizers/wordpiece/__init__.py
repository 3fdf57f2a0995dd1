"""WordPiece: the tokenizer of BERT, ELECTRA, DistilBERT and SpanBERT."""
