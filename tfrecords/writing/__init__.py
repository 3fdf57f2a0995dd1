"""A corpus to a folder of shards: in parallel, restartable."""
