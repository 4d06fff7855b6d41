"""Token caches: building them from a dataset, and reading them with random access.

`Tokenization` builds one cache per cell, `TokenCache` reads one; `extend_cache` adds new documents as a new generation,
`export_cache` writes one for other loaders, `import_cache` makes one of another tool's. Format: `curate.caches.layout`
and `curate.caches.description`; the page is docs/formats.md.
"""

from curate.caches.cache import TokenCache
from curate.caches.errors import CacheError, CutShortError, DamagedCacheError, OldFormatError, OtherTokenizerError
from curate.caches.exporting import FORMATS, export_cache
from curate.caches.extending import extend_cache
from curate.caches.importing import import_cache
from curate.caches.tokenization import Tokenization, stored_tokenizer

__all__ = [
    "FORMATS",
    "CacheError",
    "CutShortError",
    "DamagedCacheError",
    "OldFormatError",
    "OtherTokenizerError",
    "TokenCache",
    "Tokenization",
    "export_cache",
    "extend_cache",
    "import_cache",
    "stored_tokenizer",
]
