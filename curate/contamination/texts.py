"""Texts to be audited: of a dataset, of token caches (decoded), of Parquet and JSON lines files of any origin.

Invariants: every document comes once, in the order in which it lies there. Memory: a portion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.caches.cache import TokenCache, Tokens, check_tokenizer
from curate.caches.tokenization import stored_tokenizer
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.products import Caches, open_product
from curate.receipts import committed_folders, read_manifest
from curate.run import open_result
from curate.store import Store, StoreError
from transforms.benchmark_items import read_rows
from transforms.tokens import Tokenizer

TOKENS: Final = 1 << 20
"""Tokens decoded at a time, or one document; changes no outcome."""
ENDINGS: Final = ("*.parquet", "*.jsonl", "*.jsonl.gz", "*.jsonl.zst")


@dataclass(frozen=True, slots=True)
class Portion:
    """Some documents: text, the source of each, and what it is called."""

    texts: pa.LargeStringArray
    sources: Sequence[str]
    names: Sequence[str]


def texts_at(place: Store, *, recipe: str | None = None, tokenizer: Path | None = None) -> Iterator[Portion]:
    """Yield the texts of whatever `place` is: a store, a dataset or caches in one, one token cache, a folder of files.

    Of a store, what the result `recipe` gave out (of the last result where there is one only): its token caches if it
    has any, for that is what is trained on, else its datasets.

    Args:
        place: where to look.
        recipe: folder of a result in a store.
        tokenizer: the tokenizer.json of a token cache that lies outside its store.

    Raises:
        ConfigurationError: nothing of the kind is there, or a cache's tokenizer is not known.
    """
    if place.exists("cache.json"):
        yield from texts_of_cache(TokenCache.open(place), _tokenizer(place, tokenizer))
    elif place.exists("manifest.json"):
        yield from _texts_of_product(*place.above())
    elif recipe is not None or (folders := _results(place)):
        yield from _texts_of_result(place, recipe or folders[-1])
    elif not place.is_remote and any(next(place.root.rglob(ending), None) for ending in ENDINGS):
        yield from texts_of_files(place.root)
    else:
        raise ConfigurationError(
            f"{place.url('')} is no store, dataset, token cache or folder of Parquet or JSON lines"
        )


def texts_of_dataset(dataset: Dataset) -> Iterator[Portion]:
    """Yield the documents of a dataset, called by their ids."""
    for batch in dataset.batches(["id", "text", "source"]):
        names = [identity.hex() for identity in batch.column("id").to_pylist()]
        yield Portion(batch.column("text"), batch.column("source").to_pylist(), names)


def texts_of_cache(cache: TokenCache, tokenizer: Tokenizer) -> Iterator[Portion]:
    """Yield the documents of a cache, decoded without BOS and EOS; their source is the cell's name.

    Raises:
        OtherTokenizerError: the cache was made with another tokenizer.
    """
    encoder = tokenizer.encoder()
    first, starts = 0, cache.starts
    while first < len(cache):
        last = int(np.searchsorted(starts, starts[first] + TOKENS, side="right")) - 1
        last = min(max(last, first + 1), len(cache))
        tokens, mine = cache.read(int(starts[first]), int(starts[last])), starts[first : last + 1] - starts[first]
        texts = [encoder.decode(_bare(cache, tokens[start:stop])) for start, stop in pairwise(mine.tolist())]
        names = [bytes(identity).hex() for identity in cache.ids(first, last)]
        yield Portion(pa.array(texts, pa.large_string()), [cache.name] * len(texts), names)
        first = last


def _bare(cache: TokenCache, tokens: Tokens) -> Tokens:
    """Return the tokens of a document without BOS and EOS."""
    first, last = int(cache.bos is not None), len(tokens) - int(cache.eos is not None)
    return tokens[first : max(first, last)]


def texts_of_files(folder: Path) -> Iterator[Portion]:
    """Yield the column `text` of the Parquet and JSON lines files below `folder`; the source is the file's path there.

    Raises:
        ConfigurationError: a file has no such column.
    """
    for path in sorted({path for ending in ENDINGS for path in folder.rglob(ending)}):
        name, row = path.relative_to(folder).as_posix(), 0
        for texts in _texts_in(path):
            numbers = range(row, row + len(texts))
            yield Portion(texts, [name] * len(texts), [f"{name} {number}" for number in numbers])
            row += len(texts)


def _texts_in(path: Path) -> Iterator[pa.LargeStringArray]:
    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(4096, columns=["text"]):
                    yield batch.column("text").cast(pa.large_string()).fill_null("")
        else:
            rows = read_rows(path, "jsonl", path.read_bytes())
            yield pa.array([str(row["text"] or "") for row in rows], pa.large_string())
    except KeyError:
        raise ConfigurationError(f"{path} has no column 'text': what shall be looked through?") from None


def _texts_of_result(store: Store, folder: str) -> Iterator[Portion]:
    result = open_result(store, folder)
    for caches in result.caches.values():
        yield from _texts_of_caches(caches)
    if not result.caches:
        for dataset in result.outputs.values():
            yield from texts_of_dataset(dataset)


def _texts_of_product(store: Store, folder: str) -> Iterator[Portion]:
    manifest = read_manifest(store, folder)
    if manifest["kind"] == "recipe":
        yield from _texts_of_result(store, folder)
    elif manifest["kind"] == "caches":
        caches = open_product(store, manifest["name"], manifest["key"])
        if isinstance(caches, Caches):
            yield from _texts_of_caches(caches)
    elif "schema" in manifest:
        yield from texts_of_dataset(Dataset(store, folder, manifest))
    else:
        raise ConfigurationError(f"{store.url(folder)} is a {manifest['kind']}: it holds no texts")


def _texts_of_caches(caches: Caches) -> Iterator[Portion]:
    for cell in caches.cells:
        cache = TokenCache.open(caches.place(cell))
        yield from texts_of_cache(cache, _known_tokenizer(caches.store, cache, None))


def _tokenizer(place: Store, given: Path | None) -> Tokenizer:
    """Return the tokenizer of the cache at `place`: as given, or as its store keeps it, two folders above."""
    cache = TokenCache.open(place)
    above, _ = place.above()[0].above()
    return _known_tokenizer(above, cache, given)


def _known_tokenizer(store: Store, cache: TokenCache, given: Path | None) -> Tokenizer:
    description = cache.description
    try:
        path = given or stored_tokenizer(store, description.tokenizer)
        tokenizer = Tokenizer(path, bos=description.bos_text, eos=description.eos_text)
    except (StoreError, OSError) as error:
        raise ConfigurationError(f"the tokenizer of {cache.name!r} is needed, give its file ({error})") from error
    check_tokenizer(cache.store, description, tokenizer)
    return tokenizer


def _results(store: Store) -> list[str]:
    return [folder for folder in committed_folders(store) if read_manifest(store, folder)["kind"] == "recipe"]
