"""A folder of shards to batches: in which order, and which part of it on which worker."""
