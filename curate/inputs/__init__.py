"""Input files: found and fingerprinted (`files`), pinned by a listing, and the records that two of them share."""
