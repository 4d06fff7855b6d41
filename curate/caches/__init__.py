"""Token caches: building them from a dataset, and reading them with random access.

`Tokenization` builds one cache per cell, `TokenCache` reads one. Format: `curate.caches.layout` and
`curate.caches.description`; the page is docs/formats.md.
"""

from curate.caches.cache import TokenCache
from curate.caches.errors import CacheError, CutShortError, DamagedCacheError, OldFormatError, OtherTokenizerError
from curate.caches.tokenization import Tokenization, stored_tokenizer

__all__ = [
    "CacheError",
    "CutShortError",
    "DamagedCacheError",
    "OldFormatError",
    "OtherTokenizerError",
    "TokenCache",
    "Tokenization",
    "stored_tokenizer",
]
