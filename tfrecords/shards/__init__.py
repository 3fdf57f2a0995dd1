"""What the shards and their manifest look like on disk."""
