"""Batches to features: what is masked or permuted, drawn again in each epoch."""
