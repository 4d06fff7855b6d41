"""Templates as people read them: the passages of a text that its template shingles cover.

Invariants: a passage is a longest run of shingles that are listed, as the words of the text that they are made of.
Cost: one pass over the words of a text, and a look-up for each. For pages and terminals, not for a corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.segmentation import find_words, text_buffers
from transforms.shingles import shingle_block, shingle_count
from transforms.word_hashes import hash_words


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text that is a template: in at least `count` documents, by its rarest shingle."""

    text: str
    count: int


def passages(text: str, counts: Mapping[int, int], ngram: int) -> Iterator[Passage]:
    """Yield the passages of `text` whose shingles of `ngram` words are all in `counts`: shingle → documents."""
    column = pa.array([text], pa.large_string())
    words, (data, places) = find_words(column), text_buffers(column)
    total = int(shingle_count(words.documents[1] - words.documents[0], places[1] - places[0], np.int64(ngram)))
    if total == 0 or len(words.starts) < ngram:
        return
    shingles = np.empty(total, np.uint64)
    given = (hash_words(words), words.documents, data, places)
    shingle_block(*given, np.int64(ngram), np.int64(0), np.int64(total), shingles)
    listed = [counts.get(shingle, 0) for shingle in shingles.tolist()]
    first = 0
    while first < total:
        if not listed[first]:
            first += 1
            continue
        last = first
        while last + 1 < total and listed[last + 1]:
            last += 1
        start, end = int(words.starts[first]), int(words.ends[last + ngram - 1])
        yield Passage(bytes(data[start:end]).decode(), min(listed[first : last + 1]))
        first = last + 1
