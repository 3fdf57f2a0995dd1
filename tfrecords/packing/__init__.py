"""Token ids of sentences to sequences of fixed length, one file for each family of formats."""
