"""How many texts have which phrase of benchmarks, not counting texts in which the item with that phrase is found.

Invariants: integers; a text counts once per `PhraseCounts`; sums of counts do not depend on order. Cost: a scan as that
of `Decontaminate`, and 16 bytes per different text.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.contamination import Decontaminate
from transforms.contamination_common import LEAST, SHARE, Phrases
from transforms.contamination_findings import Finding
from transforms.contamination_index import Index
from transforms.contamination_scan import find_seeds
from transforms.contamination_words import Hashes, Integers
from transforms.duplicates import text_digests


class PhraseCounts:
    """Counts that grow with each `add`."""

    def __init__(self, decontaminate: Decontaminate) -> None:
        """Count phrases of the benchmarks of `decontaminate`, whose thresholds say what is found."""
        self.decontaminate = decontaminate
        self.texts = 0
        self._seen: set[bytes] = set()
        self._seeds = decontaminate.index().seeds.hashes
        self._counts = np.zeros(len(self._seeds), np.int64)

    def add(self, text: pa.LargeStringArray) -> None:
        """Count the texts that were not counted before."""
        new = []
        for row, digest in enumerate(text_digests(text).to_pylist()):
            if digest not in self._seen:
                self._seen.add(digest)
                new.append(row)
        text = text.take(pa.array(new, pa.int64()))
        self.texts += len(text)
        index = self.decontaminate.index()
        found = find_seeds(text, index)
        found[:, 1] = self._first(found[:, 1])
        there = np.unique(found, axis=0)
        if hits := self.decontaminate.findings(text):
            told = self._of_items(index, hits)
            size = np.int64(len(self._seeds))
            there = there[~np.isin(there[:, 0] * size + there[:, 1], told[:, 0] * size + told[:, 1])]
        self._counts += np.bincount(there[:, 1], minlength=len(self._counts))

    def add_counts(self, hashes: Hashes, counts: Integers, texts: int) -> None:
        """Add what `table` of another gave."""
        self._counts[np.searchsorted(self._seeds, hashes)] += counts
        self.texts += texts

    def table(self) -> tuple[Hashes, Integers]:
        """Return phrases that were found, ascending, and how many texts have each."""
        there = np.flatnonzero(self._counts)
        return self._seeds[there], self._counts[there]

    def common(self) -> Phrases:
        """Return what is common: in `LEAST` texts, and in more than one of `SHARE`."""
        hashes, counts = self.table()
        chosen = hashes[(counts >= LEAST) & (counts * SHARE > self.texts)]
        return Phrases(chosen.astype("<u8").tobytes(), self.texts)

    def _first(self, seeds: Integers) -> Integers:
        """Return the first of the seeds of the same hash."""
        return np.searchsorted(self._seeds, self._seeds[seeds]).astype(np.int64)

    def _of_items(self, index: Index, hits: dict[int, list[Finding]]) -> npt.NDArray[np.int64]:
        """Return rows (document, seed) of all seeds of the items found there."""
        titles = [benchmark.title for benchmark in index.benchmarks]
        item_of = index.units.item[index.seeds.unit]
        rows = [np.zeros((0, 2), np.int64)]
        for document, findings in hits.items():
            found = {index.place_of(titles.index(f.benchmark), f.item) for f in findings if f.verdict}
            seeds = np.unique(self._first(np.flatnonzero(np.isin(item_of, sorted(found)))))
            rows.append(np.column_stack([np.full(len(seeds), document), seeds]))
        return np.concatenate(rows)
