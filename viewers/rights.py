"""Rights of the documents that a stage keeps: licence, who says so, and opt-out signals, from its statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transforms.schema import UNKNOWN
from viewers.loading import StageView


@dataclass(frozen=True, slots=True)
class Licence:
    """Documents of one source, licence and basis (one of `transforms.schema.LICENCE_BASES`)."""

    source: str
    licence: str
    basis: str
    documents: int
    characters: int

    @property
    def is_unknown(self) -> bool:
        """Whether nobody said what the licence is."""
        return self.licence in (UNKNOWN, "")


@dataclass(frozen=True, slots=True)
class OptOut:
    """Documents of one source by the answer ("yes", "no", "not checked") to one opt-out signal."""

    source: str
    signal: str
    answer: str
    documents: int


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of what a stage keeps, most documents first within a source."""

    licences: tuple[Licence, ...]
    optouts: tuple[OptOut, ...]


def rights_of(stage: StageView, order: Sequence[str] = ()) -> Rights:
    """Return the rights of the documents that `stage` keeps, sources in `order`, others after these."""
    place = {source: number for number, source in enumerate(order)}
    licences = sorted(_licences(stage.statistics), key=lambda row: (place.get(row.source, len(place)), row.source))
    optouts = sorted(_optouts(stage.statistics), key=lambda row: (place.get(row.source, len(place)), row.source))
    return Rights(tuple(licences), tuple(optouts))


def _licences(statistics: Mapping[str, Any]) -> list[Licence]:
    found = [
        Licence(source, licence, basis, counts["documents"], counts["characters"])
        for source, licences in statistics.get("rights", {}).items()
        for licence, bases in licences.items()
        for basis, counts in bases.items()
    ]
    return sorted(found, key=lambda row: (-row.documents, row.licence, row.basis))


def _optouts(statistics: Mapping[str, Any]) -> list[OptOut]:
    found = [
        OptOut(source, signal, answer, documents)
        for source, signals in statistics.get("optout", {}).items()
        for signal, answers in signals.items()
        for answer, documents in answers.items()
    ]
    return sorted(found, key=lambda row: (row.signal, row.answer))
