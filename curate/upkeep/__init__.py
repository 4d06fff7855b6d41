"""What one does with a store: verify it, see how a run stands, find documents, join shards, remove leftovers."""
