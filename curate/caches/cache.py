"""Reading a token cache: documents, windows, borders, and where each document comes from.

A cache is an immutable sequence of documents (`len`, `[i]`, iteration), and an array of tokens in which they lie one
after the other. Opening looks at the name and size of every file and reads no tokens. Cost: a window of 4,096 tokens
0.03-0.05 ms from a local folder (`python -m benchmarks.windows`), from a bucket its round trip; memory: the pools, and
8 bytes per document of caches of up to 2^20 once borders are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from curate.caches.arrays import StoredArray, open_array, reading_context
from curate.caches.borders import count_below
from curate.caches.check import problems_of
from curate.caches.description import GENERATION, Description, check_files, read_description
from curate.caches.errors import OtherTokenizerError
from curate.caches.layout import UNTRAINED
from curate.caches.local_shards import LocalArray
from curate.store import Store
from transforms.sorted_numbers import span_of
from transforms.tokens import Tokenizer

POOL: Final = 2 << 20
"""Default size of the pool of unpacked chunks of each array: a mixture has hundreds of caches open."""

LISTED: Final = 1 << 20
"""Documents of a cache whose offsets are all kept in memory once one is asked for; of larger ones they are sought."""

Tokens = npt.NDArray[Any]


class TokenCache:
    """A finished token cache.

    Attributes:
        store: its folder, as a store of its own.
        description: what its `cache.json` says.
    """

    def __init__(self, store: Store, description: Description, pool: int = POOL, *, copied: bool = False) -> None:
        """Wrap a cache whose files were checked; use `TokenCache.open`, and `on_this_node` for `copied`."""
        self.store, self.description, self._copied = store, description, copied
        self._pool = pool

    @classmethod
    def open(
        cls,
        folder: Path | str | Store,
        tokenizer: Tokenizer | None = None,
        digest: str | None = None,
        pool: int = POOL,
    ) -> TokenCache:
        """Open the cache in `folder`.

        Args:
            folder: the folder that holds its `cache.json`: a path, a URL, or a store (`Store.within`).
            tokenizer: what it must have been made with; encodes the canary again.
            digest: the content digest that it must have.
            pool: bytes kept of unpacked chunks, for each array (and of shard indices, in a bucket).

        Raises:
            CutShortError: a file is missing or has another size than written.
            OtherTokenizerError: it was made with another tokenizer or policy, or this one has other ids now.
            DamagedCacheError: `cache.json` or metadata are not what was written, or the content digest differs.
            OldFormatError: it has another version of the format.
        """
        place = folder if isinstance(folder, Store) else Store(folder)
        description = read_description(place, digest)
        if tokenizer is not None:
            check_tokenizer(place, description, tokenizer)
        check_files(place, description)
        return cls(place, description, pool)

    def on_this_node(self) -> TokenCache:
        """Return this cache, read from this node: a shard in a bucket is copied whole before it is first read.

        Copies are checked against their digests and kept in the node's cache (`StorageOptions.cache`).
        """
        return TokenCache(self.store, self.description, self._pool, copied=True)

    @property
    def name(self) -> str:
        """Name of the cell, as "web" or "topic=3/level=4"."""
        return self.description.name

    @property
    def digest(self) -> str:
        """Content digest: over tokens and offsets, whatever the compression."""
        return self.description.content

    @property
    def tokenizer(self) -> str:
        """Digest of the tokenizer.json."""
        return self.description.tokenizer

    @property
    def tokens(self) -> int:
        """How many tokens it holds, BOS and EOS included."""
        return self.description.tokens

    @property
    def documents(self) -> int:
        """How many documents it holds."""
        return self.description.documents

    @property
    def vocabulary(self) -> int:
        """Highest id of the tokenizer + 1."""
        return self.description.vocabulary

    @property
    def bos(self) -> int | None:
        """Id that each document begins with."""
        return self.description.bos

    @property
    def eos(self) -> int | None:
        """Id that each document ends with."""
        return self.description.eos

    def __len__(self) -> int:
        return self.documents

    def __getitem__(self, document: int) -> Tokens:
        """Return the tokens of a document, counted from the end when negative."""
        place = document + len(self) if document < 0 else document
        if not 0 <= place < len(self):
            raise IndexError(f"document {document} of a cache with {len(self):,} documents")
        start, stop = self._offsets(place, place + 2).tolist()
        return self.read(start, stop)

    def read(self, start: int, stop: int) -> Tokens:
        """Return tokens `start` to `stop` of the cache, in its own type (uint16 or uint32).

        Raises:
            IndexError: they are not all there.
            DamagedCacheError: a chunk is not what was written.
        """
        self._check_range(start, stop, self.tokens, "tokens")
        return self._array("tokens").read(start, stop)

    def read_many(self, ranges: list[tuple[int, int]]) -> list[Tokens]:
        """Return the tokens of each (start, stop) of `ranges`; raises as `read` does. From a bucket, one round trip."""
        for start, stop in ranges:
            self._check_range(start, stop, self.tokens, "tokens")
        return self._array("tokens").read_many(ranges)

    def read_untrained(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[np.uint8]] | None:
        """Return for each token of `ranges` 1 if it is no target of training, else 0; None where all are targets.

        Raises as `read` does.
        """
        if UNTRAINED not in self.description.arrays:
            return None
        for start, stop in ranges:
            self._check_range(start, stop, self.tokens, "tokens")
        return self._array(UNTRAINED).read_many(ranges)

    def read_windows(self, starts: Sequence[int] | npt.NDArray[np.int64], length: int) -> Tokens:
        """Return the windows of `length` tokens from each of `starts` as rows; best in batches of 32 or more.

        Raises:
            IndexError: a window is not all there.
            DamagedCacheError: a chunk is not what was written.
        """
        windows = self.read_many([(int(start), int(start) + length) for start in starts])
        return np.stack(windows) if windows else np.zeros((0, length), self.description.dtype)

    def borders(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the places in `start` to `stop` at which a document begins, counted from the cache's first token.

        They ascend; a document without tokens begins where the next one does, and is repeated.
        """
        self._check_range(start, stop, self.tokens, "tokens")
        if self.documents <= LISTED:
            first, last = span_of(self.starts, start, stop)
            return self.starts[first:last].copy()
        return self._offsets(self._begun(start), self._begun(stop))

    def document_at(self, token: int) -> int:
        """Return the document that the token at place `token` belongs to."""
        self._check_range(token, token + 1, self.tokens, "tokens")
        return self._begun(token + 1) - 1

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each document begins, and after them the number of tokens; read once, 8 bytes per document."""
        return self._array("offsets").read(0, self.documents + 1).astype(np.int64)

    def _begun(self, token: int) -> int:
        """Return how many documents begin before the token at place `token`."""
        if self.documents <= LISTED:
            return int(np.searchsorted(self.starts, token))
        array = self._array("offsets")
        return count_below(array.read, self.documents + 1, array.spec.inner, token)

    def _offsets(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return where documents `first` to `last` - 1 begin; after the last document, the number of tokens."""
        if self.documents <= LISTED:
            return self.starts[first:last].copy()
        return self._array("offsets").read(first, last).astype(np.int64)

    def ids(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """Return the ids of documents `start` to `stop`, 16 bytes each."""
        return np.asarray(self._rows("ids", start, stop), np.uint8)

    def origin(self, start: int, stop: int) -> npt.NDArray[np.uint64]:
        """Return where documents `start` to `stop` lie in the dataset: ordinal of the shard, row in its part."""
        return np.asarray(self._rows("origin", start, stop), np.uint64)

    def lies_in(self, document: int) -> tuple[Mapping[str, str], int, int]:
        """Return the dataset that a document comes from (name, key, content), the ordinal of its shard, and its row."""
        shard, row = (int(value) for value in self.origin(document, document + 1)[0])
        if not self.description.generations:
            return self.description.dataset, shard, row
        return self.description.generations[shard // GENERATION]["dataset"], shard % GENERATION, row

    def text_digests(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.uint8]:
        """Return the text digests of documents `start` to `stop` (by default: of all), 16 bytes each."""
        return np.asarray(self._rows("texts", start, self.documents if stop is None else stop), np.uint8)

    def verify(self) -> list[str]:
        """Return what is wrong with its bytes, content, order or tokens, in words; empty when nothing is."""
        return problems_of(self)

    def _rows(self, array: str, start: int, stop: int) -> Tokens:
        self._check_range(start, stop, self.documents, "documents")
        return self._array(array).read(start, stop)

    def _check_range(self, start: int, stop: int, length: int, what: str) -> None:
        if not 0 <= start <= stop <= length:
            raise IndexError(f"{what} {start} to {stop} of the cache {self.name!r}, which has {length:,} {what}")

    @cached_property
    def _arrays(self) -> dict[str, StoredArray | LocalArray]:
        return {}

    def _array(self, name: str) -> StoredArray | LocalArray:
        if name not in self._arrays:
            spec = self.description.array(name)
            if self.store.is_remote and not self._copied:
                self._arrays[name] = open_array(self.store, spec, reading_context(self._pool))
            else:
                digests = {file: entry["digest"] for file, entry in self.description.files.items()}
                self._arrays[name] = LocalArray(spec, self.store, digests, self._pool)
        return self._arrays[name]

    def __repr__(self) -> str:
        return (
            f"TokenCache({self.name!r}, {self.tokens:,} tokens of {self.documents:,} documents, "
            f"tokenizer {self.tokenizer[:16]}, content {self.digest[:16]})"
        )


def check_tokenizer(folder: Store, description: Description, tokenizer: Tokenizer) -> None:
    """Check that the cache was made with `tokenizer`, and that it gives the ids that it gave.

    Raises:
        OtherTokenizerError: the message names the fields that differ.
    """
    place = folder.url("")
    stored = {"digest": description.tokenizer, "bos": description.bos_text, "eos": description.eos_text}
    asked = {"digest": tokenizer.digest, "bos": tokenizer.bos, "eos": tokenizer.eos}
    differing = [name for name in stored if stored[name] != asked[name]]
    if differing:
        what = "; ".join(f"{name} {stored[name]!r}, asked for {asked[name]!r}" for name in differing)
        raise OtherTokenizerError(
            f"{place} was made with another tokenizer ({what}): open it with the one that made it, or tokenize "
            "the documents again"
        )
    if tokenizer.encoder().encode(description.canary_text).tolist() != list(description.canary):
        raise OtherTokenizerError(
            f"{place} was made with the same tokenizer.json, but {tokenizer} gives the canary other ids than "
            f"then: another version of the tokenizers library (the cache was made with {description.library})"
        )
