"""Token caches as a report shows them, and whether texts to train on meet texts held out.

Cost: one `cache.json` and the text digests of each cache: 16 bytes per document, sorted once. No token is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from curate.caches.counting import count_used, named_longest
from curate.caches.description import Description
from curate.products import Caches

TRAINING: Final = "training"
"""Name of the output that a mixture draws from."""


@dataclass(frozen=True, slots=True)
class CellView:
    """A token cache: its output, name and key of its stage and of the dataset it is made of, cell and description."""

    output: str
    stage: tuple[str, str]
    dataset: tuple[str, str]
    cell: str
    description: Description

    @property
    def characters(self) -> int:
        """Code points of its texts."""
        return self._count("characters")

    @property
    def bytes(self) -> int:
        """Bytes of its texts in UTF-8."""
        return self._count("bytes")

    @property
    def unknown(self) -> int:
        """Unknown tokens in it."""
        return self._count("unknown")

    @property
    def used(self) -> int | None:
        """How many ids of the vocabulary stand in it; None where nobody counted."""
        return count_used(dict(self.description.statistics))

    @property
    def longest(self) -> list[tuple[str, int]]:
        """Id and tokens of its longest documents, the longest first."""
        return named_longest(dict(self.description.statistics))

    @property
    def special_text(self) -> Mapping[str, Mapping[str, int]]:
        """Special tokens that stand in texts as text: documents and hits of each."""
        found: Mapping[str, Mapping[str, int]] = self.description.statistics.get("special_text", {})
        return found

    def _count(self, name: str) -> int:
        return int(self.description.statistics.get(name, 0))


@dataclass(frozen=True, slots=True)
class Meeting:
    """Distinct texts of the output "training" and of all other caches, and how many of them are the same."""

    training: int
    others: int
    shared: int


def cells_of(output: str, caches: Caches) -> list[CellView]:
    """Return the cells of `caches`, which are the output `output`.

    Raises:
        CacheError: one is damaged.
    """
    made_of = caches.manifest["inputs"][0]
    dataset = (str(made_of["name"]), str(made_of["key"]))
    return [
        CellView(output, (caches.name, caches.key), dataset, cell, cache.description)
        for cell, cache in caches.open().items()
    ]


def meeting_of(outputs: Mapping[str, Caches]) -> Meeting | None:
    """Return whether the texts of "training" meet those of other caches; None without both.

    Raises:
        CacheError: a cache is damaged.
    """
    if TRAINING not in outputs or len(outputs) < 2:
        return None
    training = _distinct([outputs[TRAINING]])
    others = _distinct(caches for name, caches in outputs.items() if name != TRAINING)
    return Meeting(len(training), len(others), len(np.intersect1d(training, others, assume_unique=True)))


def _distinct(several: Iterable[Caches]) -> npt.NDArray[Any]:
    found = [cache.text_digests() for caches in several for cache in caches.open().values()]
    digests = np.concatenate([np.zeros((0, 16), np.uint8), *found])
    return np.unique(np.ascontiguousarray(digests).view("V16").reshape(-1))
