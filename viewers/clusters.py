"""What goes for what among duplicates: by source, and in clusters of how many, from a stage's statistics.

A cluster is a document that stays, with all that go for it. Its size is known of those survivors whose ids are lowest,
which are as good as drawn. Cost: sources², and the survivors that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from viewers.loading import StageView

SIZES: Final = (2, 3, 4, 6, 11, 21, 101, 1001)
"""Least documents of the clusters of each class."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Survivors with lowest ids: id → documents of the cluster, the survivor too; `is_all` if there are no more."""

    sizes: dict[str, int]
    is_all: bool

    @property
    def largest(self) -> list[tuple[str, int]]:
        """Ids and sizes, the largest first."""
        return sorted(self.sizes.items(), key=lambda item: (-item[1], item[0]))

    def classes(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each class of sizes that there is, its clusters, and their documents."""
        for place, least in enumerate(SIZES):
            end = SIZES[place + 1] if place + 1 < len(SIZES) else None
            mine = [size for size in self.sizes.values() if size >= least and (end is None or size < end)]
            if mine:
                yield _name(least, end), len(mine), sum(mine)


def _name(least: int, end: int | None) -> str:
    if end is None:
        return f"{least} or more"
    return str(least) if end == least + 1 else f"{least} to {end - 1}"


def clusters_of(stage: StageView) -> Clusters | None:
    """Return the clusters of `stage`; None where they were not counted."""
    leaf = stage.statistics.get("clusters")
    if not leaf or not leaf["least"]:
        return None
    sizes = {identity: counted["documents"] + 1 for identity, counted in leaf["least"].items()}
    return Clusters(sizes, len(sizes) < leaf["k"])


def between(stage: StageView) -> dict[tuple[str, str], int]:
    """Return (source of what goes, source of what stays) → documents that go, all reasons together."""
    found: dict[tuple[str, str], int] = {}
    for stays, goers in stage.statistics.get("between", {}).items():
        for goes, reasons in goers.items():
            found[goes, stays] = found.get((goes, stays), 0) + sum(counted for counted in reasons.values())
    return found
