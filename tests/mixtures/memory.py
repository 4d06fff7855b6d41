"""Token caches in memory, for the tests of mixtures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from blake3 import blake3

from transforms.canonical import canonical_json


@dataclass(frozen=True)
class MemoryCache:
    name: str
    stream: np.ndarray
    starts: np.ndarray
    texts: np.ndarray
    tokenizer: str = "a" * 64
    vocabulary: int = 1000
    eos: int | None = 3

    @property
    def digest(self):
        return blake3(canonical_json([self.stream.tolist(), self.starts.tolist()]).encode()).hexdigest()

    @property
    def tokens(self):
        return len(self.stream)

    @property
    def documents(self):
        return len(self.texts)

    def read(self, start, stop):
        return self.stream[start:stop]

    def read_many(self, ranges):
        return [self.read(start, stop) for start, stop in ranges]

    def read_untrained(self, ranges):
        return None

    def borders(self, start, stop):
        low, high = np.searchsorted(self.starts, [start, stop])
        return self.starts[low:high]

    def text_digests(self):
        return self.texts


def make_cache(name, lengths, *, first=0, **settings):
    """A cache of documents of `lengths` tokens: tokens 10, 11 …, documents named by cache and number from `first`."""
    lengths = np.array(lengths, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else np.zeros(0, np.int64)
    stream = (10 + np.arange(lengths.sum()) % 900).astype(np.uint16)
    texts = [blake3(f"{name} {first + i}".encode()).digest(16) for i in range(len(lengths))]
    return MemoryCache(name, stream, starts.astype(np.int64), digests(texts), **settings)


def digests(texts):
    return np.frombuffer(b"".join(texts), np.uint8).reshape(-1, 16)


def caches_of(**lengths):
    """Caches by name, given the lengths of their documents."""
    return {name: make_cache(name, values) for name, values in lengths.items()}
