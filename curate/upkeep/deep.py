"""`curate verify --deep`: token caches read whole, and a sample of their documents led back and encoded again.

Every chunk is read and every promise of a cache checked (`TokenCache.verify`: bytes, content digest, offsets, order,
markers). Then, for documents that the digests of their texts choose, `LEAST` of a cache at least: the document stands
in the dataset where `origin` says, under its id, with the text of its digest, and `tokenizers` makes the cache's tokens
of it. Cost: a pass over all tokens; a row group of the dataset for each sampled document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from curate.caches.cache import TokenCache
from curate.caches.errors import CacheError
from curate.caches.tokenization import stored_tokenizer
from curate.datasets import Dataset, open_dataset
from curate.digests import text_digest
from curate.products import Caches
from curate.receipts import committed_folders, read_manifest
from curate.store import Store, StoreError
from curate.upkeep.trace import read_row
from curate.upkeep.verify import Verification, verify
from transforms.fast_tokens import is_sampled
from transforms.token_file import TokenizerError
from transforms.tokens import Encoder, Tokenizer

LEAST: Final = 16
"""Documents of a cache that are led back at least: its first ones."""


def verify_deeply(place: Path | str | Store, told: Callable[[int], None] = lambda size: None) -> Verification:
    """Check every file of the store at `place`, and every token cache in it.

    `told` is called with the size of each file that is checked, and with 0 after each cache.

    Raises:
        ConfigurationError: it is no store.
    """
    store = place if isinstance(place, Store) else Store(place)
    found = verify(store, told)
    for folder in committed_folders(store):
        manifest = _manifest(store, folder)
        if manifest is not None and manifest["kind"] == "caches":
            for problem in problems_of_caches(Caches(store, folder, manifest), told):
                if problem not in found.problems:
                    found.problems.append(problem)
    return found


def problems_of_caches(caches: Caches, told: Callable[[int], None] = lambda size: None) -> Iterator[str]:
    """Yield what is wrong with the caches of one stage, in words."""
    for cell in caches.cells:
        try:
            cache = TokenCache.open(caches.place(cell), digest=caches.manifest["cells"][cell]["content"])
            yield from cache.verify()
            yield from _provenance(caches.store, cache)
            told(0)
        except StoreError as error:
            yield str(error)


def sampled_documents(cache: TokenCache) -> list[int]:
    """Return the documents of a cache that are led back: the first `LEAST`, and those that their digest chooses."""
    chosen = np.flatnonzero(is_sampled(cache.text_digests())).tolist()
    return sorted({*range(min(LEAST, len(cache))), *chosen})


def _provenance(store: Store, cache: TokenCache) -> Iterator[str]:
    description = cache.description
    path = stored_tokenizer(store, description.tokenizer)
    encoder = Tokenizer(path, bos=description.bos_text, eos=description.eos_text).encoder()
    if encoder.encode(description.canary_text).tolist() != list(description.canary):
        yield f"{cache.store.url('')}: the canary has other ids now: the tokenizers library changed"
    datasets: dict[str, Dataset] = {}
    for document in sampled_documents(cache):
        described, shard, row = cache.lies_in(document)
        try:
            dataset = datasets.get(described["key"]) or open_dataset(store, described["name"], described["key"])
            datasets[described["key"]] = dataset
            values = read_row(dataset, shard, row)
        except (StoreError, IndexError) as error:
            yield f"{cache.store.url('')}: document {document} cannot be led back: {error}"
            return
        if wrong := _wrong(cache, encoder, document, values):
            yield f"{cache.store.url('')}: document {document} {wrong} (row {row} of shard {shard} of {dataset.name})"


def _wrong(cache: TokenCache, encoder: Encoder, document: int, values: dict[str, Any]) -> str:
    """Return what is wrong with a document, given its row of the dataset; "" for nothing."""
    if values["id"] != cache.ids(document, document + 1).tobytes():
        return "has another id than its row"
    if text_digest(values["text"]) != cache.text_digests(document, document + 1).tobytes():
        return "has another text than its row"
    try:
        same = np.array_equal(encoder.encode(values["text"]), cache[document])
    except (TokenizerError, CacheError) as error:
        return str(error)
    return "" if same else "has other tokens than its text when it is encoded again"


def _manifest(store: Store, folder: str) -> dict[str, Any] | None:
    try:
        return read_manifest(store, folder)
    except StoreError:  # verify has said so
        return None
