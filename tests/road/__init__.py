"""The whole road: from raw records to batches, in one small recipe."""
