"""Tokens where only characters are counted: what is not tokenized apart is estimated from what is."""

from __future__ import annotations

from dataclasses import dataclass

from viewers.loading import Report
from viewers.numbers import grouped


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens and code points of all token caches of a result."""

    of_tokens: int
    of_characters: int

    @classmethod
    def of(cls, report: Report) -> Rate | None:
        """Return the rate of `report`; None where nothing is tokenized."""
        characters = sum(cell.characters for cell in report.cells)
        tokens = sum(cell.description.tokens for cell in report.cells)
        return cls(tokens, characters) if characters else None

    def tokens(self, characters: int) -> str:
        """Return how many tokens so many code points are, by this rate: an estimate, and marked as one."""
        return f"≈ {grouped(characters * self.of_tokens // self.of_characters)}"
