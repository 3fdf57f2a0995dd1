"""Batches to features: what is masked or permuted, drawn anew in each epoch."""
