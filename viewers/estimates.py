"""Tokens by source: exact where caches hold what is asked for, else estimated by their own tokens per character.

Caches by source tell the rate of each source; what no cache tells apart has the rate of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from viewers.loading import Report, StageView
from viewers.numbers import grouped
from viewers.tokens import CellView


@dataclass(frozen=True, slots=True)
class Amount:
    """What caches hold together."""

    documents: int
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Rate:
    """Documents, characters and tokens of all token caches of a result, and of those of each source."""

    whole: Amount
    sources: Mapping[str, Amount]

    @classmethod
    def of(cls, report: Report) -> Rate | None:
        """Return the rate of `report`; None where nothing is tokenized."""
        whole = _sum(report.cells)
        mine = [cell for cell in report.cells if is_by_source(report, cell)]
        found = {name: _sum(cell for cell in mine if cell.cell == name) for name in dict.fromkeys(c.cell for c in mine)}
        return cls(whole, found) if whole.characters else None

    def estimate(self, source: str, characters: int) -> int:
        """Return about how many tokens so many code points of `source` are."""
        amount = self.sources.get(source, self.whole)
        amount = amount if amount.characters else self.whole
        return characters * amount.tokens // amount.characters

    def held(self, source: str, documents: int, characters: int) -> int | None:
        """Return the tokens of all of these documents, None unless caches of the source hold just as many."""
        amount = self.sources.get(source)
        is_same = amount is not None and (amount.documents, amount.characters) == (documents, characters)
        return amount.tokens if amount is not None and is_same else None


def is_by_source(report: Report, cell: CellView) -> bool:
    """Return whether `cell` is named by the source of all its documents."""
    made = next((made for made in report.products if (made.name, made.key) == cell.stage), None)
    return made is not None and made.operation.get("fields", {}).get("by") == ["source"]


def about(tokens: int) -> str:
    """Return an estimate, marked as one."""
    return f"≈ {grouped(tokens)}"


def licence_tokens(rate: Rate, stage: StageView, source: str, characters: int) -> str:
    """Return the tokens of documents of `source` under one licence: exact where the source has no other."""
    kinds = [
        counts for bases in stage.statistics.get("rights", {}).get(source, {}).values() for counts in bases.values()
    ]
    held = rate.held(source, kinds[0]["documents"], characters) if len(kinds) == 1 else None
    return about(rate.estimate(source, characters)) if held is None else grouped(held)


def _sum(cells: Iterable[CellView]) -> Amount:
    found = list(cells)
    return Amount(
        sum(cell.description.documents for cell in found),
        sum(cell.characters for cell in found),
        sum(cell.description.tokens for cell in found),
    )
