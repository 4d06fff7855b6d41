"""What can be wrong with a token cache: four kinds, told apart, each saying what to do."""

from __future__ import annotations

from curate.store import StoreError


class CacheError(StoreError):
    """A token cache that cannot be used, or built."""


class CutShortError(CacheError):
    """A file of the cache is missing or shorter than written: a build that did not finish, or a copy that did not."""


class OtherTokenizerError(CacheError):
    """The cache was made with another tokenizer, or one that no longer does what it did."""


class DamagedCacheError(CacheError):
    """Bytes of the cache are not those that were written."""


class OldFormatError(CacheError):
    """The cache was written in another version of the format."""
