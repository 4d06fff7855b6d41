"""The block engine: from a page's bytes to its main text by a learned classifier of its blocks, without a tree."""
